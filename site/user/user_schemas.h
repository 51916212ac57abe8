// What goes in and out of the user module's doors, as JSON schemas for the OpenAPI document.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <string>

namespace weir::site::user {

std::map<std::string, boost::json::value> schemas();

}  // namespace weir::site::user

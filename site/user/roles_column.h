// The column `roles`: a JSON array of strings, which the two stores of this module read.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "weir/sql/row.h"

namespace weir::site::user {

inline std::vector<std::string> read_roles(const sql::Row& row, int column) {
  std::vector<std::string> roles;
  const auto value = row.get<boost::json::value>(column);
  if (const auto* array = value.if_array())
    for (const auto& role : *array)
      if (role.is_string()) roles.emplace_back(role.get_string());
  return roles;
}

inline boost::json::array roles_value(const std::vector<std::string>& roles) {
  boost::json::array array;
  for (const auto& role : roles) array.emplace_back(role);
  return array;
}

}  // namespace weir::site::user

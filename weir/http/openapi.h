// The OpenAPI 3.1 document of a router, made from the table that answers the requests, and a page that shows
// it.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "weir/http/router.h"

namespace weir::http {

// Besides what the routes declare it tells what the server itself may answer: 400, 401, 403, 404, 408, 413,
// 415, 422, 431 and 503 where they can happen. Hidden routes are left out.
boost::json::value openapi(const Router& router, std::string_view title, std::string_view version,
                           std::string_view description = {});

// The document as one HTML page without scripts or anything from elsewhere.
std::string docs_page(const boost::json::value& document);

}  // namespace weir::http

// Answers of a table of routes without a socket, for tests of handlers.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/id.h"
#include "weir/http/dispatcher.h"

namespace weir::http {

// What the server would answer, but for what belongs to a connection. Both must live until it is done.
inline Reply serve(const Dispatcher& dispatcher, Request& request) {
  Dispatcher::Plan plan = dispatcher.plan(request);
  Response response;
  if (plan.answer) {
    response = std::move(*plan.answer);
  } else {
    std::exception_ptr error;
    try {
      response = co_await plan.entry->route.handler(request);
    } catch (...) {
      error = std::current_exception();
    }
    if (error) response = Dispatcher::failed(request, plan.label, error);
  }
  dispatcher.allow_origin(request, response);
  co_return response;
}

// An Authenticator that takes a user's id for a token.
inline std::optional<Principal> user_by_id(std::string_view token) {
  const auto id = parse_id(token);
  if (!id) return std::nullopt;
  return Principal{*id, false, "session"};
}

// Empty when it has none of that name.
inline std::string header_of(const Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers)
    if (key == name) return value;
  return {};
}

}  // namespace weir::http

// Dispatcher: everything between a parsed request and its handler that needs no socket: the route, who asks,
// what may be sent, cross-origin rules, and what an exception becomes. For this folder; tests of handlers use
// it by weir/testing/serve.h.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/router.h"
#include "weir/http/server.h"

namespace weir::http {

// An origin is a scheme and a host, as browsers send it, without a path; or "*". Throws Unusable.
void check_origin(const std::string& origin);

class Dispatcher {
 public:
  Dispatcher(Router router, Authenticator authenticate, std::vector<std::string> cors_origins);

  struct Plan {
    const Router::Entry* entry = nullptr;  // whose handler to run, unless there is an answer
    std::string_view label = "none";       // of the route, for metrics
    std::optional<Response> answer;        // instead of a handler's
  };
  // The request's target must be set. Fills parameters, principal and from_page in. Doesn't throw.
  // Thread-safe.
  // The most that a body for it may have, as soon as the head is there.
  std::size_t body_limit(std::string_view method, std::string_view target) const;
  Plan plan(Request& request) const;

  // What the client gets for an exception of a handler; logs those that are faults of the program.
  static Response failed(const Request& request, std::string_view label, const std::exception_ptr& error);

  // Adds what a browser on another origin needs to see the answer.
  void allow_origin(const Request& request, Response& response) const;

  const Router& router() const { return router_; }

 private:
  void admit(Request& request, const Route& route) const;
  bool authenticate_by_cookie(Request& request) const;
  Response options(const Request& request, const std::string& allow) const;
  bool is_allowed_origin(std::string_view origin) const;

  Router router_;
  Authenticator authenticate_;
  std::vector<std::string> cors_origins_;
};

// The session cookie's name, and the header that proves that a page of ours sent the request.
inline constexpr std::string_view kSessionCookie = "weir_session";
inline constexpr std::string_view kPageHeader = "X-Weir-Page";

}  // namespace weir::http

#include "weir/http/dispatcher.h"

#include <algorithm>

#include "weir/base/fault.h"
#include "weir/http/problem.h"
#include "weir/http/text.h"
#include "weir/telemetry/log.h"
#include "weir/telemetry/metrics.h"

namespace weir::http {
namespace {

// Of a body that nobody will look at, this much is read to keep the connection.
constexpr std::size_t kUnroutedBody = 64 << 10;

bool is_write(std::string_view method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

// A browser that goes to an address, not a program: those seldom ask for HTML by name.
bool wants_page(const Request& request) {
  return !is_write(request.method) && request.method != "OPTIONS" &&
         request.header("Accept").value_or("").find("text/html") != std::string_view::npos;
}

Problem invalid_token() {
  return {401,
          "unauthenticated",
          "The access token is not valid, or no longer.",
          {},
          {{"WWW-Authenticate", "Bearer error=\"invalid_token\""}}};
}

}  // namespace

void check_origin(const std::string& origin) {
  const std::size_t scheme = origin.find("://");
  const bool good =
      origin == "*" || (scheme != std::string::npos && scheme > 0 && origin.size() > scheme + 3 &&
                        origin.find_first_of("/ ,", scheme + 3) == std::string::npos);
  if (!good) throw Unusable("not an origin: \"" + origin + "\" (allowed: \"https://host[:port]\" or \"*\")");
}

Dispatcher::Dispatcher(Router router, Authenticator authenticate, std::vector<std::string> cors_origins)
    : router_(std::move(router)),
      authenticate_(std::move(authenticate)),
      cors_origins_(std::move(cors_origins)) {
  for (const std::string& origin : cors_origins_) check_origin(origin);
}

std::size_t Dispatcher::body_limit(std::string_view method, std::string_view target) const {
  try {
    Request head;
    head.set_target(method, target);
    const Router::Match match = router_.find(head);
    if (match.entry != nullptr) return match.entry->route.max_body;
  } catch (const Problem&) {
    // The target can't be meant; that is answered when the request is there.
  }
  return kUnroutedBody;
}

Dispatcher::Plan Dispatcher::plan(Request& request) const {
  Plan plan;
  try {
    const Router::Match match = router_.find(request);
    plan.label = match.label;
    if (request.method == "OPTIONS" && (match.allow != nullptr || request.path == "*")) {
      plan.answer = options(
          request, match.allow != nullptr ? *match.allow : "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    } else if (match.entry != nullptr) {
      admit(request, match.entry->route);
      plan.entry = match.entry;
    } else if (match.allow != nullptr) {
      plan.answer = Problem(405, "method_not_allowed", "This is not done to what is here.", {},
                            {{"Allow", *match.allow}})
                        .response();
    } else if (router_.not_found_page() != nullptr && wants_page(request)) {
      admit(request, router_.not_found_page()->route);
      plan.entry = router_.not_found_page();
    } else {
      plan.answer = not_found().response();
    }
  } catch (...) {
    plan.answer = failed(request, plan.label, std::current_exception());
  }
  return plan;
}

void Dispatcher::admit(Request& request, const Route& route) const {
  request.from_page = request.header(kPageHeader) == "1";
  bool by_cookie = false;
  if (const auto authorization = request.header("Authorization")) {
    constexpr std::string_view kScheme = "Bearer ";
    if (authorization->size() > kScheme.size() &&
        same_word(authorization->substr(0, kScheme.size()), kScheme) && authenticate_) {
      request.principal = authenticate_(trimmed(authorization->substr(kScheme.size())));
    }
    if (!request.principal) throw invalid_token();
  } else {
    by_cookie = authenticate_by_cookie(request);
  }
  if (route.access != Access::anyone && !request.principal) throw unauthenticated();
  // Another site can make a browser send the cookie, but not this header.
  if (by_cookie && is_write(request.method) && !request.from_page) {
    throw forbidden("A write that is signed in by cookie must come from a page (X-Weir-Page: 1).");
  }
  if (route.access == Access::admin && !request.principal->admin)
    throw forbidden("This is for administrators.");
  if (!request.body.empty() && is_write(request.method) && !route.doc.any_body) {
    const auto type = request.header("Content-Type");
    if (!type || !is_json_type(*type)) throw unsupported_media_type("The body must be application/json.");
  }
}

// Browsers send the cookie with everything, so one that has expired makes the request nobody's instead of
// failing it: signing in again must work, and so must reading.
bool Dispatcher::authenticate_by_cookie(Request& request) const {
  const auto cookie = request.cookie(kSessionCookie);
  if (!cookie || cookie->empty() || !authenticate_) return false;
  request.principal = authenticate_(*cookie);
  return request.principal.has_value();
}

Response Dispatcher::failed(const Request& request, std::string_view label, const std::exception_ptr& error) {
  const Failure failure = failure_of(error);
  if (failure.unexpected) {
    const auto report = [&](std::string_view what) {
      log::error("{} {} failed: {} (request {})", request.method, label, what, request.request_id);
    };
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      report(e.what());
    } catch (...) {
      report("an exception of an unknown type");
    }
  }
  return failure.problem.response();
}

bool Dispatcher::is_allowed_origin(std::string_view origin) const {
  return std::ranges::any_of(cors_origins_,
                             [&](const auto& allowed) { return allowed == "*" || allowed == origin; });
}

Response Dispatcher::options(const Request& request, const std::string& allow) const {
  Response response = Response::empty(204).with("Allow", allow);
  const auto origin = request.header("Origin");
  if (origin && request.header("Access-Control-Request-Method") && is_allowed_origin(*origin)) {
    response.with("Access-Control-Allow-Methods", allow)
        .with("Access-Control-Allow-Headers",
              "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id")
        .with("Access-Control-Max-Age", "600");
  }
  return response;
}

// Never with credentials: the cookie is for our own pages, other origins send bearer tokens.
void Dispatcher::allow_origin(const Request& request, Response& response) const {
  if (cors_origins_.empty()) return;
  response.with("Vary", "Origin");
  const auto origin = request.header("Origin");
  if (!origin || !is_allowed_origin(*origin)) return;
  response.with("Access-Control-Allow-Origin", std::string(*origin))
      .with("Access-Control-Expose-Headers",
            "Allow, ETag, Idempotency-Replayed, Location, Retry-After, X-Request-Id");
}

}  // namespace weir::http

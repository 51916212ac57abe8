// Request: what a handler gets. It is alive until the handler's coroutine ends, and so are the views it
// gives.
//
// Everything in it has been checked: the target's escapes, its UTF-8, the typed path parameters. Not
// thread-safe; a handler that gives work to another thread copies what that needs.
#pragma once

#include <boost/json/object.hpp>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/id.h"
#include "weir/http/response.h"

namespace weir::http {

// Who asks, as the Authenticator found out. `session` is the id of the login session.
struct Principal {
  Id user_id = 0;
  bool admin = false;
  std::string session = {};
};

class Request {
 public:
  Request() = default;
  // For tests: a request that owns its texts. Throws Problem as the server would answer for a bad target.
  Request(std::string_view method, std::string_view target,
          std::vector<std::pair<std::string, std::string>> headers = {}, std::string body = {});
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  Request(Request&&) = default;
  Request& operator=(Request&&) = default;

  std::string_view method;  // "GET"; for HEAD, which GET routes answer too, "HEAD"
  std::string_view target;  // as sent: "/v1/articles?limit=3"
  std::string_view path;    // as sent, without the query
  std::string body;
  std::optional<Principal> principal;
  bool from_page = false;  // X-Weir-Page: 1 came with it
  bool secure = false;     // the client's side is TLS, as a trusted proxy says
  std::string peer;        // the client's address, behind trusted proxies the one they vouch for
  std::string request_id;  // of X-Request-Id, or made

  // Of several fields with the name the first. Case-insensitive; O(fields).
  std::optional<std::string_view> header(std::string_view name) const;
  // The value of the cookie, if one came.
  std::optional<std::string_view> cookie(std::string_view name) const;

  // A query parameter, decoded (also "+" as a space); of several the first.
  std::optional<std::string> query(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& query_all() const { return parsed_query_; }

  // Path parameters, decoded. Asking for one that the route's pattern hasn't is a std::logic_error.
  Id id(std::string_view name) const;
  std::string_view param(std::string_view name) const;

  bool head() const { return method == "HEAD"; }

  // The principal of a route for users; throws Problem 401 without one.
  const Principal& user() const;

  // The body, which must be a JSON object; an empty one is {}. Of duplicate keys the last counts. Throws
  // Problem 415 for another content type, 400 `malformed_json` for what isn't JSON (or is not UTF-8, deeper
  // than 32 levels, or holds a number beyond a double), 422 for JSON that is no object.
  boost::json::object json_object() const;

  // What the server's parts fill in: the raw fields in the order they came, and the parameters of the path.
  struct Field {
    std::string_view name, value;
  };
  struct Param {
    std::string_view name, text;
    Id id = 0;  // of typed ids
  };
  std::vector<Field> fields;
  std::vector<Param> params;

  // Sets method, target and path; splits and checks the target. Throws Problem 400.
  void set_target(std::string_view method_text, std::string_view target_text);
  // Makes it ready for the next request of its connection, keeping the memory.
  void clear();
  // The path's segments, decoded; "/" has none.
  const std::vector<std::string_view>& segments() const { return segments_; }

 private:
  std::string_view keep(std::string text);
  void split_path();
  void split_query();

  std::string_view raw_query_;
  std::vector<std::string_view> segments_;
  std::vector<std::pair<std::string, std::string>> parsed_query_;
  std::list<std::string> kept_;  // texts that views above point into; a list never moves them
};

// If-None-Match of the request names the tag (weakly compared), or is "*".
bool not_modified(const Request& request, std::string_view etag);
// No If-Match came, or it names the tag (strongly compared), or is "*".
bool may_change(const Request& request, std::string_view etag);
// A strong entity tag over the bytes, quotes included. 64 bits of XXH3.
std::string etag_of(std::string_view bytes);

// The response with an ETag over its body, or a 304 that carries its headers when the client has that body
// already.
Response with_etag(const Request& request, Response response);

}  // namespace weir::http

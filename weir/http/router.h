// Router: which handler answers which method and path, in one table that the OpenAPI document is made from
// too.
//
// Look-up goes down a tree of path segments: O(segments), whatever the number of routes. A literal segment
// wins over a typed parameter, a typed one over a free text. Built before the server starts, only read
// afterwards (then thread-safe).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/request.h"
#include "weir/http/response.h"

namespace weir::http {

using Reply = boost::asio::awaitable<Response>;
using Handler = std::function<Reply(Request&)>;

// Who may call a route.
enum class Access {
  anyone,  // the principal is there when a valid token came; a bad bearer token is 401, a bad cookie is
           // nobody
  user,    // 401 without a valid token or cookie
  admin    // and 403 for those who are none
};

// A parameter of the query or the headers, for the documentation.
struct Parameter {
  std::string name = {};
  std::string description = {};
  std::string type = "string";  // of JSON schema: string, integer, boolean
  std::string in = "query";     // or "header"
  bool required = false;
  boost::json::object schema = {};  // more of its JSON schema: {"minimum": 1, "maximum": 100}
};

// What the OpenAPI document says about a route beyond what the router knows.
struct Doc {
  std::string summary = {};
  std::vector<Parameter> query = {};
  std::string request_schema = {};                 // name of a schema; empty: takes no fields
  std::map<unsigned, std::string> responses = {};  // status -> name of a schema, "" for no body
  std::vector<unsigned> problems = {};             // statuses that the handler may answer as problems
  std::string tag = {};
  bool hidden = false;  // pages and the like: not in the document
  std::string response_type = "application/json";
  bool request_optional = false;  // with request_schema: an empty body will do
  bool any_body = false;          // takes bodies of other types than JSON
};

struct Route {
  std::string method;  // "GET" (answers HEAD too), "POST", "PUT", "PATCH" or "DELETE"
  // "/v1/articles/{id}". A segment in braces is a parameter. "{id}", "{.._id}" and "{name:id}" are ids: what
  // is no canonical positive 64-bit integer is a 404. "{biz}" and "{name:biz}" match [a-z][a-z0-9_]{0,31}.
  // Others, and "{name:text}", match what isn't empty.
  std::string pattern;
  Access access = Access::anyone;
  Handler handler = {};
  Doc doc = {};
  // Bytes of the body; more is 413. The server's own limit where that is less.
  std::size_t max_body = std::numeric_limits<std::size_t>::max();
};

// The kinds of a parameter.
enum class ParamKind { id, biz, text };
struct PatternSegment {
  std::string text;  // the literal, or the parameter's name
  bool is_param = false;
  ParamKind kind = ParamKind::text;
};
// Throws std::logic_error for a malformed pattern.
std::vector<PatternSegment> parse_pattern(std::string_view pattern);

class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  // Throws std::logic_error when the route is malformed or there already.
  void add(Route route);
  // Answers GETs of addresses that no route knows, for clients that take HTML; others get the problem. Its
  // label is "none", and it is not in the document.
  void set_not_found_page(Handler handler);
  // For components.schemas of the document. Throws std::logic_error when the name is taken.
  void add_schema(std::string name, boost::json::value schema);

  struct Entry {
    Route route;
    std::string label;  // the template without types, as the metrics and the document show it
    std::size_t index;  // dense, from 0
    std::vector<PatternSegment> segments;
  };

  struct Match {
    const Entry* entry = nullptr;        // null: no route
    const std::string* allow = nullptr;  // set when the path is known: the methods, for Allow
    std::string_view label = "none";     // of the path
  };
  // Finds the route of the request's method and path and fills its parameters in. Doesn't throw.
  Match find(Request& request) const;

  // Called once when the server has stopped, before handlers that are still suspended are destroyed: a pool
  // that only some routes use is stopped here.
  void on_stop(std::function<void()> call);
  void stopped() const;

  // Gives this router again, wherever it was moved to, as long as it is alive: for routes that tell about the
  // others.
  std::function<Router()> reference() const;

  const Entry* not_found_page() const;        // null without one
  std::vector<const Entry*> entries() const;  // in the order they were added
  const std::map<std::string, boost::json::value>& schemas() const;

 private:
  struct Table;
  explicit Router(std::shared_ptr<Table> table);

  std::shared_ptr<Table> table_;
};

}  // namespace weir::http

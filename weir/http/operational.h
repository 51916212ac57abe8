// The routes that every server has: /healthz, /readyz, /metrics, /v1/openapi.json and /docs.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "weir/http/router.h"

namespace weir::http {

// ok; degraded: works, but not as it should; down: can't serve at all.
enum class Health { ok, degraded, down };

// What /readyz looks at. A check that throws is `down` when it is essential (the store), else `degraded`; so
// is one that takes longer than the request's deadline. Checks run one after the other.
struct Check {
  std::string name;
  std::function<boost::asio::awaitable<Health>()> run;
  bool essential = false;
};
// From a function that returns at once.
Check quick_check(std::string name, std::function<Health()> run, bool essential = false);

struct OperationalOptions {
  std::string title = "Weir";
  std::string version = {};
  std::string description = {};
  std::vector<Check> checks = {};
  std::function<bool()> stopping = {};  // then /readyz is 503
};

// Call it last or first: the document is made at its first request, from what the router holds then.
void add_operational_routes(Router& router, OperationalOptions options);

}  // namespace weir::http

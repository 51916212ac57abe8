// What weir/http/README.md takes as given.
#include "weir/http/server.h"

#include "weir/http/operational.h"
#include "weir/http/problem.h"

namespace weir::http {

struct Article {};
struct Articles {
  boost::asio::awaitable<std::optional<Article>> get(Id id);
};
std::string to_json(const Article& article);

void snippet(Articles& articles, const Authenticator& authenticate) {
  // SNIPPET
}

}  // namespace weir::http

// What weir/cache/README.md takes as given.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "weir/cache/id_filter.h"
#include "weir/redis/client.h"

namespace weir {

using namespace std::chrono_literals;

struct Article {
  std::string text;
};
struct Store {
  boost::asio::awaitable<std::optional<Article>> load(Id id);
  boost::asio::awaitable<void> update(const Article& article);
};

boost::asio::awaitable<std::string> load_text();
void use(const std::optional<std::string>& text);

boost::asio::awaitable<cache::Found<Article>> snippet(Store& store, cache::IdFilter& ids,
                                                      redis::Client& client, boost::asio::io_context& io,
                                                      Id id, Article article) {
  // SNIPPET
  co_return found;
}

}  // namespace weir

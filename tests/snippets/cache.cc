// What weir/cache/README.md takes as given.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "weir/cache/id_filter.h"
#include "weir/cache/remote_level.h"
#include "weir/redis/client.h"
#include "weir/telemetry/log.h"

namespace weir {

using namespace std::chrono_literals;

struct Article {
  std::string text;
};
struct Store {
  boost::asio::awaitable<std::optional<Article>> load(Id id);
  boost::asio::awaitable<void> update(const Article& article);
  boost::asio::awaitable<std::optional<std::string>> load_text(Id id);
  boost::asio::awaitable<void> set_text(Id id, std::string text);
};

boost::asio::awaitable<std::string> load_text();
void use(const std::optional<std::string>& text);

boost::asio::awaitable<cache::Found<Article>> snippet(Store& store, cache::IdFilter& ids,
                                                      redis::Client& client, boost::asio::io_context& io,
                                                      std::shared_ptr<cache::RemoteLevel> level, Id id,
                                                      Article article, std::string text) {
  // SNIPPET
  co_return found;
}

}  // namespace weir

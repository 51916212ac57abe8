// What docs/caches.md takes as given.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "weir/base/id.h"
#include "weir/cache/remote_level.h"
#include "weir/redis/client.h"
#include "weir/telemetry/log.h"

namespace weir {

using namespace std::chrono_literals;

struct Store {
  boost::asio::awaitable<std::optional<std::string>> load_text(Id id);
  boost::asio::awaitable<void> set_text(Id id, std::string text);
};

boost::asio::awaitable<std::string> load_text();
void use(const std::optional<std::string>& text);

boost::asio::awaitable<void> snippet(Store& store, redis::Client& client, boost::asio::io_context& io,
                                     std::shared_ptr<cache::RemoteLevel> level, Id id, std::string text) {
  // SNIPPET
}

}  // namespace weir

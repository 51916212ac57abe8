// What weir/cache/README.md takes as given.
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "weir/cache/id_filter.h"
#include "weir/cache/remote_level.h"

namespace weir {

using namespace std::chrono_literals;

struct Store {
  boost::asio::awaitable<std::optional<std::string>> load_text(Id id);
  boost::asio::awaitable<void> set_text(Id id, std::string text);
};

boost::asio::awaitable<cache::Found<std::string>> snippet(Store& store, cache::IdFilter& ids,
                                                          boost::asio::io_context& io,
                                                          std::shared_ptr<cache::RemoteLevel> level, Id id,
                                                          std::string text) {
  // SNIPPET
  co_return found;
}

}  // namespace weir

#include "weir/cache/remote_level.h"

#include <utility>

namespace weir::cache {

auto RemoteLevel::fill(std::string key, Lease lease, std::string value, std::optional<Millis> ttl)
    -> Awaitable<bool> {
  std::vector<Fill> one(1);
  one[0] = {std::move(key), std::move(lease), std::move(value), ttl};
  co_return (co_await fill_many(std::move(one))).front();
}

auto RemoteLevel::fill_absent(std::string key, Lease lease, std::optional<Millis> ttl) -> Awaitable<bool> {
  std::vector<Fill> one(1);
  one[0] = {std::move(key), std::move(lease), std::nullopt, ttl};
  co_return (co_await fill_many(std::move(one))).front();
}

auto RemoteLevel::remove(std::string key) -> Awaitable<void> {
  std::vector<std::string> one(1);
  one[0] = std::move(key);
  co_await remove_many(std::move(one));
}

}  // namespace weir::cache

// The two caches that the accidents compare, in front of a SmallStore.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "site/lab/small_store.h"
#include "weir/base/clock.h"
#include "weir/base/id.h"
#include "weir/cache/local_cache.h"
#include "weir/cache/read_through.h"

namespace weir::site {

// Cache-aside as it is often written: look, load, set. It is what the accidents happen to.
class NaiveCacheAside {
 public:
  NaiveCacheAside(SmallStore& store, const Clock& clock, cache::Duration ttl, bool keeps_absences = false)
      : store_(store), cache_({.clock = &clock}), ttl_(ttl), keeps_absences_(keeps_absences) {}

  boost::asio::awaitable<std::optional<std::string>> get(Id key) {
    if (const auto hit = cache_.look(key); hit.known)
      co_return hit.value ? std::optional(*hit.value) : std::nullopt;
    auto row = co_await store_.load(key);
    if (row) {
      set(key, *row);
    } else if (keeps_absences_) {
      cache_.put(key, nullptr, 0, ttl_);
    }
    co_return row;
  }
  void set(Id key, std::string value) {
    const std::size_t weight = sizeof(std::string) + value.size();
    cache_.put(key, std::make_shared<const std::string>(std::move(value)), weight, ttl_);
  }
  void erase(Id key) { cache_.erase(key); }

 private:
  SmallStore& store_;
  cache::LocalCache<Id, std::string> cache_;
  const cache::Duration ttl_;
  const bool keeps_absences_;
};

// The library's own.
using GuardedCache = cache::ReadThrough<Id, std::string>;

inline GuardedCache::Load loads_of(SmallStore& store) {
  return [&store](Id key) { return store.load(key); };
}

}  // namespace weir::site

// FeedStep: what a ReadThrough tells other nodes of its writes, and what it does with theirs. Failures end here: they
// are counted, and the TTLs bound how long another node may serve what is old.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/cache/cache_metrics.h"
#include "weir/cache/read_through_options.h"
#include "weir/telemetry/metrics.h"

namespace weir::cache {

// Thread-safe.
template <class K>
class FeedStep {
 public:
  // What is to be done here about others' writes, on the feed's thread. Must not throw.
  struct Local {
    std::function<void(const K&)> forget;
    std::function<void()> forget_all;
  };

  FeedStep(std::string name, FeedUse<K> use, CacheMetrics& metrics, Local local)
      : name_(std::move(name)), use_(std::move(use)), metrics_(metrics), local_(std::move(local)) {
    if (!use_.key || !use_.parse)
      throw std::invalid_argument("the cache " + name_ + " has a feed and can't write or read its keys");
    listening_ = use_.feed->listen(name_, {.heard = [this](const auto& keys) { heard(keys); },
                                           .missed =
                                               [this] {
                                                 metrics_.missed.add();
                                                 local_.forget_all();
                                               }});
  }
  FeedStep(const FeedStep&) = delete;
  FeedStep& operator=(const FeedStep&) = delete;

  // A key without a name keeps the others from nothing.
  boost::asio::awaitable<void> tell(std::vector<K> keys) {
    std::vector<std::string> names;
    names.reserve(keys.size());
    for (const K& key : keys) {
      try {
        names.push_back(use_.key(key));
      } catch (...) {
        metrics_.told_error.add();
        swallowed("a key for the feed of " + name_, std::current_exception());
      }
    }
    if (names.empty()) co_return;
    const auto told = static_cast<double>(names.size());
    try {
      co_await use_.feed->tell(name_, std::move(names));
      metrics_.told_ok.add(told);
    } catch (...) {
      metrics_.told_error.add(told);
      swallowed("the feed of " + name_, std::current_exception());
    }
  }

 private:
  void heard(const std::vector<std::string>& names) {
    metrics_.heard.add(static_cast<double>(names.size()));
    for (const std::string& name : names) {
      // A name that nobody here can read is of another version's keys, which this one doesn't cache.
      if (const auto key = parsed(name)) local_.forget(*key);
    }
  }
  std::optional<K> parsed(const std::string& name) const {
    try {
      return use_.parse(name);
    } catch (...) {
      swallowed("a key in the feed of " + name_, std::current_exception());
      return std::nullopt;
    }
  }

  const std::string name_;
  const FeedUse<K> use_;
  CacheMetrics& metrics_;
  const Local local_;
  std::unique_ptr<DropFeed::Listening> listening_;  // the first to go
};

}  // namespace weir::cache

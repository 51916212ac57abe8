// FeedStep: what a ReadThrough tells other nodes of its writes, and what it does with theirs. Failures end here: they
// are counted, and what couldn't be told is told again until it could; meanwhile the TTLs bound how long another node
// may serve what is old.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/backoff.h"
#include "weir/cache/cache_metrics.h"
#include "weir/cache/pause.h"
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
    // Who is behind already doesn't wait for another failure.
    if (repeating() || !co_await told(names)) keep(std::move(names));
  }

  // True once when something couldn't be told: who gets it has to run `repeat`, in the background.
  bool wants_repeat() {
    const std::lock_guard lock(mutex_);
    return !untold_.none() && !std::exchange(repeating_, true);
  }
  // Until all is told, or `end` was called.
  boost::asio::awaitable<void> repeat(Pause pause) {
    Backoff backoff(kRepeatFirst, kRepeatLast);
    for (;;) {
      co_await pause(backoff.next());
      for (bool through = true; through;) {
        Untold now = take();
        if (now.none()) co_return;
        const std::vector<std::string> names(now.names.begin(), now.names.end());
        through = co_await told(now.all ? std::vector<std::string>() : names);
        if (!through) put_back(std::move(now));
      }
    }
  }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }

 private:
  // More keys than this are "all".
  static constexpr std::size_t kMostUntold = 10'000;
  static constexpr std::chrono::milliseconds kRepeatFirst{100}, kRepeatLast{2'000};

  struct Untold {
    std::set<std::string> names;
    bool all = false;
    bool none() const { return names.empty() && !all; }
  };

  boost::asio::awaitable<bool> told(std::vector<std::string> names) {
    const auto count = static_cast<double>(std::max<std::size_t>(1, names.size()));
    try {
      co_await use_.feed->tell(name_, std::move(names));
      metrics_.told_ok.add(count);
      co_return true;
    } catch (...) {
      metrics_.told_error.add(count);
      swallowed("the feed of " + name_, std::current_exception());
      co_return false;
    }
  }
  bool repeating() const {
    const std::lock_guard lock(mutex_);
    return repeating_;
  }
  void keep(std::vector<std::string> names) { put_back({{names.begin(), names.end()}, false}); }
  void put_back(Untold news) {
    const std::lock_guard lock(mutex_);
    untold_.names.merge(news.names);
    untold_.all = untold_.all || news.all || untold_.names.size() > kMostUntold;
    if (untold_.all) untold_.names.clear();
  }
  // What is to be told now; none: the repeating is over.
  Untold take() {
    const std::lock_guard lock(mutex_);
    if (ended_) untold_ = {};
    if (untold_.none()) repeating_ = false;
    return std::exchange(untold_, {});
  }

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
  mutable std::mutex mutex_;
  Untold untold_;
  bool repeating_ = false;  // somebody runs `repeat`, or is about to
  bool ended_ = false;
  std::unique_ptr<DropFeed::Listening> listening_;  // the first to go
};

}  // namespace weir::cache

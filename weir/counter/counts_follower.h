// CountsFollower: tells RemoteCounts what was committed, and tells again what it couldn't.
//
// What failed is owed until it was told after all, from the store's row as it is then, or until the counts that may be old
// in Redis have ended by themselves. Bounded: what doesn't fit any more isn't told again, and the TTL bounds what is old.
// A process that dies forgets what it owes; the same holds then.
//
//     CountsFollower follower(counts, load_rows);
//     co_await follower.committed({{"article:7", {.version = 12, .values = {100, 5}}}});   // after the commit
//     co_await follower.repair();                                                          // each second, say
//
// Metrics: weir_remote_counts_owed{cache}, weir_remote_counts_forgotten_total{cache}. Thread-safe.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "weir/base/clock.h"
#include "weir/counter/remote_counts.h"

namespace weir::counter {

struct CountsFollowerOptions {
  std::size_t max_owed = 10'000;  // resources
  std::size_t at_once = 500;      // that are told again by one `repair`
  const Clock* clock = &Clock::system();
};

class CountsFollower {
 public:
  using Options = CountsFollowerOptions;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;
  using Updates = std::vector<RemoteCounts::Update>;
  // The rows of these keys as they are now. One that is missing isn't told again.
  using Load = std::function<Awaitable<Updates>(std::vector<std::string> keys)>;

  // `counts` must outlive it.
  CountsFollower(RemoteCounts& counts, Load load, Options options = {});

  // After a commit. Redis' failures aren't thrown: they are owed. Throws as RemoteCounts::update_many.
  Awaitable<void> committed(Updates updates);
  // Tells again what is owed. How many are, afterwards. Throws nothing of the store's or Redis' failures (Unavailable);
  // what they concern stays owed.
  Awaitable<std::size_t> repair();

  std::size_t owed() const;

 private:
  struct Debt {
    std::int64_t version;  // at least this one must be told
    SteadyTime until;
  };
  using Versions = std::vector<std::pair<std::string, std::int64_t>>;

  static Versions versions_of(const Updates& updates);
  void owe(const Versions& versions);
  // How many weren't told and aren't owed.
  std::size_t pay(const Versions& versions, const std::vector<RemoteCounts::Told>& told);
  std::vector<std::string> due();

  RemoteCounts& counts_;
  const Load load_;
  const Options options_;
  telemetry::Gauge owed_now_;
  telemetry::Counter forgotten_;
  mutable std::mutex mutex_;
  std::map<std::string, Debt> debts_;
  std::string next_;  // whose turn it is
};

}  // namespace weir::counter

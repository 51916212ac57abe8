// An avalanche: what was cached together expires together.
#include <algorithm>

#include "site/lab/accidents.h"
#include "site/lab/caches.h"
#include "site/lab/loop.h"

namespace weir::site {
namespace {

constexpr Id kKeys = 10'000;
constexpr std::chrono::seconds kTtl{600}, kTick{1};
constexpr double kJitter = 0.1;
constexpr std::chrono::seconds kQuiet{500};  // nothing expires before: 600 s less ten percent is 540 s
constexpr int kTicks = 200;                  // until long after the last has expired

struct Seen {
  std::uint64_t loads = 0, peak = 0, ticks = 0;  // peak: in one tick; ticks: those with loads
};

template <class Cache>
boost::asio::awaitable<void> read_all(Cache& cache) {
  for (Id key = 1; key <= kKeys; ++key) co_await cache.get(key);
}

template <class Cache>
Seen watch(Cache& cache, SmallStore& store, ManualClock& clock, boost::asio::io_context& io) {
  finish(io, read_all(cache));  // all are cached at the same moment
  const std::uint64_t warm_up = store.loads();
  clock.advance(kQuiet);
  Seen seen;
  for (int tick = 0; tick < kTicks; ++tick) {
    clock.advance(kTick);
    const std::uint64_t before = store.loads();
    finish(io, read_all(cache));
    const std::uint64_t now = store.loads() - before;
    seen.peak = std::max(seen.peak, now);
    if (now > 0) ++seen.ticks;
  }
  seen.loads = store.loads() - warm_up;
  return seen;
}

void fill(SmallStore& store) {
  for (Id key = 1; key <= kKeys; ++key) store.write(key, "row");
}

Seen without_cure() {
  SmallStore store;
  fill(store);
  ManualClock clock;
  boost::asio::io_context io;
  NaiveCacheAside cache(store, clock, kTtl);
  return watch(cache, store, clock, io);
}

Seen with_cure() {
  SmallStore store;
  fill(store);
  ManualClock clock;
  boost::asio::io_context io;
  GuardedCache cache({.name = "lab", .ttl = kTtl, .jitter = kJitter, .clock = &clock}, loads_of(store),
                     io.get_executor());
  return watch(cache, store, clock, io);
}

Outcome run() {
  const Seen bad = without_cure(), good = with_cure();
  return {.held = bad.peak == kKeys && good.peak <= kKeys / 50 && good.loads == kKeys,
          .figures = {{"loads", "loads, all seconds together", bad.loads, good.loads},
                      {"most_loads_in_one_second", "most loads in one second", bad.peak, good.peak},
                      {"seconds_with_loads", "seconds with any load", bad.ticks, good.ticks}}};
}

}  // namespace

Accident avalanche() {
  return {
      .name = "avalanche",
      .title = "what was cached together expires together",
      .before =
          "10,000 keys were cached at the same moment for 600 s, and all are read every second (of a clock "
          "that the lab moves).",
      .without = "plain cache-aside, the same TTL for every key",
      .with = "ReadThrough, whose TTLs are jittered: ten percent up or down",
      .after =
          "The same number of loads, but spread over two minutes instead of falling on the store in one "
          "second; the exact peak changes with chance from run to run.",
      .header = "weir/cache/ttl.h",
      .run = run};
}

}  // namespace weir::site

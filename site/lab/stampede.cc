// A stampede: a hot key expires, and everybody loads it at once.
#include <boost/asio/detached.hpp>

#include "site/lab/accidents.h"
#include "site/lab/caches.h"
#include "site/lab/loop.h"

namespace weir::site {
namespace {

constexpr Id kHot = 1;
constexpr std::uint64_t kReaders = 100;
constexpr std::chrono::milliseconds kLoadTakes{50};
constexpr std::chrono::minutes kTtl{10};

struct Seen {
  std::uint64_t answered = 0, loads = 0, at_once = 0;
};

template <class Cache>
boost::asio::awaitable<void> read(Cache& cache, std::uint64_t& answered) {
  if (co_await cache.get(kHot)) ++answered;
}

template <class Cache>
Seen crowd(boost::asio::io_context& io, Cache& cache, SmallStore& store, ManualClock& clock) {
  finish(io, cache.get(kHot));
  clock.advance(2 * kTtl);  // it has expired
  const std::uint64_t loads_before = store.loads();
  Seen seen;
  for (std::uint64_t i = 0; i < kReaders; ++i)
    boost::asio::co_spawn(io, read(cache, seen.answered), boost::asio::detached);
  run_out(io);
  seen.loads = store.loads() - loads_before;
  seen.at_once = store.most_at_once();
  return seen;
}

Seen without_cure() {
  ManualClock clock;
  SmallStore store(kLoadTakes);
  store.write(kHot, "hot");
  boost::asio::io_context io;
  NaiveCacheAside cache(store, clock, kTtl);
  return crowd(io, cache, store, clock);
}

Seen with_cure() {
  ManualClock clock;
  SmallStore store(kLoadTakes);
  store.write(kHot, "hot");
  boost::asio::io_context io;
  GuardedCache cache({.name = "lab", .ttl = kTtl, .load_timeout = kGiveUp, .clock = &clock}, loads_of(store),
                     io.get_executor());
  return crowd(io, cache, store, clock);
}

Outcome run() {
  const Seen bad = without_cure(), good = with_cure();
  return {.held = bad.loads == kReaders && good.loads == 1 && good.answered == kReaders,
          .figures = {{"readers", "readers at the same moment", kReaders, kReaders},
                      {"answered", "readers who got the value", bad.answered, good.answered},
                      {"loads", "loads that the store saw", bad.loads, good.loads},
                      {"loads_at_once", "of them at the same time", bad.at_once, good.at_once}}};
}

}  // namespace

Accident stampede() {
  return {.name = "stampede",
          .title = "a hot key expires and everybody loads it",
          .before =
              "A hot key has just expired; 100 readers ask for it at once, and a load takes the store 50 ms.",
          .without = "plain cache-aside: look, load, set",
          .with = "ReadThrough, whose single flight lets one load and the others wait for it",
          .after =
              "Every reader found the cache empty, so each went to the store; with single flight only the "
              "first did, and all got its value.",
          .header = "weir/cache/single_flight.h",
          .run = run};
}

}  // namespace weir::site

// The cache goes down: what it kept from the store comes to the store.
#include <algorithm>
#include <boost/asio/detached.hpp>
#include <memory>

#include "site/lab/accidents.h"
#include "site/lab/caches.h"
#include "site/lab/loop.h"
#include "site/lab/tired_store.h"
#include "weir/cache/memory_remote.h"
#include "weir/cache/pause.h"

namespace weir::site {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kAtEase = 20;  // loads at once that the store does without slowing down
constexpr auto kLoadTakes = 8ms;       // then; 2,500 a second in all
constexpr int kMilliseconds = 500;     // as long as this the readers come ...
constexpr Id kKeysEach = 4;            // ... in each for so many keys
constexpr int kReadersEach = 2;        // and for each of these so many: 2,000 keys and 4,000 reads in all
constexpr std::size_t kPlaces = 16;    // of the bulkhead
constexpr std::chrono::milliseconds kWait = 100ms;

struct Seen {
  std::uint64_t loads = 0, most_at_once = 0, refused = 0, slowest_ms = 0;
};

// What both sides stand on: a remote cache which is down.
struct World {
  World() { level->set_trouble({.refuses = true}); }
  cache::SimulatedTime time;
  boost::asio::io_context io;
  TiredStore store{time, kLoadTakes, kAtEase};
  std::shared_ptr<cache::MemoryRemote> level =
      std::make_shared<cache::MemoryRemote>(cache::MemoryRemoteOptions{
          .name = "lab_level", .lease_ttl = kGiveUp, .clock = &time, .pause = time.pause()});
};

// As it is often written: whatever the cache doesn't give comes from the store.
class NaiveRemoteAside {
 public:
  explicit NaiveRemoteAside(World& world) : world_(world) {}
  boost::asio::awaitable<std::optional<std::string>> get(Id key) {
    std::optional<cache::RemoteLevel::Hit> hit;
    try {
      hit = co_await world_.level->get(std::to_string(key));
    } catch (const Unavailable&) {
      hit.reset();
    }
    if (hit) co_return hit->value;
    co_return co_await world_.store.load(key);
  }

 private:
  World& world_;
};

template <class Cache>
boost::asio::awaitable<void> read(Cache& cache, Id key, const Clock& clock, Seen& seen) {
  const SteadyTime began = clock.steady_now();
  try {
    co_await cache.get(key);
  } catch (const Unavailable&) {
    ++seen.refused;
  }
  const auto took = std::chrono::ceil<std::chrono::milliseconds>(clock.steady_now() - began);
  seen.slowest_ms = std::max(seen.slowest_ms, static_cast<std::uint64_t>(took.count()));
}

template <class Cache>
Seen outage(World& world, Cache& cache) {
  Seen seen;
  Id key = 0;
  for (int at = 0; at < kMilliseconds; ++at) {
    for (Id each = 0; each < kKeysEach; ++each) {
      ++key;
      for (int reader = 0; reader < kReadersEach; ++reader)
        boost::asio::co_spawn(world.io, read(cache, key, world.time, seen), boost::asio::detached);
    }
    pass(world.io, world.time, 1ms);
  }
  pass(world.io, world.time, kGiveUp);  // until the last has been answered
  seen.loads = world.store.loads();
  seen.most_at_once = world.store.most_at_once();
  return seen;
}

Seen without_cure() {
  World world;
  NaiveRemoteAside cache(world);
  return outage(world, cache);
}

Seen with_cure(cache::OnRemoteError answer) {
  World world;
  GuardedCache cache(
      {.name = "lab",
       .load_timeout = kGiveUp,
       .remote = {.level = world.level,
                  .codec = cache::text_codec<Id>(),
                  .on_error = answer,
                  .bulkhead_loads = kPlaces,
                  .bulkhead_waiting = 10'000,
                  .bulkhead_wait = kWait},
       .clock = &world.time,
       .pause = world.time.pause()},
      [&world](Id key) { return world.store.load(key); }, world.io.get_executor());
  return outage(world, cache);
}

void add_figures(Outcome& outcome, const std::string& answer, const Seen& bad, const Seen& good) {
  const auto add = [&](const char* key, const char* label, std::uint64_t Seen::* figure) {
    outcome.figures.push_back({answer + "_" + key, answer + ": " + label, bad.*figure, good.*figure});
  };
  add("loads", "loads that the store saw", &Seen::loads);
  add("most_at_once", "most of them at the same time", &Seen::most_at_once);
  add("refused", "reads that were refused, of 4,000", &Seen::refused);
  add("slowest_ms", "the slowest read, in ms", &Seen::slowest_ms);
}

Outcome run() {
  const Seen bad = without_cure();
  const Seen bulkhead = with_cure(cache::OnRemoteError::bulkhead);
  const Seen availability = with_cure(cache::OnRemoteError::availability);
  const Seen protect = with_cure(cache::OnRemoteError::protect);
  Outcome outcome;
  const bool happened = bad.most_at_once > 10 * kAtEase;
  const bool cured = bulkhead.most_at_once <= kPlaces && bulkhead.loads > 0 &&
                     bulkhead.slowest_ms <= static_cast<std::uint64_t>((kWait + 2 * kLoadTakes) / 1ms);
  outcome.held = happened && cured && availability.refused == 0 && protect.loads == 0;
  add_figures(outcome, "bulkhead", bad, bulkhead);
  add_figures(outcome, "availability", bad, availability);
  add_figures(outcome, "protect", bad, protect);
  return outcome;
}

}  // namespace

Accident cache_down() {
  return {.name = "cache-down",
          .title = "the cache dies, and the database follows",
          .before =
              "The cache that all nodes share is down; in half a second 4,000 reads come, two for each of "
              "2,000 keys, and "
              "the store does 1,250 loads in that time (the time is simulated).",
          .without = "whatever the cache doesn't give comes from the store",
          .with = "ReadThrough under each answer to a failing remote level; bulkhead is the default",
          .after =
              "Without a bound the loads pile up in the store, and everybody waits for it; with the bulkhead "
              "it never "
              "has more than it can do, and who finds no place in time is told so, soon. availability "
              "refuses nobody "
              "and piles up too (one load a key, at least); protect keeps the store out of it and refuses "
              "every read "
              "that the node can't answer by itself.",
          .header = "weir/cache/read_through_options.h (OnRemoteError) and weir/cache/bulkhead.h",
          .run = run};
}

}  // namespace weir::site

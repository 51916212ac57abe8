// The long absence: "does not exist" is cached, and stays true in the cache after the row was created.
#include "site/lab/accidents.h"
#include "site/lab/caches.h"
#include "site/lab/loop.h"

namespace weir::site {
namespace {

constexpr Id kHere = 1, kElsewhere = 2;
constexpr std::chrono::seconds kTtl{600}, kNegativeTtl{5}, kTick{1};

struct Seen {
  std::uint64_t here = 0, elsewhere = 0;  // seconds from the creation until a reader sees the row
};

// What a cache stands on; the loads end before what they refer to.
struct World {
  SmallStore store;
  ManualClock clock;
  boost::asio::io_context io;
};

// `created`: what creating the row tells the cache. A row of another node tells nothing.
template <class Cache, class Created>
std::uint64_t seconds_until_seen(World& world, Cache& cache, Id key, Created created) {
  auto& [store, clock, io] = world;
  finish(io, cache.get(key));  // somebody looks too early: the absence is cached
  store.write(key, "row");
  created();
  std::uint64_t seconds = 0;
  for (; !finish(io, cache.get(key)); ++seconds) clock.advance(kTick);
  return seconds;
}

Seen without_cure() {
  World world;
  NaiveCacheAside cache(world.store, world.clock, kTtl, /*keeps_absences=*/true);
  const auto nothing = [] {};
  return {seconds_until_seen(world, cache, kHere, nothing),
          seconds_until_seen(world, cache, kElsewhere, nothing)};
}

Seen with_cure() {
  World world;
  GuardedCache cache(
      {.name = "lab", .ttl = kTtl, .jitter = 0, .negative_ttl = kNegativeTtl, .clock = &world.clock},
      loads_of(world.store), world.io.get_executor());
  return {seconds_until_seen(world, cache, kHere, [&] { cache.invalidate(kHere); }),
          seconds_until_seen(world, cache, kElsewhere, [] {})};
}

Outcome run() {
  const Seen bad = without_cure(), good = with_cure();
  const std::uint64_t ttl = kTtl.count(), short_ttl = kNegativeTtl.count();
  return {.held = bad.here == ttl && good.here == 0 && good.elsewhere <= short_ttl,
          .figures = {{"seconds_unseen", "seconds until the new row is seen", bad.here, good.here},
                      {"seconds_unseen_elsewhere", "the same, when another node created it", bad.elsewhere,
                       good.elsewhere}}};
}

}  // namespace

Accident long_absence() {
  return {
      .name = "long-absence",
      .title = "\"does not exist\" outlives the creation of the row",
      .before =
          "A reader asks for a row just before it is created; the cache keeps the answer \"does not exist\".",
      .without = "the absence is kept like a value, 600 s; creating the row does not touch the cache",
      .with =
          "ReadThrough: absences have a short TTL of their own (5 s here), and creating a row invalidates it",
      .after =
          "The new row was there, and nobody saw it for ten minutes; cleared by its creation it is seen at "
          "once, and where the creation cannot clear it, after the short TTL.",
      .header = "weir/cache/read_through.h (negative_ttl, invalidate)",
      .run = run};
}

}  // namespace weir::site

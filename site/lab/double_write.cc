// The double write: two writers update store and cache in different orders, and the two stay apart.
#include <algorithm>
#include <array>
#include <functional>

#include "site/lab/accidents.h"
#include "site/lab/caches.h"
#include "site/lab/loop.h"

namespace weir::site {
namespace {

constexpr std::chrono::minutes kTtl{10};

// One write in its steps; a step is done at once, what other writers do comes between two of them.
using Steps = std::vector<std::function<void()>>;

struct Seen {
  std::uint64_t orders = 0, apart = 0;
  std::uint64_t cached = 0;  // orders after which a reader needs no load: emptying the cache would be no cure
};

std::string order_of(std::size_t steps) {
  return std::string(steps, 'A') + std::string(steps, 'B');
}

// Plays every order in which the steps of two writers can interleave, each over a key of its own, and counts
// those after which a reader gets something else than the store has.
template <class Cache, class Write>
Seen play(boost::asio::io_context& io, Cache& cache, SmallStore& store, Write write) {
  Seen seen;
  std::string order = order_of(write(0, "A").size());
  do {
    const Id key = ++seen.orders;
    std::array<Steps, 2> writers{write(key, "A"), write(key, "B")};
    std::array<std::size_t, 2> next{};
    for (const char who : order) {
      const std::size_t writer = who == 'A' ? 0 : 1;
      writers[writer][next[writer]++]();
    }
    const std::uint64_t loads = store.loads();
    const auto read = finish(io, cache.get(key));
    if (!read || *read != store.look(key)) ++seen.apart;
    if (store.loads() == loads) ++seen.cached;
  } while (std::ranges::next_permutation(order).found);
  return seen;
}

Seen without_cure() {
  SmallStore store;
  const ManualClock clock;
  boost::asio::io_context io;
  NaiveCacheAside cache(store, clock, kTtl);
  return play(io, cache, store, [&](Id key, const std::string& value) {
    return Steps{[&store, key, value] { store.write(key, value); },
                 [&cache, key, value] { cache.set(key, value); }};
  });
}

Seen with_cure() {
  SmallStore store;
  const ManualClock clock;
  boost::asio::io_context io;
  GuardedCache cache({.name = "lab", .ttl = kTtl, .clock = &clock}, loads_of(store), io.get_executor());
  return play(io, cache, store, [&](Id key, const std::string& value) {
    auto lease = std::make_shared<GuardedCache::Lease>();
    return Steps{[&cache, key, lease] { *lease = cache.lease(key); },
                 [&store, key, value] { store.write(key, value); },
                 [&cache, key, lease] { cache.invalidate(key, *lease); },
                 [&cache, key, lease, value] {
                   cache.fill(key, std::move(*lease), std::make_shared<const std::string>(value));
                 }};
  });
}

Outcome run() {
  const Seen bad = without_cure(), good = with_cure();
  return {.held = bad.apart > 0 && good.apart == 0 && good.cached > 0,
          .figures = {{"orders", "orders in which the steps can interleave (all are played)", bad.orders,
                       good.orders},
                      {"apart", "of them, store and cache differ after", bad.apart, good.apart},
                      {"cached", "of them, a reader finds the value in the cache", bad.cached, good.cached}}};
}

}  // namespace

Accident double_write() {
  return {
      .name = "double-write",
      .title = "two writers leave the cache different from the store",
      .before =
          "Two writers change the same key at the same time; the lab plays every order in which their steps "
          "can come.",
      .without = "each writer updates the store, then sets the cache (2 steps)",
      .with =
          "ReadThrough's order: take a lease, update the store, invalidate, fill under the lease (4 steps)",
      .after =
          "Store A, store B, set B, set A: the store has B and the cache keeps A for the whole TTL; with "
          "leases a writer's fill is refused when another write came between, and the next reader loads.",
      .header = "weir/cache/read_through.h (the order of a write stands at its top)",
      .run = run};
}

}  // namespace weir::site

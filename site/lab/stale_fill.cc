// A stale fill: a read that began before a write puts the old value back after it.
#include <boost/asio/detached.hpp>

#include "site/lab/accidents.h"
#include "site/lab/caches.h"
#include "site/lab/loop.h"

namespace weir::site {
namespace {

constexpr Id kKey = 1;
constexpr std::chrono::minutes kTtl{10};

struct Seen {
  std::string store, reader;
};

// `forget`: what the writer does to the cache after its commit.
template <class Cache, class Forget>
Seen race(boost::asio::io_context& io, Cache& cache, SmallStore& store, Forget forget) {
  Hold hold(io.get_executor());
  store.write(kKey, "old");
  store.hold_at(&hold);
  boost::asio::co_spawn(io, cache.get(kKey), boost::asio::detached);
  settle(io);  // the slow reader has read "old" and hasn't come back yet
  store.hold_at(nullptr);
  store.write(kKey, "new");
  forget();
  hold.let_go();
  settle(io);  // the slow reader fills
  const auto later = finish(io, cache.get(kKey));
  return {store.look(kKey), later ? *later : ""};
}

Seen without_cure() {
  SmallStore store;
  const ManualClock clock;
  boost::asio::io_context io;
  NaiveCacheAside cache(store, clock, kTtl);
  return race(io, cache, store, [&] { cache.erase(kKey); });
}

Seen with_cure() {
  SmallStore store;
  const ManualClock clock;
  boost::asio::io_context io;
  GuardedCache cache({.name = "lab", .ttl = kTtl, .clock = &clock}, loads_of(store), io.get_executor());
  return race(io, cache, store, [&] { cache.invalidate(kKey); });
}

Outcome run() {
  const Seen bad = without_cure(), good = with_cure();
  return {.held = bad.reader == "old" && good.reader == "new",
          .figures = {{"store_has", "the store has", bad.store, good.store},
                      {"reader_gets", "a reader who comes later gets", bad.reader, good.reader},
                      {"agree", "they agree", bad.store == bad.reader, good.store == good.reader}}};
}

}  // namespace

Accident stale_fill() {
  return {
      .name = "stale-fill",
      .title = "a slow read puts the old value back after a write",
      .before =
          "A reader loads \"old\" and is slow; meanwhile a writer commits \"new\" and removes the key from "
          "the cache; then the slow reader puts what it has read into the cache.",
      .without = "plain cache-aside: the writer deletes the key after its commit",
      .with = "ReadThrough: a load fills only under a lease, and a write takes the lease away",
      .after =
          "Deleting the key was not enough: the old value came back and would have stayed for the whole TTL; "
          "with a lease the late fill is refused, and the next reader loads the new value.",
      .header = "weir/cache/lease_table.h",
      .run = run};
}

}  // namespace weir::site

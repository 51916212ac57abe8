// Penetration: what does not exist is never cached, so every question for it reaches the store.
#include "site/lab/accidents.h"
#include "site/lab/caches.h"
#include "site/lab/loop.h"
#include "weir/base/hash.h"
#include "weir/filter/bloom_filter.h"

namespace weir::site {
namespace {

constexpr Id kRows = 10'000;  // with the ids 1 .. kRows
constexpr Id kAbsent = 1'000'000;
constexpr std::uint64_t kRepeats = 1'000;
constexpr Id kInvented = 10'000;
constexpr double kFalsePositives = 0.01;
constexpr std::chrono::minutes kTtl{10};

struct Seen {
  std::uint64_t same_key = 0, invented = 0;  // loads
  bool rows_found = true;                    // a cure must not hide what exists
};

template <class Cache>
boost::asio::awaitable<Seen> ask(Cache& cache, SmallStore& store) {
  Seen seen;
  for (std::uint64_t i = 0; i < kRepeats; ++i) co_await cache.get(kAbsent);
  seen.same_key = store.loads();
  for (Id i = 1; i <= kInvented; ++i) co_await cache.get(kAbsent + i);
  seen.invented = store.loads() - seen.same_key;
  for (Id id = 1; id <= kRows; ++id)
    if (!co_await cache.get(id)) seen.rows_found = false;
  co_return seen;
}

void fill(SmallStore& store) {
  for (Id id = 1; id <= kRows; ++id) store.write(id, "row");
}

Seen without_cure() {
  SmallStore store;
  fill(store);
  const ManualClock clock;
  boost::asio::io_context io;
  NaiveCacheAside cache(store, clock, kTtl);
  return finish(io, ask(cache, store));
}

Seen with_cure() {
  SmallStore store;
  fill(store);
  filter::BloomFilter ids(kRows, kFalsePositives);
  for (Id id = 1; id <= kRows; ++id) ids.insert(mix64(id));
  const auto membership = [&ids](const Id& id) -> boost::asio::awaitable<cache::Membership> {
    // Asked for again and again, an absent id that the filter can't tell from a row: kAbsent plays that part.
    const bool maybe = id == kAbsent || ids.may_contain(mix64(id));
    co_return maybe ? cache::Membership::unknown : cache::Membership::absent;
  };
  const ManualClock clock;
  boost::asio::io_context io;
  GuardedCache cache({.name = "lab", .ttl = kTtl, .membership = membership, .clock = &clock}, loads_of(store),
                     io.get_executor());
  return finish(io, ask(cache, store));
}

Outcome run() {
  const Seen bad = without_cure(), good = with_cure();
  const bool happened = bad.same_key == kRepeats && bad.invented == kInvented;
  const bool cured =
      good.same_key == 1 && good.invented <= static_cast<std::uint64_t>(3 * kFalsePositives * kInvented);
  return {
      .held = happened && cured && good.rows_found,
      .figures = {
          {"same_key_loads", "loads for one absent key, asked for 1,000 times", bad.same_key, good.same_key},
          {"invented_keys_loads", "loads for 10,000 invented keys, each asked for once", bad.invented,
           good.invented},
          {"rows_found", "all 10,000 rows that exist are found", bad.rows_found, good.rows_found}}};
}

}  // namespace

Accident penetration() {
  return {.name = "penetration",
          .title = "keys that do not exist go through the cache to the store",
          .before =
              "Somebody asks 1,000 times for one key that does not exist; then once for each of 10,000 "
              "made-up keys.",
          .without = "plain cache-aside, which keeps only what it finds",
          .with = "ReadThrough, which keeps absences too, behind a Bloom filter of the ids that exist",
          .after =
              "The same absent key costs one load, because the absence itself is cached; that does not help "
              "against keys that are all different, but the filter does, up to its rate of false positives "
              "(1 %).",
          .header =
              "weir/cache/read_through.h and weir/filter/bloom_filter.h; for growing tables "
              "weir/cache/id_filter.h",
          .run = run};
}

}  // namespace weir::site

// Values in place, bounds in weights, and the bars of memory and of the longest call.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/random.h"
#include "weir/cache/local_cache.h"
#include "weir/testing/sanitized.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;
using Cache = FlatCache<std::uint64_t, std::uint64_t>;

TEST(FlatCache, HoldsValuesInPlace) {
  Cache cache({.capacity = 100, .bound = Bound::weights});
  EXPECT_FALSE(cache.find(1));
  EXPECT_TRUE(cache.put(1, 10));
  EXPECT_EQ(cache.find(1), 10U);
  EXPECT_TRUE(cache.put(1, 0));
  EXPECT_EQ(cache.find(1), 0U);
  EXPECT_EQ(cache.weight(), 1U);
  EXPECT_TRUE(cache.update(
      1, [](std::uint64_t v) { return std::optional(v + 5); }, [](std::uint64_t) { return 7U; }));
  EXPECT_EQ(cache.find(1), 5U);
  EXPECT_EQ(cache.weight(), 7U);
  EXPECT_TRUE(cache.erase(1));
  EXPECT_FALSE(cache.find(1));
  EXPECT_EQ(cache.stats().hits, 3U);
  EXPECT_EQ(cache.stats().misses, 2U);
}

TEST(FlatCache, TakesValuesThatOwnMemory) {
  FlatCache<std::string, std::string> cache({.capacity = 3, .bound = Bound::weights});
  for (int i = 0; i < 100; ++i)
    cache.put("a key that owns memory " + std::to_string(i),
              std::string(100, static_cast<char>('a' + i % 26)));
  EXPECT_EQ(cache.size(), 3U);
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    const auto value = cache.find("a key that owns memory " + std::to_string(i));
    if (!value) continue;
    EXPECT_EQ(*value, std::string(100, static_cast<char>('a' + i % 26)));
    ++found;
  }
  EXPECT_EQ(found, 3);
}

TEST(FlatCache, SmallOnesWorkToo) {
  for (const std::size_t capacity : {1U, 2U, 3U, 10U}) {
    Cache cache({.capacity = capacity, .bound = Bound::weights});
    for (std::uint64_t i = 0; i < 1000; ++i) {
      cache.put(i, i);
      ASSERT_EQ(cache.size(), std::min<std::size_t>(capacity, i + 1));
      ASSERT_EQ(cache.find(i), i) << "what was just put, at capacity " << capacity;
      ASSERT_LE(cache.weight(), capacity);
    }
  }
  Cache none({.capacity = 0, .bound = Bound::weights});
  EXPECT_FALSE(none.put(1, 1));
  EXPECT_FALSE(none.find(1));
}

TEST(FlatCache, AHeavyEntryFindsRoomAcrossShards) {
  Cache cache({.capacity = 8000, .bound = Bound::weights, .shards = 8});
  for (std::uint64_t i = 0; i < 20'000; ++i) cache.put(i, i);
  EXPECT_GT(cache.size(), 7900U);
  EXPECT_TRUE(cache.put(1, 1, 5000));
  EXPECT_EQ(cache.find(1), 1U);
  EXPECT_LE(cache.weight(), 8000U);
  EXPECT_GT(cache.weight(), 7000U);
  EXPECT_TRUE(cache.put(2, 2, 8000));
  EXPECT_EQ(cache.find(2), 2U);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_FALSE(cache.put(3, 3, 8001));
  for (std::uint64_t i = 0; i < 50'000; ++i) {  // and each shard gets its share back
    cache.put(i, i);
    ASSERT_LE(cache.weight(), 8000U);
  }
  EXPECT_GT(cache.size(), 7500U);
}

#if defined(__GLIBC__) && !WEIR_SANITIZED
std::size_t allocated() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(FlatCacheMemory, AHundredEntriesTakeAtMost32KiB) {
  const std::size_t before = allocated();
  auto cache = std::make_unique<Cache>(LocalCacheOptions{.capacity = 100, .bound = Bound::weights});
  for (std::uint64_t i = 0; i < 10'000; ++i)
    if (!cache->find(i % 150)) cache->put(i % 150, i);
  EXPECT_LE(allocated() - before, std::size_t{32} << 10);
}

TEST(FlatCacheMemory, AMillionEntriesTakeAtMost56BytesEach) {
  constexpr std::size_t kEntries = 1'000'000;
  const std::size_t before = allocated();
  auto cache = std::make_unique<Cache>(LocalCacheOptions{.capacity = kEntries, .bound = Bound::weights});
  for (std::uint64_t i = 0; i < kEntries * 5 / 4; ++i)
    if (!cache->find(i)) cache->put(i, i);
  EXPECT_GT(cache->size(), kEntries * 99 / 100);
  EXPECT_LE(static_cast<double>(allocated() - before) / static_cast<double>(cache->size()), 56);
}

// Nothing stops the world: no table is made anew in one call. How long a call takes at most is a row of bench/guard.py.
TEST(FlatCacheMemory, NoInsertionTakesMuchMemoryAtOnce) {
  Cache cache({.capacity = 1'000'000, .bound = Bound::weights});
  std::size_t before = allocated(), most = 0;
  for (std::uint64_t i = 0; i < 1'500'000; ++i) {
    cache.put(i, i);
    const std::size_t after = allocated();
    if (after > before) most = std::max(most, after - before);
    before = after;
  }
  EXPECT_LE(most, std::size_t{256} << 10);
}
#endif

// Random operations against a plain map, by the seqlock's path and by the gate's.
template <class K, class MakeKey>
void run_model(std::uint64_t seed, std::size_t capacity, MakeKey make_key) {
  SCOPED_TRACE(seed);
  struct Entry {
    std::uint64_t value;
    SteadyTime until;
  };
  ManualClock clock;
  Random random(seed);
  FlatCache<K, std::uint64_t> cache({.capacity = capacity,
                                     .bound = Bound::weights,
                                     .shards = 1U << random.below(4),
                                     .clock = &clock,
                                     .seed = seed});
  std::map<std::uint64_t, Entry> model;
  std::size_t found = 0;
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const std::uint64_t key = random.below(300);
    const std::uint64_t choice = random.below(10);
    if (choice < 3) {
      const bool timed = random.chance(0.5);
      const Duration ttl = timed ? Duration(random.below(300'000'000)) : kNever;
      const std::size_t weight = random.chance(0.3) ? 1 + random.below(5) : 1;
      const bool kept = cache.put(make_key(key), step, weight, ttl);
      ASSERT_EQ(kept, ttl > Duration::zero() && weight <= capacity);
      model[key] = {step, timed ? clock.steady_now() + ttl : SteadyTime::max()};
    } else if (choice == 3) {
      cache.erase(make_key(key));
      model.erase(key);
    } else if (choice == 4) {
      clock.advance(std::chrono::milliseconds(random.below(10)));
    } else {
      const auto hit = cache.find(make_key(key));
      const auto at = model.find(key);
      const bool alive = at != model.end() && at->second.until > clock.steady_now();
      if (hit) {
        ASSERT_TRUE(alive);
        ASSERT_EQ(*hit, at->second.value);
        ++found;
      } else if (capacity > 300 * 5) {
        ASSERT_FALSE(alive);
      }
    }
    ASSERT_LE(cache.weight(), capacity);
  }
  EXPECT_GT(found, capacity > 20 ? 500U : 10U);
  cache.clear();
  EXPECT_EQ(cache.weight(), 0U);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(FlatCacheModel, AgreesWithAMap) {
  const auto number = [](std::uint64_t key) { return key; };
  const auto text = [](std::uint64_t key) { return "a key too long to lie in place " + std::to_string(key); };
  for (const std::size_t capacity : {10'000U, 400U, 100U, 7U}) {
    for (int round = 0; round < 5; ++round) {
      run_model<std::uint64_t>(secure_random64(), capacity, number);
      run_model<std::string>(secure_random64(), capacity, text);
    }
  }
}

// Each value tells its key twice, so that a torn or a foreign one shows.
template <class K, class V, class MakeKey, class MakeValue, class Check>
void run_threads(std::uint64_t seed, MakeKey make_key, MakeValue make_value, Check check) {
  SCOPED_TRACE(seed);
  constexpr std::size_t kCapacity = 600;
  FlatCache<K, V> cache({.capacity = kCapacity, .bound = Bound::weights, .shards = 4});
  std::atomic<bool> stop{false};
  std::thread watcher([&] {
    while (!stop) ASSERT_LE(cache.weight(), kCapacity);
  });
  std::atomic<std::size_t> found{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Random random(seed + t);
      for (int i = 0; i < 30'000; ++i) {
        const std::uint64_t key = std::min(random.below(1500), random.below(1500));
        const std::uint64_t choice = random.below(16);
        if (choice < 3) {
          cache.put(make_key(key), make_value(key), random.chance(0.01) ? 200 : 1 + random.below(2),
                    random.chance(0.2) ? Duration(random.below(100'000)) : kNever);
        } else if (choice == 3) {
          cache.erase(make_key(key));
        } else if (const auto value = cache.find(make_key(key))) {
          check(key, *value);
          found.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  stop = true;
  watcher.join();
  EXPECT_GT(found, 10'000U);
  const auto stats = cache.stats();
  EXPECT_EQ(stats.hits, found);
  cache.clear();
  EXPECT_EQ(cache.weight(), 0U);
}

struct Twice {
  std::uint64_t key, again, spare[4];
};

TEST(FlatCacheConcurrency, ReadersBySequenceSeeWholes) {
  static_assert(detail::Reading<std::uint64_t, Twice>::kBySequence);
  run_threads<std::uint64_t, Twice>(
      secure_random64(), [](std::uint64_t key) { return key; },
      [](std::uint64_t key) { return Twice{key, ~key, {}}; },
      [](std::uint64_t key, const Twice& value) {
        ASSERT_EQ(value.key, key);
        ASSERT_EQ(value.again, ~key);
      });
}

TEST(FlatCacheConcurrency, ReadersByTheGateSeeWholes) {
  using Shared = std::shared_ptr<const std::string>;
  static_assert(!detail::Reading<std::string, Shared>::kBySequence);
  const auto text = [](std::uint64_t key) { return "a key too long to lie in place " + std::to_string(key); };
  run_threads<std::string, Shared>(
      secure_random64(), text,
      [&](std::uint64_t key) { return std::make_shared<const std::string>(text(key)); },
      [&](std::uint64_t key, const std::string& value) { ASSERT_EQ(value, text(key)); });
}

}  // namespace
}  // namespace weir::cache

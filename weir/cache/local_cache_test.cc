#include "weir/cache/local_cache.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/random.h"
#include "weir/testing/sanitized.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;
using Cache = LocalCache<int, int>;

std::shared_ptr<const int> value(int v) {
  return std::make_shared<const int>(v);
}

class LocalCacheTest : public testing::Test {
 protected:
  ManualClock clock_;
  LocalCacheOptions options(std::size_t capacity, unsigned shards = 0) {
    return {.capacity = capacity, .shards = shards, .clock = &clock_};
  }
};

TEST_F(LocalCacheTest, FindsWhatWasPut) {
  Cache cache(options(1 << 20));
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_TRUE(cache.put(1, value(10), 4, 1min));
  EXPECT_TRUE(cache.put(2, value(20), 4, 1min));
  EXPECT_EQ(*cache.find(1), 10);
  EXPECT_TRUE(cache.put(1, value(11), 4, 1min));
  EXPECT_EQ(*cache.find(1), 11);
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_TRUE(cache.erase(1));
  EXPECT_FALSE(cache.erase(1));
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_EQ(*cache.find(2), 20);
  cache.clear();
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_EQ(cache.weight(), 0U);
}

TEST_F(LocalCacheTest, SharesValuesAndLetsThemOutliveTheEntry) {
  Cache cache(options(1 << 20));
  const auto mine = value(5);
  cache.put(1, mine, 4, 1min);
  EXPECT_EQ(cache.find(1).get(), mine.get());
  EXPECT_EQ(mine.use_count(), 2);
  cache.clear();
  EXPECT_EQ(mine.use_count(), 1);
}

TEST_F(LocalCacheTest, ForgetsAfterTheTtlAndNotBefore) {
  Cache cache(options(1 << 20));
  cache.put(1, value(1), 4, 10s);
  clock_.advance(10s - 1ns);
  EXPECT_NE(cache.find(1), nullptr);  // reading doesn't prolong
  clock_.advance(1ns);
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_EQ(cache.weight(), 0U);
  EXPECT_EQ(cache.stats().expirations, 1U);
  // What is put after an expiry is visible.
  cache.put(1, value(2), 4, 10s);
  EXPECT_EQ(*cache.find(1), 2);
}

TEST_F(LocalCacheTest, ATtlOfZeroOrLessStoresNothingAndKeepsNothingOlder) {
  Cache cache(options(1 << 20));
  for (const Duration ttl : {Duration(0), Duration(-1), Duration::min()}) {
    cache.put(1, value(1), 4, 1min);
    EXPECT_FALSE(cache.put(1, value(2), 4, ttl));
    EXPECT_EQ(cache.find(1), nullptr);
  }
  EXPECT_EQ(cache.weight(), 0U);
}

TEST_F(LocalCacheTest, ForeverIsForever) {
  Cache cache(options(1 << 20));
  cache.put(1, value(1), 4, kNever);
  cache.put(2, value(1), 4, kNever - 1s);  // would overflow the clock
  clock_.advance(24h * 365 * 100);
  EXPECT_NE(cache.find(1), nullptr);
  EXPECT_NE(cache.find(2), nullptr);
}

TEST_F(LocalCacheTest, KnowsAbsencesFromMisses) {
  Cache cache(options(1 << 20));
  cache.put(1, nullptr, 0, 5s);
  auto hit = cache.look(1);
  EXPECT_TRUE(hit.known);
  EXPECT_EQ(hit.value, nullptr);
  EXPECT_FALSE(cache.look(2).known);
  clock_.advance(5s);
  EXPECT_FALSE(cache.look(1).known);
  EXPECT_EQ(cache.stats().negative_hits, 1U);
  EXPECT_EQ(cache.stats().misses, 2U);
}

TEST_F(LocalCacheTest, PastItsTimeOneReaderRefreshes) {
  Cache cache(options(1 << 20));
  cache.put(1, value(1), 4, 1min, 10s);
  EXPECT_FALSE(cache.look(1).stale);
  clock_.advance(10s);
  auto first = cache.look(1, 2s), second = cache.look(1, 2s);
  EXPECT_TRUE(first.refresh);
  EXPECT_EQ(*first.value, 1);
  EXPECT_FALSE(second.refresh);
  EXPECT_EQ(*second.value, 1);
  clock_.advance(2s);  // the refresh has failed: it isn't the last one
  EXPECT_TRUE(cache.look(1, 2s).refresh);
  cache.put(1, value(2), 4, 1min, 10s);
  EXPECT_FALSE(cache.look(1).stale);
}

TEST_F(LocalCacheTest, PeekingLeavesNoTrace) {
  Cache cache(options(1 << 20));
  cache.put(1, value(1), 4, 1min, 10s);
  clock_.advance(10s);
  EXPECT_TRUE(cache.peek(1).stale);
  EXPECT_FALSE(cache.peek(1).refresh);
  EXPECT_TRUE(cache.look(1).refresh);
  clock_.advance(50s);
  EXPECT_FALSE(cache.peek(1).known);
  EXPECT_EQ(cache.stats().hits + cache.stats().misses, 0U);
}

TEST_F(LocalCacheTest, IsNeverHeavierThanItsCapacity) {
  constexpr std::size_t kEach = Cache::kEntryOverhead + 100;
  Cache cache(options(10 * kEach));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(cache.put(i, value(i), 100, 1min));
    ASSERT_LE(cache.weight(), cache.capacity());
  }
  EXPECT_EQ(cache.size(), 10U);
  EXPECT_EQ(cache.weight(), 10 * kEach);
  EXPECT_EQ(cache.stats().evictions, 990U);
  // One that fills it alone, one that is too big: the old value of its key must not stay.
  EXPECT_TRUE(cache.put(5, value(5), 10 * kEach - Cache::kEntryOverhead, 1min));
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_FALSE(cache.put(5, value(6), 10 * kEach - Cache::kEntryOverhead + 1, 1min));
  EXPECT_EQ(cache.find(5), nullptr);
  EXPECT_FALSE(cache.put(5, value(6), SIZE_MAX, 1min));
  EXPECT_EQ(cache.weight(), 0U);
}

// A new value that needs others to go is put like any other: it is not lost on the way.
TEST_F(LocalCacheTest, AReplacementMayBeHeavier) {
  auto few = options(10, 1);
  few.bound = Bound::weights;
  Cache cache(few);
  for (int key = 0; key < 10; ++key) EXPECT_TRUE(cache.put(key, value(key)));
  for (int key = 0; key < 10; ++key) {
    EXPECT_TRUE(cache.put(key, value(100 + key), 5));
    const auto hit = cache.look(key);
    ASSERT_TRUE(hit.known && hit.value) << key;
    EXPECT_EQ(*hit.value, 100 + key);
    EXPECT_LE(cache.weight(), 10U);
  }
}

TEST_F(LocalCacheTest, KeepsWhatIsReadAndDropsWhatIsNot) {
  constexpr std::size_t kEach = Cache::kEntryOverhead;
  Cache cache(options(100 * kEach));
  for (int i = 0; i < 10; ++i) cache.put(i, value(i), 0, 1min);
  for (int i = 100; i < 2000; ++i) {
    cache.put(i, value(i), 0, 1min);
    for (int hot = 0; hot < 10; ++hot) ASSERT_NE(cache.find(hot), nullptr) << i;
  }
}

TEST_F(LocalCacheTest, TheDeadMakeRoomWithoutAVisitor) {
  Cache cache(options(1 << 20));
  for (int i = 0; i < 500; ++i) cache.put(i, value(i), 0, 1s);
  clock_.advance(1s);
  for (int i = 1000; i < 1600; ++i) cache.put(i, value(i), 0, 1h);
  EXPECT_LE(cache.size(), 610U);
  EXPECT_EQ(cache.stats().evictions, 0U);
}

TEST_F(LocalCacheTest, UpdatesOnlyWhatIsThere) {
  Cache cache(options(1 << 20));
  const auto increment = [](const int& v) { return value(v + 1); };
  const auto weigh = [](const int& v) { return static_cast<std::size_t>(v); };
  EXPECT_FALSE(cache.update(1, increment, weigh));
  cache.put(1, value(10), 10, 10s);
  const std::size_t weight = cache.weight();
  clock_.advance(9s);
  EXPECT_TRUE(cache.update(1, increment, weigh));
  EXPECT_EQ(*cache.find(1), 11);
  EXPECT_EQ(cache.weight(), weight + 1);
  EXPECT_FALSE(cache.update(1, [](const int&) { return nullptr; }, weigh));
  EXPECT_TRUE(cache.update(1, [](const int&) { return value(3); }, weigh));
  EXPECT_EQ(cache.weight(), weight - 7);
  EXPECT_FALSE(cache.update(1, [](const int&) { return value(2'000'000); }, weigh));
  EXPECT_EQ(cache.find(1), nullptr);  // too heavy now; the old value would be a lie
  EXPECT_EQ(cache.weight(), 0U);
  cache.put(1, value(1), 1, 1s);
  clock_.advance(1s);
  EXPECT_FALSE(cache.update(1, increment, weigh));
  cache.put(1, nullptr, 1, 1s);
  EXPECT_FALSE(cache.update(1, increment, weigh));
}

TEST_F(LocalCacheTest, ErasesWhatAPredicateChooses) {
  LocalCache<std::string, int> cache(options(1 << 20));
  for (int i = 0; i < 100; ++i) cache.put((i % 2 ? "odd:" : "even:") + std::to_string(i), value(i), 4, 1min);
  EXPECT_EQ(cache.erase_if([](const std::string& key, const auto&) { return key.starts_with("odd:"); }), 50U);
  EXPECT_EQ(cache.size(), 50U);
  EXPECT_EQ(cache.find("odd:1"), nullptr);
  EXPECT_EQ(*cache.find("even:2"), 2);
}

TEST_F(LocalCacheTest, ALongKeyIsWeighedToo) {
  LocalCache<std::string, int> cache(options(1 << 20));
  cache.put("short", value(1), 0, 1min);
  const std::size_t small = cache.weight();
  cache.put(std::string(1000, 'k'), value(1), 0, 1min);
  EXPECT_GE(cache.weight(), 2 * small + 1000);
}

TEST_F(LocalCacheTest, ChosenKeysAreSpreadBySeed) {
  // Two caches place the same keys differently, or all who know the code could choose colliding keys.
  const KeyHash<std::uint64_t> hash;
  std::set<std::uint64_t> places;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) places.insert(hash(42, seed) & 1023);
  EXPECT_GT(places.size(), 500U);
  using Pair = std::pair<std::string, std::int64_t>;
  EXPECT_NE(KeyHash<Pair>{}({"article", 1}, 7), KeyHash<Pair>{}({"article", 2}, 7));
  EXPECT_NE(KeyHash<Pair>{}({"article", 1}, 7), KeyHash<Pair>{}({"articl", 1}, 7));
}

#if defined(__GLIBC__) && !WEIR_SANITIZED
// The weights are the truth: what the allocator gives out is no more than the cache believes, and not much
// less.
TEST_F(LocalCacheTest, WeighsWhatItReallyTakes) {
  const std::size_t before = mallinfo2().uordblks;
  auto cache = std::make_unique<LocalCache<std::string, std::string>>(options(std::size_t{8} << 20));
  for (int i = 0; i < 200'000; ++i) {
    const auto text = std::make_shared<const std::string>(static_cast<std::size_t>(i % 500), 'x');
    const std::size_t owned =
        text->capacity() < 16 ? 0 : text->capacity() + 1 + 16;  // and the allocator's header
    cache->put("a key that owns memory, number " + std::to_string(i), text, sizeof(std::string) + owned, 1h);
  }
  const auto taken = static_cast<double>(mallinfo2().uordblks - before);
  const auto weight = static_cast<double>(cache->weight());
  EXPECT_GT(cache->stats().evictions, 100'000U);
  EXPECT_LT(taken, weight);
  EXPECT_GT(taken, weight * 0.8);
}
#endif

// Random operations against a plain map. Without pressure the two agree on everything; under pressure the
// cache may know less, but nothing else.
void run_model(std::uint64_t seed, std::size_t capacity, bool pressure) {
  SCOPED_TRACE(seed);
  struct Entry {
    int value;
    SteadyTime until;
  };
  ManualClock clock;
  Random random(seed);
  Cache cache({.capacity = capacity, .shards = 1U << random.below(4), .clock = &clock, .seed = seed});
  std::map<int, Entry> model;
  const auto expected = [&](int key) -> std::optional<int> {
    const auto at = model.find(key);
    if (at == model.end() || at->second.until <= clock.steady_now()) return {};
    return at->second.value;
  };
  std::size_t found = 0;
  for (int step = 0; step < 20'000; ++step) {
    const int key = static_cast<int>(random.below(200));
    switch (random.below(8)) {
      case 0:
      case 1: {
        const auto ttl = std::chrono::milliseconds(random.below(300));
        const bool kept = cache.put(key, value(step), random.below(200), ttl);
        ASSERT_TRUE(kept || ttl == 0ms);
        model[key] = {step, clock.steady_now() + ttl};
        break;
      }
      case 2:
        cache.erase(key);
        model.erase(key);
        break;
      case 3: {
        const bool done =
            cache.update(key, [&](const int& v) { return value(v + 1); }, [](int) { return 50U; });
        if (!pressure) {
          ASSERT_EQ(done, expected(key).has_value());
        }
        if (const auto at = model.find(key); done && at != model.end()) ++at->second.value;
        if (!done && pressure) model.erase(key);
        break;
      }
      case 4:
        clock.advance(std::chrono::milliseconds(random.below(20)));
        break;
      case 5:
        if (random.chance(0.02)) {
          const int modulus = static_cast<int>(random.below(5)) + 2;
          cache.erase_if([&](const int& k, const auto&) { return k % modulus == 0; });
          std::erase_if(model, [&](const auto& item) { return item.first % modulus == 0; });
        }
        break;
      default: {
        const auto hit = cache.look(key);
        if (!pressure) {
          ASSERT_EQ(hit.known, expected(key).has_value());
        }
        if (hit.known) {
          ASSERT_TRUE(hit.value) << "nobody put an absence";
          ASSERT_EQ(std::optional<int>(*hit.value), expected(key));
          ++found;
        }
      }
    }
    ASSERT_LE(cache.weight(), cache.capacity());
  }
  EXPECT_GT(found, 500U);
  cache.clear();
  EXPECT_EQ(cache.weight(), 0U);
}

TEST(LocalCacheModel, AgreesWithAMap) {
  for (int round = 0; round < 20; ++round) run_model(secure_random64(), 1 << 20, false);
}

TEST(LocalCacheModel, KnowsNothingButTheTruthUnderPressure) {
  for (int round = 0; round < 20; ++round)
    run_model(secure_random64(), 60 * (Cache::kEntryOverhead + 100), true);
}

TEST(LocalCacheConcurrency, KeepsItsBoundAndItsValuesUnderManyThreads) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  constexpr std::size_t kCapacity = 200 * (Cache::kEntryOverhead + 100);
  Cache cache({.capacity = kCapacity, .shards = 8});
  std::atomic<bool> stop{false};
  std::thread watcher([&] {
    while (!stop) ASSERT_LE(cache.weight(), kCapacity);
  });
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(seed + t);
      for (int i = 0; i < 20'000; ++i) {
        const int key = static_cast<int>(random.below(1000));
        switch (random.below(8)) {
          case 0:
          case 1:
            cache.put(key, value(key), random.below(2000), i % 2 ? 1min : 1ms, 1ms);
            break;
          case 2:
            cache.erase(key);
            break;
          case 3:
            cache.update(key, [](const int& v) { return value(v); }, [&](int) { return random.below(2000); });
            break;
          default:
            if (const auto hit = cache.find(key)) {
              ASSERT_EQ(*hit, key);
            }
        }
        if (i % 5000 == 0) cache.erase_if([](const int& k, const auto&) { return k % 3 == 0; });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  stop = true;
  watcher.join();
  cache.clear();
  EXPECT_EQ(cache.weight(), 0U);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(LocalCacheConcurrency, OneOfManyRefreshes) {
  ManualClock clock;
  Cache cache({.capacity = 1 << 20, .clock = &clock});
  cache.put(1, value(1), 4, 1h, 1s);
  clock.advance(1s);
  std::atomic<int> refreshers{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) refreshers += cache.look(1).refresh ? 1 : 0;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(refreshers, 1);
}

}  // namespace
}  // namespace weir::cache

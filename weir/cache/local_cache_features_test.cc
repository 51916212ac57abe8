// What a cache offers beside finding and putting: listener, weigher, idle times, compute, bulk, walks, resizing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/random.h"
#include "weir/cache/local_cache.h"

namespace weir::cache {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Flat = FlatCache<int, int>;
using Shared = LocalCache<int, std::string>;

std::shared_ptr<const std::string> text(std::string t) {
  return std::make_shared<const std::string>(std::move(t));
}

TEST(LocalCacheListener, HearsOfEachRemovalOnceWithItsCause) {
  ManualClock clock;
  std::vector<std::tuple<int, int, Removal>> heard;
  Flat cache({.capacity = 2, .bound = Bound::weights, .clock = &clock},
             {.removed = [&](int key, int value, Removal why) { heard.emplace_back(key, value, why); }});
  using Heard = std::vector<std::tuple<int, int, Removal>>;
  const auto take = [&] { return std::exchange(heard, {}); };

  cache.put(1, 10);
  cache.put(1, 11);
  EXPECT_EQ(take(), (Heard{{1, 10, Removal::replaced}}));
  EXPECT_TRUE(cache.update(1, [](int) { return std::optional(12); }, [](int) { return 1; }));
  EXPECT_EQ(take(), (Heard{{1, 11, Removal::replaced}}));
  cache.erase(1);
  EXPECT_EQ(take(), (Heard{{1, 12, Removal::erased}}));
  cache.put(2, 20, {.ttl = seconds(1)});
  clock.advance(seconds(1));
  EXPECT_FALSE(cache.find(2));
  EXPECT_EQ(take(), (Heard{{2, 20, Removal::expired}}));
  for (int key = 3; key <= 5; ++key) cache.put(key, key);
  const auto evicted = take();
  ASSERT_EQ(evicted.size(), 1U);
  EXPECT_EQ(std::get<Removal>(evicted[0]), Removal::evicted);
  cache.put(3, 30, {.ttl = Duration::zero()});  // can't be kept: an older value mustn't stay
  cache.clear();
  EXPECT_EQ(cache.size(), 0U);
  for (const auto& [key, value, why] : take()) EXPECT_EQ(why, Removal::erased);
}

// Whatever can't be kept, the old value is gone, and no new one is here: it wasn't replaced.
TEST(LocalCacheListener, WhatARefusedPutErasesWasNotReplaced) {
  ManualClock clock;
  std::vector<std::pair<int, Removal>> heard;
  Flat cache({.capacity = 10, .bound = Bound::weights, .shards = 1, .clock = &clock},
             {.removed = [&](int, int value, Removal why) { heard.emplace_back(value, why); }});
  using Heard = std::vector<std::pair<int, Removal>>;
  const auto take = [&] { return std::exchange(heard, {}); };
  const auto anew = [&] {
    cache.put(1, 10, 2, minutes(1));
    take();
  };
  anew();
  EXPECT_FALSE(cache.put(1, 11, 11));  // heavier than the capacity
  EXPECT_EQ(take(), (Heard{{10, Removal::erased}}));
  anew();
  EXPECT_FALSE(cache.put(1, 11, 2, Duration::zero()));
  EXPECT_EQ(take(), (Heard{{10, Removal::erased}}));
  anew();
  EXPECT_FALSE(cache.update(1, [](int) { return std::optional(11); }, [](int) { return 11; }));
  EXPECT_EQ(take(), (Heard{{10, Removal::erased}}));
  anew();
  EXPECT_FALSE(
      cache.compute(1, [](const int*) { return std::optional(Flat::Computed{.value = 11, .weight = 11}); }));
  EXPECT_EQ(take(), (Heard{{10, Removal::erased}}));
  anew();
  EXPECT_TRUE(cache.put(1, 11, 10));  // fits once the old one has gone
  EXPECT_EQ(take(), (Heard{{10, Removal::replaced}}));
}

TEST(LocalCacheListener, WhatWasOverIsExpiredWhoeverFindsIt) {
  ManualClock clock;
  std::vector<Removal> heard;
  Flat cache({.capacity = 10, .bound = Bound::weights, .shards = 1, .clock = &clock},
             {.removed = [&](int, int, Removal why) { heard.push_back(why); }});
  const auto over = [&](auto call) {
    cache.put(1, 10, {.ttl = seconds(1)});
    clock.advance(seconds(1));
    heard.clear();
    call();
    EXPECT_EQ(heard, std::vector<Removal>{Removal::expired});
  };
  over([&] { cache.put(1, 11, 11); });
  over([&] { cache.put(1, 11, {.ttl = Duration::zero()}); });
  over([&] { cache.erase(1); });
  over([&] { cache.erase_if([](int, int) { return true; }); });
  over([&] { cache.clear(); });
}

// What seemed to have room may find none when it is its turn: the capacity went down, or other shards took it.
TEST(LocalCacheListenerConcurrency, OnlyWhatIsReplacedIsToldToBe) {
  constexpr int kThreads = 3;
  std::atomic<int> wrong{0}, refused{0};
  thread_local int told_replaced = 0;
  Flat cache({.capacity = 64, .bound = Bound::weights, .shards = 8},
             {.removed = [](int, int, Removal why) { told_replaced += why == Removal::replaced ? 1 : 0; }});
  const auto give_up = std::chrono::steady_clock::now() + seconds(10);
  const auto enough = [&] { return refused >= 20'000 || std::chrono::steady_clock::now() > give_up; };
  std::thread resizing([&] {
    while (!enough()) {
      cache.set_capacity(16);
      cache.set_capacity(64);
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; !enough(); ++i) {
        cache.put(t, i, 1);
        told_replaced = 0;
        if (cache.put(t, i, 17 + i % 40)) continue;
        ++refused;
        wrong += told_replaced;
      }
    });
  for (auto& thread : threads) thread.join();
  resizing.join();
  EXPECT_GT(refused, 0);
  EXPECT_EQ(wrong, 0);
}

TEST(LocalCacheListener, MayCallTheCache) {
  Flat* self = nullptr;
  Flat cache({.capacity = 4, .bound = Bound::weights}, {.removed = [&](int key, int, Removal why) {
               if (why == Removal::erased && key < 100) self->put(key + 100, 1);
             }});
  self = &cache;
  cache.put(1, 1);
  cache.erase(1);
  EXPECT_TRUE(cache.find(101));
}

// Whatever call it is that makes room, no lock is held any more when the listener hears of it.
TEST(LocalCacheListener, MayCallTheCacheWhoeverMadeRoom) {
  Flat* self = nullptr;
  int heard = 0;
  bool busy = false;
  Flat cache({.capacity = 800, .bound = Bound::weights, .shards = 8}, {.removed = [&](int key, int, Removal) {
               ++heard;
               if (std::exchange(busy, true)) return;
               EXPECT_LE(self->weight(), 800U);
               self->put(key + 100'000, 1);
               self->set_capacity(self->capacity());
               self->erase_if([&](int other, int) { return other == key; });
               busy = false;
             }});
  self = &cache;
  for (int key = 0; key < 2'000; ++key) cache.put(key, key);
  EXPECT_TRUE(cache.put(-1, 1, 500)) << "room from other shards";
  EXPECT_TRUE(
      cache.compute(-2, [](const int*) { return std::optional(Flat::Computed{.value = 1, .weight = 600}); }));
  cache.set_capacity(100);
  cache.clear();
  EXPECT_GT(heard, 2'000);
}

TEST(LocalCacheWeigher, WeighsWhatIsPutWithoutAWeight) {
  LocalCache<int, std::string> cache(
      {.capacity = 100, .bound = Bound::weights},
      {.weigher = [](int, const std::shared_ptr<const std::string>& value) { return value->size(); }});
  EXPECT_TRUE(cache.put(1, text(std::string(60, 'a'))));
  EXPECT_EQ(cache.weight(), 60U);
  EXPECT_TRUE(cache.put(2, nullptr)) << "an absence isn't weighed";
  EXPECT_EQ(cache.weight(), 61U);
  EXPECT_FALSE(cache.put(3, text(std::string(101, 'c'))));
  EXPECT_TRUE(cache.put(4, text(std::string(90, 'd'))));
  EXPECT_LE(cache.weight(), 100U);
  EXPECT_TRUE(cache.put(5, text("e"), 7)) << "a weight that is given counts";
}

TEST(LocalCacheIdle, EndsWhatNobodyAsksFor) {
  ManualClock clock;
  Flat cache({.capacity = 100, .bound = Bound::weights, .idle = minutes(16), .clock = &clock});
  cache.put(1, 1);
  cache.put(2, 2);
  cache.put(3, 3, {.ttl = minutes(40)});
  for (int minute = 0; minute < 39; ++minute) {
    clock.advance(minutes(1));
    ASSERT_TRUE(cache.find(1)) << minute;
    ASSERT_TRUE(cache.find(3)) << minute;
    cache.peek(2);  // which doesn't keep it
    ASSERT_EQ(cache.peek(2).known, minute < 15) << minute;
  }
  clock.advance(minutes(1));
  EXPECT_FALSE(cache.find(3)) << "being asked for doesn't lengthen the TTL";
  clock.advance(minutes(16));
  EXPECT_FALSE(cache.find(1));
}

TEST(LocalCacheIdle, KeepsWhatIsAskedForOften) {
  ManualClock clock;
  Shared cache({.capacity = 100, .bound = Bound::weights, .idle = seconds(16), .clock = &clock});
  cache.put(1, text("one"));
  for (int i = 0; i < 10'000; ++i) {
    clock.advance(std::chrono::milliseconds(10));
    ASSERT_TRUE(cache.find(1));
  }
  clock.advance(seconds(15) - std::chrono::milliseconds(1));  // a sixteenth may be missing
  EXPECT_TRUE(cache.find(1));
}

TEST(LocalCacheCompute, MakesTheEntryFromWhatIsThere) {
  Flat cache({.capacity = 10, .bound = Bound::weights});
  const auto add = [](const int* current) {
    return std::optional(Flat::Computed{.value = current == nullptr ? 1 : *current + 1});
  };
  EXPECT_TRUE(cache.compute(7, add));
  EXPECT_TRUE(cache.compute(7, add));
  EXPECT_EQ(cache.find(7), 2);
  EXPECT_FALSE(cache.compute(7, [](const int*) { return std::optional<Flat::Computed>(); }));
  EXPECT_FALSE(cache.find(7));
  EXPECT_FALSE(cache.compute(7, [](const int*) { return std::optional<Flat::Computed>(); }));
  EXPECT_FALSE(
      cache.compute(7, [](const int*) { return std::optional(Flat::Computed{.value = 1, .weight = 11}); }));
  EXPECT_EQ(cache.size(), 0U);
}

TEST(LocalCacheCompute, SeesNoValueThatIsOver) {
  ManualClock clock;
  Flat cache({.capacity = 10, .bound = Bound::weights, .clock = &clock});
  cache.put(1, 5, {.ttl = seconds(1)});
  clock.advance(seconds(1));
  EXPECT_TRUE(cache.compute(1, [](const int* current) {
    EXPECT_EQ(current, nullptr);
    return std::optional(Flat::Computed{.value = 1, .keep = {.ttl = seconds(5)}});
  }));
  clock.advance(seconds(5));
  EXPECT_FALSE(cache.find(1));
}

TEST(LocalCacheCompute, BringsRoomFromOtherShards) {
  Flat cache({.capacity = 800, .bound = Bound::weights, .shards = 8});
  for (int key = 0; key < 2'000; ++key) cache.put(key, key);
  int calls = 0;
  EXPECT_TRUE(cache.compute(1, [&](const int*) {
    ++calls;
    return std::optional(Flat::Computed{.value = 1, .weight = 500});
  }));
  EXPECT_LE(calls, 2);
  EXPECT_TRUE(cache.find(1));
  EXPECT_LE(cache.weight(), 800U);
}

TEST(LocalCacheCompute, AnExceptionLeavesEverythingAsItWas) {
  Flat cache({.capacity = 10, .bound = Bound::weights});
  cache.put(1, 5);
  EXPECT_THROW(
      cache.compute(1, [](const int*) -> std::optional<Flat::Computed> { throw std::runtime_error("no"); }),
      std::runtime_error);
  EXPECT_EQ(cache.find(1), 5);
  EXPECT_TRUE(cache.put(1, 6)) << "and no lock is held";
}

TEST(LocalCacheBulk, LoadsOnlyWhatIsMissing) {
  Flat cache({.capacity = 100, .bound = Bound::weights});
  cache.put(1, 10);
  const std::vector<int> keys{1, 2, 3, 2, 4};
  std::vector<int> asked;
  const auto load = [&](std::span<const int> missing) {
    asked.assign(missing.begin(), missing.end());
    return std::vector<std::pair<int, int>>{{2, 20}, {3, 30}};
  };
  EXPECT_EQ(cache.load_all(keys, load), (std::vector<std::optional<int>>{10, 20, 30, 20, std::nullopt}));
  EXPECT_EQ(asked, (std::vector<int>{2, 3, 2, 4}));
  EXPECT_EQ(cache.find_all(keys), (std::vector<std::optional<int>>{10, 20, 30, 20, std::nullopt}));
  EXPECT_THROW(cache.load_all(keys,
                              [](std::span<const int>) -> std::vector<std::pair<int, int>> {
                                throw std::runtime_error("the store is away");
                              }),
               std::runtime_error);
}

TEST(LocalCacheWalk, ShowsWhatIsAliveWithItsTimes) {
  ManualClock clock;
  LocalCache<std::string, std::string> cache({.capacity = 1 << 20, .clock = &clock});
  cache.put("a long key that needs memory of its own", text("1"), 33);
  cache.put("b", text("2"), 5, seconds(10), seconds(4));
  cache.put("c", text("3"), 5, seconds(1));
  clock.advance(seconds(5));
  std::map<std::string, EntryInfo> seen;
  cache.for_each([&](const std::string& key, const auto& value, const EntryInfo& info) {
    EXPECT_FALSE(value->empty());
    seen.emplace(key, info);
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen.at("a long key that needs memory of its own").weight, 33U);
  EXPECT_FALSE(seen.at("a long key that needs memory of its own").left);
  EXPECT_EQ(seen.at("b").weight, 5U);
  EXPECT_EQ(seen.at("b").left, seconds(5));
  EXPECT_EQ(seen.at("b").fresh, seconds(-1));
}

TEST(LocalCacheWalk, WeighsAKeyAsItIsKept) {
  LocalCache<std::string, int> cache({.capacity = 1 << 20});
  std::string roomy(40, 'k');
  roomy.reserve(1'000);
  cache.put(roomy, std::make_shared<const int>(1), 33);
  const std::size_t weight = cache.weight();
  EXPECT_EQ(cache.inspect(std::string(40, 'k'))->weight, 33U);
  EXPECT_EQ(cache.inspect(roomy)->weight, 33U);
  cache.for_each([](const auto&, const auto&, const EntryInfo& info) { EXPECT_EQ(info.weight, 33U); });
  cache.put(std::string(40, 'k'), std::make_shared<const int>(1), 33);
  EXPECT_EQ(cache.weight(), weight);
  EXPECT_FALSE(cache.inspect("another"));
}

TEST(LocalCacheExpiry, WhoOverwritesSweepsToo) {
  ManualClock clock;
  Flat cache({.capacity = 1'000, .bound = Bound::weights, .shards = 1, .clock = &clock});
  for (int key = 0; key < 900; ++key) cache.put(key, key, {.ttl = seconds(1)});
  cache.put(1'000, 0, {.ttl = minutes(10)});
  clock.advance(seconds(1));
  for (int i = 0; i < 900; ++i) cache.put(1'000, i, {.ttl = minutes(10)});
  EXPECT_EQ(cache.size(), 1U);
}

TEST(LocalCacheUpdate, WhatFitsIsKeptWhereverTheRoomComesFrom) {
  Flat cache({.capacity = 1'000, .bound = Bound::weights, .shards = 8});
  for (int key = 0; key < 3'000; ++key) cache.put(key, key);
  cache.put(7, 7);
  EXPECT_TRUE(cache.update(7, [](int) { return std::optional(8); }, [](int) { return 500; }));
  EXPECT_EQ(cache.find(7), 8);
  EXPECT_LE(cache.weight(), 1'000U);
  EXPECT_FALSE(cache.update(7, [](int) { return std::optional(9); }, [](int) { return 1'001; }));
  EXPECT_FALSE(cache.find(7)) << "what has outgrown the capacity would be a lie";

  Flat full({.capacity = 100, .bound = Bound::weights, .shards = 1});
  for (int key = 0; key < 100; ++key) full.put(key, key);
  int kept = 0;
  for (int key = 0; key < 100; ++key)
    kept += full.update(key, [](int v) { return std::optional(v); }, [](int) { return 2; });
  EXPECT_GE(kept, 50) << "each makes room for itself at the cost of others";
  EXPECT_LE(full.weight(), 100U);
}

TEST(LocalCacheUpdate, TheTtlGoesOn) {
  ManualClock clock;
  Flat cache({.capacity = 10, .bound = Bound::weights, .clock = &clock});
  cache.put(1, 1, {.ttl = seconds(10)});
  clock.advance(seconds(9));
  EXPECT_TRUE(cache.update(1, [](int) { return std::optional(2); }, [](int) { return 3; }));
  EXPECT_EQ(cache.find(1), 2);
  clock.advance(seconds(1));
  EXPECT_FALSE(cache.find(1));
}

TEST(LocalCachePut, WithoutAWeightCountsWhatStringsTake) {
  LocalCache<int, std::string> cache({.capacity = 1 << 20});
  for (int key = 0; key < 100; ++key) cache.put(key, text(std::string(100'000, 'x')), {});
  EXPECT_LE(cache.size(), 10U);
  EXPECT_GE(cache.size(), 5U);
  LocalCache<int, std::string> absences({.capacity = 1 << 20});
  absences.put(1, nullptr);
  EXPECT_TRUE(absences.compute(1, [](const auto* current) {
    EXPECT_EQ(current, nullptr) << "an absence is no value";
    return std::optional(LocalCache<int, std::string>::Computed{.value = text("x")});
  }));
  EXPECT_THROW((LocalCache<int, int>({.idle = Duration::zero()})), std::invalid_argument);
  Flat heavy({.capacity = SIZE_MAX, .bound = Bound::weights});
  EXPECT_TRUE(heavy.put(1, 1, SIZE_MAX - 5));
  heavy.put(2, 2, 100);
  EXPECT_GE(heavy.weight(), 100U);
  EXPECT_LT(heavy.size(), 2U) << "no sum overflows";
}

TEST(LocalCacheCapacity, ShrinksAtOnceAndGrowsAgain) {
  for (const unsigned shards : {1U, 8U}) {
    Flat cache({.capacity = 10'000, .bound = Bound::weights, .shards = shards});
    for (int key = 0; key < 20'000; ++key) cache.put(key, key);
    cache.set_capacity(500);
    EXPECT_LE(cache.weight(), 500U);
    EXPECT_EQ(cache.capacity(), 500U);
    for (int key = 0; key < 20'000; ++key) {
      cache.put(key, key);
      ASSERT_LE(cache.weight(), 500U);
    }
    cache.set_capacity(40'000);
    for (int key = 0; key < 40'000; ++key) cache.put(key, key);
    EXPECT_GT(cache.size(), 38'000U);
    cache.set_capacity(0);
    EXPECT_EQ(cache.size(), 0U);
    EXPECT_FALSE(cache.put(1, 1));
    cache.set_capacity(100);
    EXPECT_TRUE(cache.put(1, 1));
    EXPECT_EQ(cache.find(1), 1);
  }
}

}  // namespace
}  // namespace weir::cache

// What came into a cache is there or was heard of once, whatever was done to it meanwhile; and the same with many
// threads at it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
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

using std::chrono::seconds;
using Flat = FlatCache<int, int>;
using Shared = LocalCache<int, std::string>;

std::shared_ptr<const std::string> text(std::string t) {
  return std::make_shared<const std::string>(std::move(t));
}

// Where every value that came in has gone: each has a number of its own, and is either there or was heard of once.
struct Ledger {
  std::mutex mutex;
  std::set<int> in;
  std::multiset<int> out;

  void came(int value) {
    const std::lock_guard lock(mutex);
    in.insert(value);
  }
  void left(int value) {
    const std::lock_guard lock(mutex);
    out.insert(value);
  }
};

template <class Cache>
void act_at_random(Cache& cache, Random& random, Ledger& ledger, std::atomic<int>& next, ManualClock& clock) {
  const int key = static_cast<int>(random.below(300));
  const int value = next++;
  const Keep keep{.ttl = random.chance(0.3) ? seconds(random.below(20)) : kNever};
  const std::size_t weight = 1 + random.below(random.chance(0.05) ? 150 : 4);
  switch (random.below(12)) {
    case 0:
      cache.erase(key);
      break;
    case 1:
      if (cache.compute(key, [&](const int* current) -> std::optional<typename Cache::Computed> {
            if (current != nullptr && *current % 3 == 0) return std::nullopt;
            return typename Cache::Computed{.value = value, .keep = keep, .weight = weight};
          }))
        ledger.came(value);
      break;
    case 2:
      if (cache.update(key, [&](int) { return std::optional(value); }, [&](int) { return weight; }))
        ledger.came(value);
      break;
    case 3:
      if (random.chance(0.1)) cache.erase_if([](int k, int) { return k % 7 == 0; });
      break;
    case 4:
      if (random.chance(0.1)) cache.set_capacity(100 + random.below(400));
      break;
    case 5:
      clock.advance(std::chrono::milliseconds(random.below(500)));
      break;
    case 6:
    case 7:
    case 8:
      cache.find(key);
      break;
    default:
      if (cache.put(key, value, weight, keep.ttl)) ledger.came(value);
  }
}

template <class Cache>
void expect_balance(Cache& cache, Ledger& ledger) {
  cache.clear();  // so that everything has left
  std::set<int> left(ledger.out.begin(), ledger.out.end());
  EXPECT_EQ(left.size(), ledger.out.size()) << "something left twice";
  EXPECT_TRUE(std::ranges::includes(left, ledger.in)) << "something vanished";
}

TEST(LocalCacheModel, WhatCameInIsThereOrWasHeardOfOnce) {
  for (int round = 0; round < 30; ++round) {
    const std::uint64_t seed = secure_random64();
    SCOPED_TRACE(seed);
    Random random(seed);
    ManualClock clock;
    Ledger ledger;
    std::atomic<int> next{1};
    Flat cache({.capacity = 300,
                .bound = Bound::weights,
                .shards = round % 2 == 0 ? 1U : 4U,
                .idle = round % 3 == 0 ? seconds(5) : kNever,
                .clock = &clock},
               {.removed = [&](int, int value, Removal) { ledger.left(value); }});
    for (int step = 0; step < 5'000; ++step) {
      act_at_random(cache, random, ledger, next, clock);
      ASSERT_LE(cache.weight(), cache.capacity());
    }
    expect_balance(cache, ledger);
  }
}

TEST(LocalCacheFeaturesConcurrency, WhatCameInIsThereOrWasHeardOfOnce) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  ManualClock clock;
  Ledger ledger;
  std::atomic<int> next{1};
  Flat cache({.capacity = 300, .bound = Bound::weights, .shards = 4, .clock = &clock},
             {.removed = [&](int, int value, Removal) { ledger.left(value); }});
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Random random(seed + t);
      for (int step = 0; step < 5'000; ++step) act_at_random(cache, random, ledger, next, clock);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_LE(cache.weight(), cache.capacity());
  expect_balance(cache, ledger);
}

TEST(LocalCacheFeaturesConcurrency, TheBoundHoldsWhileTheCapacityChanges) {
  Flat cache({.capacity = 800, .bound = Bound::weights, .shards = 8});
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t)
    writers.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t) + 1);
      while (!stop) {
        for (int i = 0; i < 50; ++i) cache.put(static_cast<int>(random.below(4'000)), 1);
        cache.put(-1 - t, 1, 400);  // its shard borrows nearly all
      }
    });
  std::size_t most = 0;
  for (int round = 0; round < 2'000; ++round) {
    cache.set_capacity(800);
    most = std::max(most, cache.weight());
  }
  stop = true;
  for (auto& writer : writers) writer.join();
  EXPECT_LE(most, 800U);
}

// Increments through `compute` from many threads: none is lost.
template <class Cache, class Add>
void count_together(Cache& cache, Add add) {
  constexpr int kThreads = 4, kEach = 5'000, kKeys = 7;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        cache.compute(i % kKeys, add);
        cache.find((i + 3) % kKeys);
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(LocalCacheFeaturesConcurrency, ComputeIsAtomic) {
  Flat flat({.capacity = 100, .bound = Bound::weights});
  count_together(
      flat, [](const int* n) { return std::optional(Flat::Computed{.value = n == nullptr ? 1 : *n + 1}); });
  int sum = 0;
  for (int key = 0; key < 7; ++key) sum += flat.find(key).value_or(0);
  EXPECT_EQ(sum, 20'000);

  Shared shared({.capacity = 100, .bound = Bound::weights});
  count_together(shared, [](const std::shared_ptr<const std::string>* n) {
    return std::optional(Shared::Computed{.value = text(n == nullptr ? "x" : **n + "x")});
  });
  std::size_t letters = 0;
  for (int key = 0; key < 7; ++key) letters += shared.find(key)->size();
  EXPECT_EQ(letters, 20'000U);
}

// Readers beside one who replaces, grows and shrinks: each sees a value that was put for its key.
TEST(LocalCacheFeaturesConcurrency, ReadersNeverMeetAStrangersValue) {
  Flat cache({.capacity = 4'000, .bound = Bound::weights});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int round = 0; round < 30; ++round) {
      cache.set_capacity(round % 2 == 0 ? 500 : 4'000);
      for (int key = 0; key < 6'000; ++key) cache.put(key, key * 1'000 + round);
      cache.erase_if([&](int key, int) { return key % 5 == round % 5; });
    }
    stop = true;
  });
  std::vector<std::thread> readers;
  std::atomic<std::uint64_t> strangers{0};
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t) + 1);
      while (!stop) {
        const int key = static_cast<int>(random.below(6'000));
        if (const auto value = cache.find(key); value && *value / 1'000 != key) ++strangers;
      }
    });
  writer.join();
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(strangers, 0U);
}

}  // namespace
}  // namespace weir::cache

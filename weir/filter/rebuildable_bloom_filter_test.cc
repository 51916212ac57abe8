#include "weir/filter/rebuildable_bloom_filter.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "weir/filter/filter_fixture.h"

namespace weir::filter {
namespace {

TEST(RebuildableBloomFilter, ARebuildForgetsWhatIsGone) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  RebuildableBloomFilter filter(100, 0.01, 5);
  for (std::uint64_t i = 0; i < 10'000; ++i) filter.insert(member(i, seed));
  EXPECT_GT(filter.stages(), 1);
  auto rebuild = filter.rebuild(5000, 0.01);
  ASSERT_TRUE(rebuild);
  for (std::uint64_t i = 0; i < 5000; ++i) rebuild->insert(member(i, seed));
  EXPECT_TRUE(filter.may_contain(member(9999, seed)));  // the living one goes on
  rebuild->commit();
  EXPECT_EQ(filter.stages(), 1);
  EXPECT_EQ(filter.statistics().bytes, filter.bytes());
  int known = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) ASSERT_TRUE(filter.may_contain(member(i, seed)));
  for (std::uint64_t i = 5000; i < 10'000; ++i) known += filter.may_contain(member(i, seed)) ? 1 : 0;
  EXPECT_LT(known, 100);
}

TEST(RebuildableBloomFilter, WhatIsInsertedMeanwhileIsInBoth) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (const bool commit : {true, false}) {
    RebuildableBloomFilter filter(1000, 0.001);
    filter.insert(member(0, seed));
    {
      auto rebuild = filter.rebuild(1000, 0.001);
      ASSERT_TRUE(rebuild);
      EXPECT_FALSE(filter.rebuild(1000, 0.001));  // one at a time
      filter.insert(member(1, seed));
      rebuild->insert(member(2, seed));
      EXPECT_TRUE(filter.may_contain(member(1, seed)));
      EXPECT_FALSE(filter.may_contain(member(2, seed)));
      if (commit) rebuild->commit();
    }  // or it is given up
    filter.insert(member(3, seed));
    EXPECT_EQ(filter.may_contain(member(0, seed)), !commit);
    EXPECT_TRUE(filter.may_contain(member(1, seed)));
    EXPECT_EQ(filter.may_contain(member(2, seed)), commit);
    EXPECT_TRUE(filter.may_contain(member(3, seed)));
    EXPECT_TRUE(filter.rebuild(10, 0.1));  // and there can be another
  }
}

TEST(RebuildableBloomFilter, ARebuildThatCanNotBeginChangesNothing) {
  RebuildableBloomFilter filter(1000, 0.01);
  filter.insert(mix64(1));
  EXPECT_THROW(static_cast<void>(filter.rebuild(1000, -1)), std::invalid_argument);
  EXPECT_TRUE(filter.may_contain(mix64(1)));
  EXPECT_TRUE(filter.rebuild(1000, 0.01));
}

// Writers keep rows in a list (the store) and then insert them here; rebuilds read the list from its beginning,
// one after another. Whatever the order: no row is ever denied.
TEST(RebuildableBloomFilterConcurrency, NoKeyIsLostToARebuild) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kWriters = 2, kEach = 20'000, kReaders = 2;
  RebuildableBloomFilter filter(100, 0.01);
  std::vector<std::atomic<std::uint64_t>> stored(kWriters), inserted(kWriters);
  std::atomic<bool> done{false};
  std::latch start(kWriters + kReaders + 1);
  std::vector<std::thread> writers, readers;
  for (std::uint64_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      start.arrive_and_wait();
      for (std::uint64_t i = 0; i < kEach; ++i) {
        stored[w].store(i + 1, std::memory_order_release);
        filter.insert(member(i * kWriters + w, seed));
        inserted[w].store(i + 1, std::memory_order_release);
      }
    });
  }
  for (std::uint64_t r = 0; r < kReaders; ++r) {
    readers.emplace_back([&, r] {
      Random random(seed + r);
      start.arrive_and_wait();
      while (!done) {
        const std::uint64_t w = random.below(kWriters);
        const std::uint64_t rows = inserted[w].load(std::memory_order_acquire);
        if (rows == 0) continue;
        // The newest ones, mostly: they are those a swap could lose.
        const std::uint64_t i = random.chance(0.7) ? rows - 1 : random.below(rows);
        ASSERT_TRUE(filter.may_contain(member(i * kWriters + w, seed))) << i;
      }
    });
  }
  start.arrive_and_wait();
  int rebuilds = 0;
  const auto all = [&] { return inserted[0] + inserted[1] == kWriters * kEach; };
  while (!all() || rebuilds == 0) {
    auto rebuild = filter.rebuild(kWriters * kEach, 0.01);
    ASSERT_TRUE(rebuild);
    for (std::uint64_t w = 0; w < kWriters; ++w) {
      const std::uint64_t rows = stored[w].load(std::memory_order_acquire);
      for (std::uint64_t i = 0; i < rows; ++i) rebuild->insert(member(i * kWriters + w, seed));
    }
    if (++rebuilds % 4 != 0) rebuild->commit();  // some are given up
  }
  done = true;
  for (auto& thread : writers) thread.join();
  for (auto& thread : readers) thread.join();
  for (std::uint64_t i = 0; i < kWriters * kEach; ++i) ASSERT_TRUE(filter.may_contain(member(i, seed)));
}

// The gate alone: what a writer replaced is never in use once it has waited.
TEST(ReaderGateConcurrency, NobodyIsInsideAfterTheWait) {
  ReaderGate gate;
  std::array<std::atomic<bool>, 2> alive{true, false};
  std::atomic<int> current{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int r = 0; r < 4; ++r) {
    readers.emplace_back([&] {
      while (!done) {
        const auto pass = gate.enter();
        const auto mine = static_cast<std::size_t>(current.load());
        for (int look = 0; look < 3; ++look) ASSERT_TRUE(alive[mine]);
      }
    });
  }
  for (int round = 0; round < 3000; ++round) {
    const int old = current;
    alive[static_cast<std::size_t>(1 - old)] = true;
    current = 1 - old;
    gate.wait_for_readers();
    alive[static_cast<std::size_t>(old)] = false;
  }
  done = true;
  for (auto& reader : readers) reader.join();
}

}  // namespace
}  // namespace weir::filter

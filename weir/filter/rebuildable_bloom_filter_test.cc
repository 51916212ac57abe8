#include "weir/filter/rebuildable_bloom_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
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

// Writers append rows to a store, of which the newest are kept, and then insert them here; rebuilds read the store,
// one after another. Whatever the order: no row that is kept is ever denied.
TEST(RebuildableBloomFilterConcurrency, NoKeyIsLostToARebuild) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kWriters = 2, kKept = 500;
  constexpr int kRebuilds = 300;
  constexpr std::uint64_t kRows = 10'000;
  RebuildableBloomFilter filter(100, 0.01);
  std::array<std::atomic<std::uint64_t>, kWriters> stored{}, inserted{};
  std::atomic<bool> done{false};
  const auto row = [&](std::uint64_t writer, std::uint64_t i) { return member(i * kWriters + writer, seed); };
  const auto oldest = [&](std::uint64_t writer) { return std::max(stored[writer].load(), kKept) - kKept; };
  std::vector<std::thread> threads;
  for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (std::uint64_t i = 0; !done; ++i) {
        stored[writer] = i + 1;
        filter.insert(row(writer, i));
        inserted[writer] = i + 1;
        // Its newest, which a swap could lose.
        const bool known =
            filter.may_contain(row(writer, i)) && (i == 0 || filter.may_contain(row(writer, i - 1)));
        ASSERT_TRUE(known) << i;
      }
    });
  }
  threads.emplace_back([&] {
    Random random(seed);
    while (!done) {
      const std::uint64_t writer = random.below(kWriters), rows = inserted[writer];
      if (rows == 0) continue;
      const std::uint64_t i = rows - 1 - random.below(std::min(rows, kKept / 2));
      // Unless it went while it was asked for.
      if (!filter.may_contain(row(writer, i))) {
        ASSERT_LT(i, oldest(writer));
      }
    }
  });
  const auto enough = [&] { return stored[0] >= kRows && stored[1] >= kRows; };
  for (int i = 0; (i < kRebuilds || !enough()) && !testing::Test::HasFailure(); ++i) {
    auto rebuild = filter.rebuild(2 * kWriters * kKept, 0.01);
    ASSERT_TRUE(rebuild);
    for (std::uint64_t writer = 0; writer < kWriters; ++writer)
      for (std::uint64_t at = oldest(writer), end = stored[writer]; at < end; ++at)
        rebuild->insert(row(writer, at));
    if (i % 4 != 0) rebuild->commit();  // some are given up
  }
  done = true;
  for (auto& thread : threads) thread.join();
}

// The worst case: a reader chose its set of counters, was held up while a writer came and went, and only then counted
// itself in. The next writer must not miss it.
TEST(ReaderGateConcurrency, AReaderThatWasHeldUpIsWaitedFor) {
  ReaderGate gate;
  for (int writers = 0; writers < 4; ++writers) {
    const std::size_t chosen = gate.set();
    for (int i = 0; i < writers; ++i) gate.wait_for_readers();
    std::future<void> wait;
    {
      const auto pass = gate.enter(chosen);
      wait = std::async(std::launch::async, [&] { gate.wait_for_readers(); });
      EXPECT_EQ(wait.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout) << writers;
    }
    wait.get();
  }
}

// The gate alone: what a writer replaced is never in use once it has waited.
TEST(ReaderGateConcurrency, NobodyIsInsideAfterTheWait) {
  ReaderGate gate;
  std::array<std::atomic<bool>, 2> alive{true, false};
  std::atomic<int> current{0};
  std::atomic<bool> done{false};
  constexpr std::size_t kReaders = 3;
  std::array<std::atomic<int>, kReaders> passes{};
  std::vector<std::thread> readers;
  for (std::size_t reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&, reader] {
      for (; !done; ++passes[reader]) {
        const auto pass = gate.enter();
        const auto mine = static_cast<std::size_t>(current.load());
        for (int look = 0; look < 3; ++look) ASSERT_TRUE(alive[mine]);
      }
    });
  }
  const auto enough = [&] {
    return std::ranges::all_of(passes, [](const auto& count) { return count >= 20'000; });
  };
  for (int round = 0; (round < 2000 || !enough()) && !testing::Test::HasFailure(); ++round) {
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

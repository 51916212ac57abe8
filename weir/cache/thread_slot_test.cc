#include "weir/cache/thread_slot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "weir/cache/seq_gate.h"

namespace weir::cache::detail {
namespace {

TEST(ThreadSlotConcurrency, NoTwoLivingThreadsShareOne) {
  constexpr int kThreads = 70;  // more than there are
  for (int round = 0; round < 3; ++round) {
    std::mutex mutex;
    std::multiset<unsigned> slots;
    std::barrier all(kThreads);
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        const unsigned slot = ThreadSlot::mine();
        EXPECT_EQ(slot, ThreadSlot::mine());
        {
          const std::lock_guard lock(mutex);
          slots.insert(slot);
        }
        all.arrive_and_wait();  // nobody ends before all have theirs
      });
    for (auto& thread : threads) thread.join();
    for (unsigned slot = 0; slot < ThreadSlot::kSlots; ++slot) EXPECT_LE(slots.count(slot), 1U);
    EXPECT_GE(slots.count(ThreadSlot::kShared), kThreads - ThreadSlot::kSlots);
  }
}

TEST(ReadCountersConcurrency, LoseNothing) {
  ReadCounters counters;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    threads.reserve(70);
    for (int t = 0; t < 70; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) counters.add(static_cast<std::size_t>(i % 2));
      });
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(counters.total(0), 3U * 70 * 500);
  EXPECT_EQ(counters.total(1), 3U * 70 * 500);
  EXPECT_EQ(counters.total(2), 0U);
}

// Plain variables, so that the thread sanitizer sees a reader beside a writer.
TEST(ReaderGateConcurrency, KeepsReadersAndTheWriterApart) {
  ReaderGate gate;
  std::mutex writers;
  long a = 0, b = 0;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        if (gate.enter(ThreadSlot::mine())) {
          EXPECT_EQ(a, b);
          ReaderGate::leave(ThreadSlot::mine());
        } else {
          const std::lock_guard lock(writers);
          EXPECT_EQ(a, b);
        }
      }
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        const std::lock_guard lock(writers);
        gate.begin_write();
        ++a;
        ++b;
        gate.end_write();
      }
      stop = true;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_GE(a, 20'000);
}

TEST(SeqGateConcurrency, ReadersSeeWholes) {
  struct Pair {
    std::uint64_t a, b;
  };
  SeqGate gate;
  AtomicCell<Pair> cell;
  cell.construct({0, 0});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; i < 200'000; ++i) {
      gate.begin_write();
      cell.assign({i, ~i});
      gate.end_write();
    }
    stop = true;
  });
  std::uint64_t last = 0, whole = 0;
  while (!stop || whole == 0) {
    const auto count = gate.enter();
    if (!SeqGate::may_read(count)) continue;
    const Pair seen = cell.copy();
    if (!gate.still(count) || seen.a == 0) continue;
    ASSERT_EQ(seen.b, ~seen.a);
    ASSERT_GE(seen.a, last);
    last = seen.a;
    ++whole;
  }
  writer.join();
}

TEST(AtomicCell, HoldsWhatFitsNoWord) {
  struct Odd {
    std::uint8_t bytes[3];
    bool operator==(const Odd&) const = default;
  };
  struct Wide {
    std::uint32_t parts[5];
    bool operator==(const Wide&) const = default;
  };
  AtomicCell<Odd> odd;
  odd.construct({{1, 2, 3}});
  EXPECT_EQ(odd.copy(), (Odd{{1, 2, 3}}));
  AtomicCell<Wide> wide;
  wide.construct({{1, 2, 3, 4, 5}});
  EXPECT_EQ(wide.take(), (Wide{{1, 2, 3, 4, 5}}));
}

}  // namespace
}  // namespace weir::cache::detail

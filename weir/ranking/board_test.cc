#include "weir/ranking/board.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace weir::ranking {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::shared_ptr<const Numbers> numbers(std::uint64_t n) {
  return std::make_shared<const Numbers>(64, n);
}

TEST(Board, StartsEmptyAndStale) {
  const Board<Numbers> board;
  const auto edition = board.read();
  EXPECT_EQ(edition.version, 0U);
  EXPECT_FALSE(edition.computed_at);
  EXPECT_TRUE(edition.stale);
  EXPECT_EQ(edition.value, nullptr);
}

TEST(Board, KeepsTheLastGoodEditionWhenARefreshFails) {
  Board<Numbers> board;
  EXPECT_TRUE(board.publish(1, from_micros(10), numbers(1)));
  EXPECT_FALSE(board.read().stale);
  board.mark_stale();
  const auto edition = board.read();
  EXPECT_TRUE(edition.stale);
  EXPECT_EQ(edition.version, 1U);
  EXPECT_EQ(edition.computed_at, from_micros(10));
  EXPECT_EQ(edition.value->front(), 1U);
  EXPECT_TRUE(board.publish(2, from_micros(20), numbers(2)));
  EXPECT_FALSE(board.read().stale);
  EXPECT_EQ(board.read().value->front(), 2U);
}

TEST(Board, ReplacesOnlyAnotherVersion) {
  Board<Numbers> board;
  board.publish(7, from_micros(10), numbers(7));
  board.mark_stale();
  EXPECT_FALSE(board.publish(7, from_micros(99), numbers(8)));
  EXPECT_FALSE(board.read().stale) << "the same version again says that it is good";
  EXPECT_EQ(board.read().value->front(), 7U);
  EXPECT_TRUE(board.publish(3, from_micros(5), numbers(3))) << "another version wins, older or not";
  EXPECT_EQ(board.read().value->front(), 3U);
}

TEST(Board, OldEditionsDieWithTheirLastReader) {
  Board<Numbers> board;
  auto first = numbers(1);
  const std::weak_ptr<const Numbers> watch = first;
  board.publish(1, from_micros(1), std::move(first));
  auto reader = board.read();
  board.publish(2, from_micros(2), numbers(2));
  EXPECT_FALSE(watch.expired());
  reader = {};
  EXPECT_TRUE(watch.expired()) << "neither side of the board keeps what was replaced";
}

struct Touchy {
  static inline bool angry = false;
  int n = 0;
  explicit Touchy(int m = 0) : n(m) {}
  Touchy(const Touchy& other) : n(other.n) {
    if (angry) throw std::runtime_error("not now");
  }
  Touchy& operator=(const Touchy&) = default;
};

TEST(LeftRight, AReadThatThrowsKeepsNoWriterWaiting) {
  LeftRight<Touchy> value;
  Touchy::angry = true;
  EXPECT_THROW(value.load(), std::runtime_error);
  Touchy::angry = false;
  value.update([](const Touchy&) { return Touchy(2); });
  EXPECT_EQ(value.load().n, 2);
}

TEST(LeftRight, AnUpdateThatThrowsChangesNothing) {
  LeftRight<int> value(1);
  EXPECT_THROW(value.update([](int) -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(value.load(), 1);
  value.update([](int before) { return before + 1; });
  EXPECT_EQ(value.load(), 2);
}

// Readers see whole editions whose versions never go back, while a writer replaces them as fast as it can.
TEST(BoardConcurrency, ReadersSeeWholeEditionsThatNeverGoBack) {
  Board<Numbers> board;
  board.publish(1, from_micros(1), numbers(1));
  constexpr std::uint64_t kEditions = 5'000;
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      std::uint64_t last = 0;
      while (!done.load()) {
        const auto edition = board.read();
        ASSERT_GE(edition.version, last);
        last = edition.version;
        ASSERT_EQ(to_micros(*edition.computed_at), static_cast<std::int64_t>(edition.version));
        for (const std::uint64_t n : *edition.value) ASSERT_EQ(n, edition.version);
      }
    });
  for (std::uint64_t version = 2; version <= kEditions; ++version) {
    board.publish(version, from_micros(static_cast<std::int64_t>(version)), numbers(version));
    if (version % 7 == 0) board.mark_stale();
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(board.read().version, kEditions);
}

TEST(BoardConcurrency, WritersWaitForEachOther) {
  LeftRight<int> sum(0);
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (int n = 0; n < 2'000; ++n) sum.update([](int before) { return before + 1; });
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(sum.load(), 8'000);
}

}  // namespace
}  // namespace weir::ranking

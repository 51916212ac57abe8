#include "weir/idempotency/interval_set.h"

#include <gtest/gtest.h>

#include <set>

#include "weir/base/random.h"

namespace weir::idempotency {
namespace {

using Interval = IntervalSet::Interval;

TEST(IntervalSet, JoinsNeighbours) {
  IntervalSet set;
  EXPECT_TRUE(set.insert(5));
  EXPECT_TRUE(set.insert(7));
  EXPECT_TRUE(set.insert(1));
  EXPECT_EQ(set.intervals(), (std::vector<Interval>{{1, 1}, {5, 5}, {7, 7}}));
  EXPECT_TRUE(set.insert(6));
  EXPECT_TRUE(set.insert(2));
  EXPECT_TRUE(set.insert(0));
  EXPECT_FALSE(set.insert(6));
  EXPECT_EQ(set.intervals(), (std::vector<Interval>{{0, 2}, {5, 7}}));
  EXPECT_TRUE(set.insert(~std::uint64_t{0}));
  EXPECT_FALSE(set.insert(~std::uint64_t{0}));
  EXPECT_TRUE(set.contains(~std::uint64_t{0}));
  EXPECT_FALSE(set.contains(3));
}

TEST(IntervalSet, IsASet) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 50; ++round) {
    IntervalSet set;
    std::set<std::uint64_t> model;
    const std::uint64_t range = 1 + random.below(300);
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t number = random.below(range);
      EXPECT_EQ(set.contains(number), model.contains(number));
      EXPECT_EQ(set.insert(number), model.insert(number).second);
    }
    const auto again = IntervalSet::decode(set.encode());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->intervals(), set.intervals());
    std::size_t size = 0;
    for (std::size_t i = 0; i < set.intervals().size(); ++i) {
      size += set.intervals()[i].last - set.intervals()[i].first + 1;
      if (i > 0) EXPECT_GT(set.intervals()[i].first, set.intervals()[i - 1].last + 1);
    }
    EXPECT_EQ(size, model.size());
  }
}

TEST(IntervalSet, IsSmallWhereItIsDense) {
  IntervalSet set;
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) set.insert(i);
  EXPECT_LE(set.encode().size(), 4u);
}

TEST(IntervalSet, RefusesBytesThatAreNone) {
  const auto decoded = [](std::vector<int> bytes) {
    std::vector<std::byte> raw;
    for (const int byte : bytes) raw.push_back(static_cast<std::byte>(byte));
    return IntervalSet::decode(raw).has_value();
  };
  EXPECT_TRUE(decoded({}));
  EXPECT_TRUE(decoded({0, 3, 2, 0}));
  EXPECT_FALSE(decoded({0}));           // half an interval
  EXPECT_FALSE(decoded({0, 3, 1, 0}));  // no gap between two
  EXPECT_FALSE(decoded({0x80}));        // half a number
}

}  // namespace
}  // namespace weir::idempotency

#include "weir/base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace weir {
namespace {

TEST(Random, TheSameSeedGivesTheSameNumbers) {
  Random a(7), b(7), c(8);
  for (int i = 0; i < 100; ++i) {
    const auto x = a.next();
    EXPECT_EQ(x, b.next());
    EXPECT_NE(x, c.next());
  }
}

TEST(Random, BelowStaysBelowAndReachesEveryValue) {
  Random random(1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(10));
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(*seen.rbegin(), 9u);
}

TEST(Random, UnitIsBetweenZeroAndOneAndEven) {
  Random random(2);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double u = random.unit();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.01);
}

TEST(SecureRandom, DoesNotRepeatItself) {
  EXPECT_NE(secure_random64(), secure_random64());
}

}  // namespace
}  // namespace weir

#include "weir/ranking/model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "weir/base/fault.h"
#include "weir/base/random.h"

namespace weir::ranking {
namespace {

using namespace std::chrono_literals;

TEST(HackerNews, KnownValues) {
  const HackerNews model;
  EXPECT_NEAR(model.score(80, 30min), 19.99, 0.005);
  EXPECT_NEAR(model.score(100, 1h), 19.05, 0.005);
  EXPECT_NEAR(model.score(1000, 7 * 24h), 0.45, 0.005);
}

TEST(HackerNews, AgeIsClampedAtZero) {
  const HackerNews model;
  const WallTime now(1'700'000'000s);
  EXPECT_DOUBLE_EQ(model.score(10, -5h), model.score(10, 0h));
  EXPECT_DOUBLE_EQ(model.score(10, now + 24h, now), model.score(10, now, now));
  EXPECT_DOUBLE_EQ(model.score(10, now - 3h, now), model.score(10, 3h));
}

TEST(HackerNews, NobodysLikeRanksBelowAnyLike) {
  const HackerNews model;
  EXPECT_DOUBLE_EQ(model.score(1, 4h), 0);
  EXPECT_LT(model.score(0, 4h), 0);
  EXPECT_GT(model.score(2, 24h * 365), 0);
}

TEST(HackerNews, TheShortcutForTheDefaultGravityIsTheSameCurve) {
  const HackerNews shortcut;
  const HackerNews power(std::nextafter(HackerNews::kDefaultGravity, 2.0));
  for (int hours = 0; hours < 500; ++hours)
    EXPECT_NEAR(
        shortcut.score(1000, std::chrono::hours(hours)) / power.score(1000, std::chrono::hours(hours)), 1,
        1e-12);
}

TEST(HackerNews, IsFiniteWhateverComes) {
  const std::uint64_t seed = thread_random().next();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  for (const double gravity : {0.0, 0.5, 1.5, 10.0}) {
    const HackerNews model(gravity);
    for (const std::int64_t likes : {kLeast, std::int64_t{0}, kMost})
      for (const std::int64_t at : {kLeast, std::int64_t{0}, kMost})
        for (const std::int64_t now : {kLeast, std::int64_t{0}, kMost}) {
          EXPECT_TRUE(std::isfinite(model.score(likes, std::chrono::microseconds(at))));
          EXPECT_TRUE(std::isfinite(model.score(likes, from_micros(at), from_micros(now))));
        }
    for (int i = 0; i < 10'000; ++i) {
      const auto likes = static_cast<std::int64_t>(random.next());
      const auto at = from_micros(static_cast<std::int64_t>(random.next()));
      const auto now = from_micros(static_cast<std::int64_t>(random.next()));
      ASSERT_TRUE(std::isfinite(model.score(likes, at, now)));
    }
  }
}

TEST(HackerNews, FewerLikesThanNeededStayBelow) {
  const std::uint64_t seed = thread_random().next();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (const double gravity : {0.0, 1.5, 1.8}) {
    const HackerNews model(gravity);
    for (int i = 0; i < 10'000; ++i) {
      const std::chrono::seconds age(random.below(30 * 86'400));
      const auto likes = static_cast<std::int64_t>(2 + random.below(1'000'000));
      const double score = model.score(likes, age);
      const auto needed = model.likes_needed(score, age);
      ASSERT_LE(needed, likes) << "it reached the score itself";
      ASSERT_GE(needed, likes - 1) << "and not by much more";
      ASSERT_LT(model.score(needed - 1, age), score);
      ASSERT_GE(model.likes_needed(score, age + 1h), needed);
    }
    EXPECT_EQ(model.likes_needed(0, 1h), 0);
    EXPECT_EQ(model.likes_needed(-1, 1h), 0);
    EXPECT_GT(model.likes_needed(std::numeric_limits<double>::max(), 1h), 0);
  }
}

TEST(HackerNews, RefusesAGravityThatIsNone) {
  EXPECT_THROW(HackerNews{-0.1}, Unusable);
  EXPECT_THROW(HackerNews{10.1}, Unusable);
  EXPECT_THROW(HackerNews{std::numeric_limits<double>::quiet_NaN()}, Unusable);
}

}  // namespace
}  // namespace weir::ranking

#include "weir/base/clock.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, StandsStillUntilItIsMovedAndMovesBothTimes) {
  ManualClock clock;
  const auto wall = clock.now();
  const auto steady = clock.steady_now();
  EXPECT_EQ(clock.now(), wall);
  clock.advance(1500ms);
  EXPECT_EQ(clock.now() - wall, 1500ms);
  EXPECT_EQ(clock.steady_now() - steady, 1500ms);
}

TEST(Clock, MicrosecondsGoBothWays) {
  const WallTime t = Clock::system().now();
  EXPECT_EQ(from_micros(to_micros(t)), t);
}

}  // namespace
}  // namespace weir

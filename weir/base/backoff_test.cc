#include "weir/base/backoff.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, GrowsToItsLimitAndStartsAgain) {
  Random random(3);
  for (int round = 0; round < 1000; ++round) {
    Backoff backoff(10ms, 50ms);
    EXPECT_LE(backoff.next(random), 10ms);
    EXPECT_LE(backoff.next(random), 20ms);
    EXPECT_LE(backoff.next(random), 40ms);
    EXPECT_LE(backoff.next(random), 50ms);
    EXPECT_LE(backoff.next(random), 50ms);
    backoff.reset();
    EXPECT_LE(backoff.next(random), 10ms);
  }
}

}  // namespace
}  // namespace weir

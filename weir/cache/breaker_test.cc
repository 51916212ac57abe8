#include "weir/cache/breaker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

struct BreakerTest : testing::Test {
  ManualClock clock;
  Breaker breaker{clock, 100ms, 350ms};
};

TEST_F(BreakerTest, AsksAsLongAsNothingFails) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(breaker.allows());
  EXPECT_FALSE(breaker.is_open());
  EXPECT_EQ(breaker.quiet_for(), 0ns);
}

TEST_F(BreakerTest, AfterAFailureOneAsksNowAndThen) {
  EXPECT_TRUE(breaker.failed());
  EXPECT_FALSE(breaker.failed());  // who had asked before
  EXPECT_TRUE(breaker.is_open());
  EXPECT_EQ(breaker.quiet_for(), 100ms);
  EXPECT_FALSE(breaker.allows());
  clock.advance(100ms);
  EXPECT_TRUE(breaker.allows());
  EXPECT_FALSE(breaker.allows());  // one for all
  clock.advance(100ms);
  EXPECT_TRUE(breaker.allows());  // the one has told nothing
}

TEST_F(BreakerTest, TheWhileDoublesUpToALimit) {
  breaker.failed();
  for (const auto wait : {200ms, 350ms, 350ms}) {
    clock.advance(breaker.quiet_for());
    ASSERT_TRUE(breaker.allows());
    EXPECT_FALSE(breaker.failed());
    EXPECT_EQ(breaker.quiet_for(), wait);
  }
  breaker.succeeded();
  EXPECT_TRUE(breaker.allows());
  EXPECT_TRUE(breaker.failed());
  EXPECT_EQ(breaker.quiet_for(), 100ms);
}

TEST_F(BreakerTest, WhilesOfNothingAreAMillisecond) {
  Breaker hasty(clock, 0ms, -5ms);
  hasty.failed();
  EXPECT_FALSE(hasty.allows());
  clock.advance(1ms);
  EXPECT_TRUE(hasty.allows());
}

TEST(BreakerConcurrency, OneAsksForAll) {
  ManualClock clock;
  Breaker breaker(clock, 100ms, 100ms);
  breaker.failed();
  for (int round = 0; round < 50; ++round) {
    clock.advance(100ms);
    std::atomic<int> asked{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (int n = 0; n < 100; ++n) asked += breaker.allows() ? 1 : 0;
      });
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(asked, 1);
  }
}

}  // namespace
}  // namespace weir::cache

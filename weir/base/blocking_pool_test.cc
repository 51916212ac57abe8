#include "weir/base/blocking_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>

namespace weir {
namespace {

TEST(BlockingPoolConcurrency, RunsEverythingThatItTook) {
  std::atomic<int> ran{0};
  int taken = 0;
  {
    BlockingPool pool("test", 4, 10'000);
    for (int i = 0; i < 10'000; ++i)
      taken += pool.submit([&ran, owned = std::make_unique<int>(1)] { ran += *owned; }) ? 1 : 0;
  }
  EXPECT_EQ(taken, 10'000);
  EXPECT_EQ(ran, taken);
}

TEST(BlockingPoolConcurrency, RefusesPastItsLimitAndAfterItsStop) {
  BlockingPool pool("test", 1, 1);
  std::latch started(1), go(1);
  ASSERT_TRUE(pool.submit([&] {
    started.count_down();
    go.wait();
  }));
  started.wait();
  EXPECT_TRUE(pool.submit([] {}));
  EXPECT_FALSE(pool.submit([] {}));
  go.count_down();
  pool.stop();
  EXPECT_FALSE(pool.submit([] {}));
}

}  // namespace
}  // namespace weir

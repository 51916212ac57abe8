#include "weir/cache/ttl.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

TEST(Ttl, JitterStaysInItsBoundsAndUsesThem) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  Duration lowest = kNever, highest = Duration::zero();
  for (int i = 0; i < 10'000; ++i) {
    const Duration ttl = jittered(100s, 0.1, random);
    lowest = std::min(lowest, ttl);
    highest = std::max(highest, ttl);
  }
  EXPECT_GE(lowest, 90s);
  EXPECT_LT(lowest, 91s);
  EXPECT_LE(highest, 110s);
  EXPECT_GT(highest, 109s);
}

TEST(Ttl, NoJitterIsExact) {
  Random random(1);
  EXPECT_EQ(jittered(100s, 0, random), 100s);
  EXPECT_EQ(jittered(100s, -3, random), 100s);
}

TEST(Ttl, IsNeverZeroNegativeOrEndless) {
  Random random(1);
  for (const Duration ttl :
       {Duration(0), Duration(-5), Duration(1), Duration(1ms), Duration::min(), Duration(3ms)}) {
    for (const double jitter : {0.0, 0.5, 1.0, 7.0}) {
      for (int i = 0; i < 100; ++i) {
        EXPECT_GE(jittered(ttl, jitter, random), 1ms);
        EXPECT_LE(jittered(ttl, jitter, random), 6ms);
      }
    }
  }
  EXPECT_LT(jittered(kNever - 1s, 0.99, random), kNever);
  EXPECT_GT(jittered(kNever - 1s, 0.99, random), 1h);
  EXPECT_EQ(jittered(kNever, 0.5, random), kNever);
}

}  // namespace
}  // namespace weir::cache

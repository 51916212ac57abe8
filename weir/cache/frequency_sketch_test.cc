#include "weir/cache/frequency_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "weir/base/random.h"

namespace weir::cache::detail {
namespace {

std::uint32_t some(Random& random) {
  return static_cast<std::uint32_t>(random.next());
}

TEST(FrequencySketch, CountsUpToFifteen) {
  FrequencySketch sketch;
  sketch.resize(100);
  EXPECT_EQ(sketch.estimate(7), 0U);
  for (unsigned n = 1; n <= 20; ++n) {
    sketch.add(7);
    EXPECT_EQ(sketch.estimate(7), std::min(n, 15U));
  }
  sketch.add(8, 3);
  EXPECT_EQ(sketch.estimate(8), 3U);
}

// Against plain counting: never less, seldom more.
TEST(FrequencySketch, NeverTellsLessThanWasCounted) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  constexpr std::size_t kEntries = 1000;
  FrequencySketch sketch;
  sketch.resize(kEntries);
  std::map<std::uint32_t, unsigned> counted;
  std::vector<std::uint32_t> keys;
  for (std::size_t i = 0; i < kEntries; ++i) keys.push_back(some(random));
  for (std::size_t i = 0; i < 5 * kEntries; ++i) {  // half an age
    const std::uint32_t key = keys[random.below(keys.size())];
    sketch.add(key);
    ++counted[key];
  }
  int over = 0;
  for (const auto& [key, count] : counted) {
    ASSERT_GE(sketch.estimate(key), std::min(count, 15U));
    over += sketch.estimate(key) > std::min(count, 15U) ? 1 : 0;
  }
  EXPECT_LT(over, 50);
}

TEST(FrequencySketch, HalvesWithEachAge) {
  FrequencySketch sketch;
  sketch.resize(64);
  sketch.add(1, 12);
  sketch.add(2, 4);
  std::uint32_t other = 1000;
  const auto grow_old = [&] {
    for (int i = 0; i < 700; ++i)
      sketch.add(other++);  // a few add nothing: their counters were higher already
  };
  grow_old();
  EXPECT_GE(sketch.estimate(1), 6U);
  EXPECT_LT(sketch.estimate(1), 12U);
  for (int i = 0; i < 6; ++i) grow_old();
  EXPECT_LE(sketch.estimate(1), 4U);  // others may have met in its counters
}

TEST(FrequencySketch, KeepsWhatItKnowsWhenItGrows) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (const std::size_t to : {208U, 416U, 1000U, 150U}) {
    FrequencySketch sketch;
    sketch.resize(104);
    std::vector<std::uint32_t> keys;
    for (int i = 0; i < 50; ++i) {
      keys.push_back(some(random));
      sketch.add(keys.back(), 5);
    }
    sketch.resize(to);
    int kept = 0;
    for (const std::uint32_t key : keys) kept += sketch.estimate(key) >= 5 ? 1 : 0;
    // Where the sizes aren't multiples some blocks straddle two.
    EXPECT_GE(kept, to == 150U || to == 1000U ? 30 : 45) << to;
  }
}

TEST(FrequencySketch, TakesEightBytesAnEntry) {
  FrequencySketch sketch;
  sketch.resize(100'000);
  EXPECT_LE(sketch.memory_bytes(), 100'000U * 8.2);
}

}  // namespace
}  // namespace weir::cache::detail

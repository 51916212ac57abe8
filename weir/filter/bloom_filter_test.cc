#include "weir/filter/bloom_filter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "weir/base/hash.h"
#include "weir/base/random.h"
#include "weir/filter/growing_bloom_filter.h"

namespace weir::filter {
namespace {

// A seeded sequence whose two halves never meet: mix64 is a bijection.
std::uint64_t member(std::uint64_t i, std::uint64_t seed) {
  return mix64(2 * i + 1 + (seed << 40));
}
std::uint64_t stranger(std::uint64_t i, std::uint64_t seed) {
  return mix64(2 * i + (seed << 40));
}

template <class Filter>
double measured_rate(const Filter& filter, std::uint64_t seed, std::uint64_t tries) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < tries; ++i) wrong += filter.may_contain(stranger(i, seed)) ? 1 : 0;
  return static_cast<double>(wrong) / static_cast<double>(tries);
}

TEST(BloomFilter, NeverDeniesWhatWasInserted) {
  const std::uint64_t seed = secure_random64() >> 44;
  SCOPED_TRACE(seed);
  for (const std::uint64_t keys : {1U, 7U, 1000U, 100'000U}) {
    BloomFilter filter(keys, 0.01);
    for (std::uint64_t i = 0; i < keys; ++i) filter.insert(member(i, seed));
    for (std::uint64_t i = 0; i < keys; ++i) ASSERT_TRUE(filter.may_contain(member(i, seed)));
  }
}

TEST(BloomFilter, AnEmptyOneDeniesEverything) {
  const BloomFilter filter(1000, 0.01);
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_FALSE(filter.may_contain(mix64(i)));
}

TEST(BloomFilter, KeepsTheRateItWasSizedFor) {
  const std::uint64_t seed = secure_random64() >> 44;
  SCOPED_TRACE(seed);
  for (const double rate : {0.05, 0.01, 0.001}) {
    BloomFilter filter(200'000, rate);
    for (std::uint64_t i = 0; i < 200'000; ++i) filter.insert(member(i, seed));
    const double measured = measured_rate(filter, seed, 1'000'000);
    EXPECT_LT(measured, rate * 1.15) << rate;
    EXPECT_GT(measured, rate * 0.85) << rate;  // and wastes no memory to do it
  }
}

TEST(BloomFilter, TheFormulaTellsTheRateAtEachSize) {
  const std::uint64_t seed = secure_random64() >> 44;
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kKeys = 200'000;
  for (const double bits_per_key : {8.0, 12.0, 16.0}) {
    const auto blocks = static_cast<std::uint64_t>(kKeys * bits_per_key / 512);
    const double formula = BloomFilter::false_positive_rate(kKeys, blocks);
    BloomFilter filter(kKeys, formula);
    EXPECT_NEAR(static_cast<double>(filter.bytes()) / 64, static_cast<double>(blocks),
                static_cast<double>(blocks) * 0.01);
    for (std::uint64_t i = 0; i < kKeys; ++i) filter.insert(member(i, seed));
    EXPECT_NEAR(measured_rate(filter, seed, 2'000'000), formula, formula * 0.15) << bits_per_key;
  }
}

TEST(BloomFilter, SizesAreSane) {
  EXPECT_EQ(BloomFilter(0, 0.01).expected(), 1U);
  EXPECT_EQ(BloomFilter(1, 0.5).bytes(), 64U);
  // Ten bits a key and a bit more for one percent, also where 32 bits would overflow.
  EXPECT_LT(BloomFilter::blocks_for(1'000'000, 0.01) * 512, 10'500'000U);
  const std::uint64_t huge = std::uint64_t{1} << 40;
  EXPECT_NEAR(static_cast<double>(BloomFilter::blocks_for(huge, 0.01)) / static_cast<double>(huge),
              static_cast<double>(BloomFilter::blocks_for(1 << 20, 0.01)) / (1 << 20), 1e-5);
  EXPECT_GT(BloomFilter::blocks_for(1000, -1), BloomFilter::blocks_for(1000, 1e-6));  // clamped, not endless
}

TEST(BloomFilterConcurrency, InsertsAtOnceLoseNothing) {
  const std::uint64_t seed = secure_random64() >> 44;
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kThreads = 4, kEach = 20'000;
  BloomFilter filter(kThreads * kEach, 0.01);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        // Interleaved, so that threads meet in the same blocks; each reads back its own at once.
        filter.insert(member(i * kThreads + t, seed));
        ASSERT_TRUE(filter.may_contain(member(i * kThreads + t, seed)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::uint64_t i = 0; i < kThreads * kEach; ++i) ASSERT_TRUE(filter.may_contain(member(i, seed)));
}

TEST(GrowingBloomFilter, KeepsItsRateFarBeyondWhatWasExpected) {
  const std::uint64_t seed = secure_random64() >> 44;
  SCOPED_TRACE(seed);
  GrowingBloomFilter filter(1000, 0.02);
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    filter.insert(member(i, seed));
    filter.insert(member(i / 2, seed));  // known ones don't make it grow
  }
  for (std::uint64_t i = 0; i < 200'000; ++i) ASSERT_TRUE(filter.may_contain(member(i, seed)));
  EXPECT_LT(measured_rate(filter, seed, 500'000), 0.02);
  EXPECT_EQ(filter.stages(), 8);  // 1000 * (2^8 - 1) is the first to hold 200,000
  EXPECT_LT(filter.bytes(), 200'000U * 4);
}

TEST(GrowingBloomFilterConcurrency, GrowsUnderManyInserters) {
  const std::uint64_t seed = secure_random64() >> 44;
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kThreads = 4, kEach = 10'000;
  GrowingBloomFilter filter(16, 0.01);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        filter.insert(member(i * kThreads + t, seed));
        ASSERT_TRUE(filter.may_contain(member(i * kThreads + t, seed)));
        ASSERT_TRUE(filter.may_contain(member(i / 2 * kThreads + t, seed)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::uint64_t i = 0; i < kThreads * kEach; ++i) ASSERT_TRUE(filter.may_contain(member(i, seed)));
  EXPECT_LT(measured_rate(filter, seed, 200'000), 0.01 * 1.2);
}

}  // namespace
}  // namespace weir::filter

#include "weir/filter/growing_bloom_filter.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <limits>
#include <thread>
#include <vector>

#include "weir/base/fault.h"
#include "weir/base/saved_file.h"
#include "weir/filter/filter_fixture.h"
#include "weir/testing/sanitized.h"

namespace weir::filter {
namespace {

TEST(GrowingBloomFilter, KeepsItsRateFarBeyondWhatWasExpected) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  GrowingBloomFilter filter(1000, 0.02);
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    filter.insert(member(i, seed));
    filter.insert(member(i / 2, seed));  // known ones don't make it grow
  }
  for (std::uint64_t i = 0; i < 200'000; ++i) ASSERT_TRUE(filter.may_contain(member(i, seed)));
  const double measured = measured_rate(filter, seed, 500'000);
  EXPECT_LT(measured, 0.02 * 1.25);  // the first stage is small: its own rate has some chance in it
  EXPECT_EQ(filter.stages(), 8);     // 1000 * (2^8 - 1) is the first to hold 200,000
  EXPECT_LT(filter.bytes(), 200'000U * 4);
  const Statistics statistics = filter.statistics();
  EXPECT_NEAR(statistics.rate, measured, measured * 0.15);
  // Those that seemed to be there aren't put in.
  EXPECT_NEAR(static_cast<double>(statistics.keys), 198'000, 6000);
  EXPECT_EQ(statistics.bytes, filter.bytes());
  EXPECT_GT(statistics.fill, 0.1);
}

// At every size, and the worst is just before it grows. A small filter's own rate has much chance in it, the mean
// of many has little.
TEST(GrowingBloomFilter, TheRateHoldsAllTheWay) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  constexpr std::array<std::uint64_t, 5> kSizes{63, 190, 447, 4031, 32'703};  // 64 * (2^n - 1) - 1
  constexpr int kFilters = 40;
  for (const double rate : {0.3, 0.01, 0.001}) {
    std::array<double, kSizes.size()> sums{};
    for (int f = 0; f < kFilters; ++f) {
      GrowingBloomFilter filter(64, rate);
      std::uint64_t next = 0;
      for (std::size_t size = 0; size < kSizes.size(); ++size) {
        while (next < kSizes[size]) filter.insert(member(next++, seed + static_cast<std::uint64_t>(f)));
        sums[size] += filter.statistics().rate;
      }
    }
    for (std::size_t size = 0; size < kSizes.size(); ++size)
      EXPECT_LT(sums[size] / kFilters, rate * 1.05) << rate << " at " << kSizes[size];
  }
}

TEST(GrowingBloomFilter, OneThatIsLargeEnoughStaysOne) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  GrowingBloomFilter filter(10'001, 0.01);
  for (std::uint64_t i = 0; i < 10'000; ++i) filter.insert(member(i, seed));
  EXPECT_EQ(filter.stages(), 1);
}

TEST(GrowingBloomFilter, ASavedOneGrowsOn) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  GrowingBloomFilter filter(100, 0.01, 77);
  for (std::uint64_t i = 0; i < 5000; ++i) filter.insert(member(i, seed));
  const std::string bytes = filter.encode();
  const auto copy = GrowingBloomFilter::decode(bytes);
  EXPECT_EQ(copy->encode(), bytes);
  EXPECT_EQ(copy->inserted(), filter.inserted());
  EXPECT_EQ(copy->stages(), filter.stages());
  EXPECT_EQ(copy->hashing(), 77U);
  for (std::uint64_t i = 5000; i < 20'000; ++i) {
    filter.insert(member(i, seed));
    copy->insert(member(i, seed));
  }
  EXPECT_EQ(copy->encode(), filter.encode());
}

// A stage that says that it was made for 2^57 keys, and is full: the next can't be had on any machine.
TEST(GrowingBloomFilter, WithoutMemoryItGoesOnFuller) {
  const std::uint64_t expected = std::uint64_t{1} << 57;
  const std::string small = BloomFilter(1000, 0.01).encode();
  std::string bytes;
  MemorySink sink(bytes);
  write_header(sink, "weirgrow", 1,
               std::vector<std::uint64_t>{1, std::bit_cast<std::uint64_t>(0.01), expected, 0});
  write_header(sink, "weirblom", 1, std::vector<std::uint64_t>{1, number_at(small, 24), expected, 0});
  bytes += small.substr(56);
  const auto filter = GrowingBloomFilter::decode(bytes);
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (std::uint64_t i = 0; i < 2000; ++i) filter->insert(member(i, seed));
  for (std::uint64_t i = 0; i < 2000; ++i) ASSERT_TRUE(filter->may_contain(member(i, seed)));
  EXPECT_EQ(filter->stages(), 1);
  EXPECT_GT(filter->statistics().rate, 0.01);
}

TEST(GrowingBloomFilter, NonsenseIsRefused) {
  EXPECT_THROW(GrowingBloomFilter(1000, 0), std::invalid_argument);
  EXPECT_THROW(GrowingBloomFilter(1000, std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
  EXPECT_THROW(GrowingBloomFilter(std::numeric_limits<std::uint64_t>::max(), 0.01), std::bad_alloc);
}

TEST(GrowingBloomFilterConcurrency, GrowsUnderManyInserters) {
  const std::uint64_t seed = random_seed();
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
        if (i % 2500 == 0) {
          ASSERT_TRUE(GrowingBloomFilter::decode(filter.encode())->may_contain(member(t, seed)));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::uint64_t i = 0; i < kThreads * kEach; ++i) ASSERT_TRUE(filter.may_contain(member(i, seed)));
  // Threads overfill a filter while the one that grows it is kept waiting, which takes long under a sanitizer.
  EXPECT_LT(measured_rate(filter, seed, 200'000), WEIR_SANITIZED ? 0.05 : 0.01 * 1.2);
}

}  // namespace
}  // namespace weir::filter

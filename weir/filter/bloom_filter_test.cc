#include "weir/filter/bloom_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/filter/filter_fixture.h"

namespace weir::filter {
namespace {

TEST(BloomFilter, NeverDeniesWhatWasInserted) {
  const std::uint64_t seed = random_seed();
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
  EXPECT_EQ(filter.statistics().keys, 0U);
  EXPECT_EQ(filter.statistics().rate, 0);
}

TEST(BloomFilter, AnInsertTellsWhetherTheKeyWasNew) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (const Path path : paths()) {
    BloomFilter filter(10'000, 0.001);
    filter.use(path);
    int fresh = 0;
    for (std::uint64_t i = 0; i < 10'000; ++i) fresh += filter.insert(member(i, seed)) ? 1 : 0;
    EXPECT_GT(fresh, 9970);
    for (std::uint64_t i = 0; i < 10'000; ++i) ASSERT_FALSE(filter.insert(member(i, seed)));
  }
}

// The bits are the format: they must be the same whichever instructions set them, at one key or at many.
TEST(BloomFilter, EveryPathSetsAndReadsTheSameBits) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  if (paths().size() == 1) GTEST_SKIP() << "there is only the portable path here";
  for (const std::uint64_t keys : {1U, 30U, 1000U, 50'000U}) {
    BloomFilter portable(keys, 0.02), vector(keys, 0.02), bulk(keys, 0.02);
    portable.use(Path::portable);
    vector.use(Path::avx2);
    std::vector<std::uint64_t> hashes(keys);
    for (auto& hash : hashes) hash = random.next();
    for (const std::uint64_t hash : hashes) ASSERT_EQ(portable.insert(hash), vector.insert(hash));
    bulk.insert(hashes);
    ASSERT_EQ(portable.encode(), vector.encode());
    ASSERT_EQ(portable.encode(), bulk.encode());
    for (int i = 0; i < 100'000; ++i) {
      const std::uint64_t hash = random.next();
      ASSERT_EQ(portable.may_contain(hash), vector.may_contain(hash)) << hash;
    }
  }
}

// Where each key's bits lie never changes: filters that were saved years ago must be read as they were meant.
TEST(BloomFilter, TheBitsOfAKeyAreFixedForEver) {
  for (const Path path : paths()) {
    BloomFilter filter = BloomFilter::with_bits_per_key(1000, 8);
    filter.use(path);
    for (std::uint64_t i = 0; i < 1000; ++i) filter.insert(mix64(i));
    EXPECT_EQ(hash64(filter.encode()), 8301616745422812102U);
  }
}

TEST(BloomFilter, ManyAtATimeGetTheSameAnswers) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (const Path path : paths()) {
    BloomFilter filter(1000, 0.3);
    filter.use(path);
    for (std::uint64_t i = 0; i < 1000; ++i) filter.insert(member(i, seed));
    for (const std::size_t count : {0U, 1U, 11U, 12U, 13U, 1000U}) {
      std::vector<std::uint64_t> hashes(count);
      for (std::size_t i = 0; i < count; ++i) hashes[i] = mix64(i + seed);
      const auto answers = std::make_unique<bool[]>(count);
      filter.may_contain(hashes, {answers.get(), count});
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(answers[i], filter.may_contain(hashes[i]));
    }
  }
  bool answer = false;
  EXPECT_THROW(BloomFilter(1, 0.1).may_contain(std::vector<std::uint64_t>{1, 2}, {&answer, 1}),
               std::invalid_argument);
}

TEST(BloomFilter, KeepsTheRateItWasSizedFor) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (const double rate : {0.05, 0.01, 0.001}) {
    BloomFilter filter(200'000, rate);
    for (std::uint64_t i = 0; i < 200'000; ++i) filter.insert(member(i, seed));
    const double measured = measured_rate(filter, seed, 3'000'000);
    EXPECT_LT(measured, rate * 1.15) << rate;
    EXPECT_GT(measured, rate * 0.85) << rate;  // and wastes no memory to do it
  }
}

TEST(BloomFilter, TheFormulaTellsTheRateAtEachSize) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (const std::uint64_t keys : {100'000U, 1'000'000U}) {
    for (const double bits : {8.0, 12.0, 16.0}) {
      BloomFilter filter = BloomFilter::with_bits_per_key(keys, bits);
      const double formula = BloomFilter::false_positive_rate(keys, filter.blocks());
      for (std::uint64_t i = 0; i < keys; ++i) filter.insert(member(i, seed));
      const double measured = measured_rate(filter, seed, 3'000'000);
      EXPECT_NEAR(measured, formula, formula * 0.15) << bits;
      EXPECT_NEAR(filter.statistics().rate, formula, formula * 0.12) << bits;
    }
  }
}

// Filters that make all of a key's places of 32 bits, or of the two halves of 32, let everything through from some
// 100,000 keys on. Strangers that share either half of their hash with a key are told apart here.
TEST(BloomFilter, AHundredThousandKeysDoNotLetEverythingThrough) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kKeys = 100'000, kUpper = 0xffff'ffff'0000'0000;
  BloomFilter filter(kKeys, 0.01);
  for (std::uint64_t i = 0; i < kKeys; ++i) filter.insert(member(i, seed));
  std::uint64_t any = 0, same_upper = 0, same_lower = 0;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::uint64_t key = member(i, seed), other = member(kKeys + i, seed);
    any += filter.may_contain(other) ? 1 : 0;
    same_upper += filter.may_contain((key & kUpper) | (other & ~kUpper)) ? 1 : 0;
    same_lower += filter.may_contain((other & kUpper) | (key & ~kUpper)) ? 1 : 0;
  }
  EXPECT_LT(any, kKeys * 0.013);
  EXPECT_LT(same_upper, kKeys * 0.02);  // in a key's own block, which is a little fuller than others
  EXPECT_LT(same_lower, kKeys * 0.013);
}

// Low rates show whether a key's eight bits are independent.
TEST(BloomFilter, LowRatesHoldToo) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  BloomFilter filter(100'000, 2e-5);
  for (std::uint64_t i = 0; i < 100'000; ++i) filter.insert(member(i, seed));
  EXPECT_NEAR(measured_rate(filter, seed, 20'000'000), 2e-5,
              2e-5 * 0.35);  // 400 of them, give or take 7 sigma
}

TEST(BloomFilter, TheFormulaIsTheSumItStandsFor) {
  // Poisson and binomial are the same for many blocks: the plain sum, term by term.
  for (const double load : {1.0, 10.0, 21.3, 40.0, 100.0}) {
    double sum = 0, probability = std::exp(-load);
    for (int keys = 0; keys < 1000; ++keys) {
      sum += probability * std::pow(1 - std::pow(31.0 / 32, keys), 8);
      probability *= load / (keys + 1);
    }
    const auto blocks = std::uint64_t{1} << 30;
    const auto keys = static_cast<std::uint64_t>(load * static_cast<double>(blocks));
    EXPECT_NEAR(BloomFilter::false_positive_rate(keys, blocks), sum, sum * 1e-6 + 1e-14) << load;
  }
  // One block has no chance in it.
  EXPECT_NEAR(BloomFilter::false_positive_rate(20, 1), std::pow(1 - std::pow(31.0 / 32, 20), 8), 1e-12);
  EXPECT_EQ(BloomFilter::false_positive_rate(0, 10), 0);
  EXPECT_NEAR(BloomFilter::false_positive_rate(std::numeric_limits<std::uint64_t>::max(), 1), 1, 1e-12);
}

TEST(BloomFilter, SizesAreTheLeastThatKeepTheRate) {
  for (const std::uint64_t keys : {1U, 100U, 12'345U, 10'000'000U}) {
    for (const double rate : {0.3, 0.01, 1e-4, 1e-6}) {
      const std::uint64_t blocks = BloomFilter::blocks_for(keys, rate);
      EXPECT_LE(BloomFilter::false_positive_rate(keys, blocks), rate);
      if (blocks > 1) {
        EXPECT_GT(BloomFilter::false_positive_rate(keys, blocks - 1), rate);
      }
    }
  }
  EXPECT_EQ(BloomFilter(0, 0.01).expected(), 1U);
  EXPECT_EQ(BloomFilter(1, 0.5).bytes(), 32U);
  // Also where 32 bits would overflow: the same bits for each key.
  const std::uint64_t huge = std::uint64_t{1} << 40;
  EXPECT_NEAR(static_cast<double>(BloomFilter::blocks_for(huge, 0.01)) / static_cast<double>(huge),
              static_cast<double>(BloomFilter::blocks_for(1 << 20, 0.01)) / (1 << 20), 1e-5);
}

TEST(BloomFilter, NonsenseIsRefused) {
  for (const double rate : {0.0, -1.0, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()})
    EXPECT_THROW(BloomFilter(1000, rate), std::invalid_argument) << rate;
  for (const double bits : {0.0, -1.0, 1025.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(BloomFilter::with_bits_per_key(1000, bits), std::invalid_argument) << bits;
  EXPECT_THROW(BloomFilter(std::numeric_limits<std::uint64_t>::max(), 0.01), std::bad_alloc);
  EXPECT_THROW(BloomFilter(std::numeric_limits<std::uint64_t>::max() >> 6, 0.01), std::bad_alloc);
  EXPECT_NO_THROW(BloomFilter(1000, 1e-300));  // as low as it goes
}

TEST(BloomFilter, StatisticsTellWhatIsInIt) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (const std::uint64_t keys : {10U, 1000U, 100'000U, 1'000'000U}) {  // the last is sampled
    BloomFilter filter(keys, 0.01);
    for (int twice = 0; twice < 2; ++twice)
      for (std::uint64_t i = 0; i < keys; ++i) filter.insert(member(i, seed));
    const Statistics found = filter.statistics();
    EXPECT_EQ(found.bytes, filter.bytes());
    // Six standard deviations: over many seeds one is 0.27 times the root of the keys.
    EXPECT_NEAR(static_cast<double>(found.keys), static_cast<double>(keys),
                3 + 1.7 * std::sqrt(static_cast<double>(keys)));
    EXPECT_GT(found.fill, 0.2);
    EXPECT_LT(found.fill, 0.6);
    if (keys >= 100'000) {
      EXPECT_NEAR(found.rate, 0.01, 0.0015);
    }
  }
  BloomFilter full(1, 0.5);
  for (std::uint64_t i = 0; i < 100'000; ++i) full.insert(member(i, seed));
  EXPECT_EQ(full.statistics().fill, 1);
  EXPECT_EQ(full.statistics().rate, 1);
}

TEST(BloomFilter, AMergedOneKnowsTheKeysOfBoth) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  BloomFilter one(20'000, 0.01, 7), other(20'000, 0.01, 7), both(20'000, 0.01, 7);
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    (i % 2 == 0 ? one : other).insert(member(i, seed));
    both.insert(member(i, seed));
  }
  const std::string before = other.encode();
  one.merge(other);
  EXPECT_EQ(one.encode(), both.encode());
  EXPECT_EQ(other.encode(), before);
  one.merge(one);
  EXPECT_EQ(one.encode(), both.encode());
}

TEST(BloomFilter, DifferentOnesAreNotMerged) {
  BloomFilter filter(1000, 0.01, 7);
  const std::string before = filter.encode();
  BloomFilter larger(2000, 0.01, 7), otherwise_hashed(1000, 0.01, 8);
  larger.insert(mix64(1));
  otherwise_hashed.insert(mix64(1));
  EXPECT_THROW(filter.merge(larger), Unusable);
  EXPECT_THROW(filter.merge(otherwise_hashed), Unusable);
  EXPECT_EQ(filter.encode(), before);
}

TEST(BloomFilter, LargeOnesTakeNoMemoryUntilTheyAreWrittenTo) {
  BloomFilter filter(10'000'000'000, 0.01);  // 12 GB
  EXPECT_GT(filter.bytes(), 10'000'000'000U);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_FALSE(filter.may_contain(mix64(i)));
    filter.insert(mix64(i));
    EXPECT_TRUE(filter.may_contain(mix64(i)));
  }
  BloomFilter moved = std::move(filter);
  EXPECT_TRUE(moved.may_contain(mix64(3)));
}

TEST(BloomFilterConcurrency, InsertsAtOnceLoseNothing) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kThreads = 4, kEach = 20'000;
  for (const Path path : paths()) {
    BloomFilter filter(kThreads * kEach, 0.01), alone(kThreads * kEach, 0.01);
    filter.use(path);
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
    for (std::uint64_t i = 0; i < kThreads * kEach; ++i) alone.insert(member(i, seed));
    EXPECT_EQ(filter.encode(), alone.encode());  // not a bit lost, and none too many
  }
}

// Two threads that start together, again and again, on a filter of a single block: an update that isn't atomic
// loses a bit before long.
TEST(BloomFilterConcurrency, InsertsIntoOneBlockLoseNothing) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kRounds = 20'000, kEach = 12;
  for (const Path path : paths()) {
    std::vector<BloomFilter> filters;
    filters.reserve(kRounds);
    for (std::uint64_t i = 0; i < kRounds; ++i) filters.emplace_back(1, 0.5).use(path);
    std::array<std::atomic<std::uint64_t>, 2> at{};
    const auto work = [&](std::uint64_t mine) {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        at[mine] = round;
        // They only meet while both run, so that it gives up its turn late.
        for (int spins = 0; at[1 - mine] < round; ++spins)
          if (spins > 1000) std::this_thread::yield();
        for (std::uint64_t i = 0; i < kEach; ++i)
          filters[round].insert(member((round * kEach + i) * 2 + mine, seed));
      }
      at[mine] = kRounds;
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    for (std::uint64_t round = 0; round < kRounds; ++round)
      for (std::uint64_t i = 0; i < 2 * kEach; ++i)
        ASSERT_TRUE(filters[round].may_contain(member(round * kEach * 2 + i, seed))) << round;
  }
}

TEST(BloomFilterConcurrency, SavingMergingAndCountingGoOnBesideInserts) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  constexpr std::uint64_t kKeys = 30'000;
  BloomFilter filter(kKeys, 0.01), other(kKeys, 0.01);
  for (std::uint64_t i = 0; i < kKeys / 2; ++i) filter.insert(member(i, seed));
  std::thread inserter([&] {
    for (std::uint64_t i = kKeys / 2; i < kKeys; ++i) filter.insert(member(i, seed));
  });
  for (int round = 0; round < 10; ++round) {
    other.merge(filter);
    const BloomFilter copy = BloomFilter::decode(filter.encode());  // its checksum is right
    for (std::uint64_t i = 0; i < kKeys / 2; ++i) ASSERT_TRUE(copy.may_contain(member(i, seed)));
    EXPECT_GT(filter.statistics().keys, kKeys / 3);
  }
  inserter.join();
  other.merge(filter);
  EXPECT_EQ(other.encode(), filter.encode());
}

}  // namespace
}  // namespace weir::filter

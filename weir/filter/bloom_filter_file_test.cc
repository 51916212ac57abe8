#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "weir/base/fault.h"
#include "weir/base/saved_file.h"
#include "weir/filter/filter_fixture.h"
#include "weir/filter/growing_bloom_filter.h"
#include "weir/testing/temp_dir.h"

namespace weir::filter {
namespace {

// The reason for which the bytes are refused; empty if they aren't.
template <class Filter>
std::string refusal(const std::string& bytes) {
  try {
    static_cast<void>(Filter::decode(bytes));
    return "";
  } catch (const Unusable& error) {
    return error.what();
  }
}

BloomFilter some_filter(std::uint64_t keys, std::uint64_t seed) {
  BloomFilter filter(keys, 0.01, seed);
  for (std::uint64_t i = 0; i < keys; ++i) filter.insert(member(i, seed));
  return filter;
}

class BloomFilterFile : public testing::Test {
 protected:
  const TempDir folder_;
  const std::filesystem::path file_ = folder_ / "filter";
};

TEST(BloomFilterForm, WhatWasWrittenIsReadAgain) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (const std::uint64_t keys : {1U, 100U, 2000U, 200'000U}) {  // less than a piece, and several
    const BloomFilter filter = some_filter(keys, seed);
    const std::string bytes = filter.encode();
    EXPECT_EQ(bytes.size(), filter.bytes() + 64);
    const BloomFilter copy = BloomFilter::decode(bytes);
    EXPECT_EQ(copy.encode(), bytes);
    EXPECT_EQ(copy.expected(), filter.expected());
    EXPECT_EQ(copy.hashing(), seed);
    EXPECT_EQ(copy.path(), filter.path());
  }
}

TEST(BloomFilterForm, EveryFlippedBitAndEveryCutIsNoticed) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  const std::string bytes = some_filter(100, seed).encode();
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_NE(refusal<BloomFilter>(damaged), "") << bit;
  }
  for (std::size_t length = 0; length < bytes.size(); ++length)
    ASSERT_NE(refusal<BloomFilter>(bytes.substr(0, length)), "") << length;
  EXPECT_EQ(refusal<BloomFilter>(bytes + "x"), "something follows it");
}

TEST(BloomFilterForm, TheReasonIsTold) {
  const std::string bytes = some_filter(100, 1).encode();
  const auto changed = [&](std::size_t at, char to) {
    std::string other = bytes;
    other[at] = to;
    return refusal<BloomFilter>(other);
  };
  EXPECT_EQ(changed(0, 'x'), "not a file of this kind: it doesn't begin with \"weirblom\"");
  EXPECT_EQ(changed(8, 9), "format version 9, but this program reads version 1");
  EXPECT_EQ(changed(24, 9), "the header is damaged: its checksum is wrong");
  EXPECT_EQ(changed(60, static_cast<char>(bytes[60] ^ 1)),
            "the filter is damaged: the checksum of its blocks is wrong");
  EXPECT_EQ(refusal<BloomFilter>(bytes.substr(0, 100)).substr(0, 13), "it is cut off");
  EXPECT_EQ(refusal<BloomFilter>(""), "it is cut off");
  EXPECT_EQ(refusal<GrowingBloomFilter>(bytes),
            "not a file of this kind: it doesn't begin with \"weirgrow\"");
}

// Headers whose checksum is right and that lie: no memory is taken on their word.
TEST(BloomFilterForm, AHeaderThatLiesIsNotBelieved) {
  const auto forged = [](std::uint64_t layout, std::uint64_t blocks, std::uint64_t expected) {
    std::string bytes;
    MemorySink sink(bytes);
    write_header(sink, "weirblom", 1, std::vector<std::uint64_t>{layout, blocks, expected, 0});
    return refusal<BloomFilter>(bytes + std::string(100, '\0'));
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(forged(2, 1, 1), "layout 2, but this program knows layout 1");
  for (const std::uint64_t blocks :
       {std::uint64_t{3}, kMost, kMost / 32, kMost / 32 + 1, std::uint64_t{1} << 40})
    EXPECT_EQ(forged(1, blocks, 1).substr(0, 13), "it is cut off") << blocks;
  EXPECT_EQ(forged(1, 0, 1), "the header is damaged: a filter of nothing");
  EXPECT_EQ(forged(1, 1, 0), "the header is damaged: a filter of nothing");
}

TEST(BloomFilterForm, AGrowingOnesHeaderThatLiesIsNotBelieved) {
  const auto forged = [](std::uint64_t stages, double rate, std::uint64_t second_expected,
                         std::uint64_t second_hashing) {
    std::string bytes;
    MemorySink sink(bytes);
    write_header(sink, "weirgrow", 1,
                 std::vector<std::uint64_t>{stages, std::bit_cast<std::uint64_t>(rate), 5, 0});
    bytes += BloomFilter(10, 0.01).encode();
    bytes += BloomFilter(second_expected, 0.01, second_hashing).encode();
    return refusal<GrowingBloomFilter>(bytes);
  };
  EXPECT_EQ(forged(2, 0.01, 20, 0), "");
  EXPECT_NE(forged(1, 0.01, 20, 0), "");
  EXPECT_NE(forged(3, 0.01, 20, 0), "");
  EXPECT_NE(forged(0, 0.01, 20, 0), "");
  EXPECT_NE(forged(41, 0.01, 20, 0), "");
  EXPECT_NE(forged(std::numeric_limits<std::uint64_t>::max(), 0.01, 20, 0), "");
  EXPECT_NE(forged(2, 0, 20, 0), "");
  EXPECT_NE(forged(2, std::numeric_limits<double>::quiet_NaN(), 20, 0), "");
  EXPECT_NE(forged(2, 0.01, 21, 0), "");
  EXPECT_NE(forged(2, 0.01, 20, 1), "");
}

// Any damage: bytes changed, cut out, doubled, put elsewhere. A damaged filter is refused, whatever it is.
TEST(BloomFilterForm, RandomDamageIsRefused) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  Random random(seed);
  GrowingBloomFilter growing(50, 0.01, seed);
  for (std::uint64_t i = 0; i < 500; ++i) growing.insert(member(i, seed));
  const std::array<std::string, 2> whole{some_filter(300, seed).encode(), growing.encode()};
  for (int round = 0; round < 50'000; ++round) {
    const std::string& good = whole[static_cast<std::size_t>(round % 2)];
    std::string bytes = good;
    for (std::uint64_t times = 1 + random.below(3); times > 0; --times) {
      const std::size_t at = random.below(bytes.size() + 1), length = random.below(100);
      switch (random.below(5)) {
        case 0:
          bytes.resize(at);
          break;
        case 1:
          bytes.erase(at, length);
          break;
        case 2:
          bytes.insert(at, bytes.substr(random.below(bytes.size() + 1), length));
          break;
        case 3:
          bytes.insert(at, 1, static_cast<char>(random.below(256)));
          break;
        default:
          if (at < bytes.size()) bytes[at] = static_cast<char>(random.below(256));
      }
    }
    if (bytes == good) continue;
    ASSERT_NE(round % 2 == 0 ? refusal<BloomFilter>(bytes) : refusal<GrowingBloomFilter>(bytes), "") << round;
  }
}

TEST_F(BloomFilterFile, ASavedOneIsLoaded) {
  const std::uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  const BloomFilter filter = some_filter(1000, seed);
  filter.save(file_);
  EXPECT_EQ(BloomFilter::load(file_).encode(), filter.encode());
  const BloomFilter other = some_filter(2000, seed);
  other.save(file_);  // in the place of the first
  EXPECT_EQ(BloomFilter::load(file_).encode(), other.encode());
  GrowingBloomFilter growing(10, 0.01);
  for (std::uint64_t i = 0; i < 1000; ++i) growing.insert(member(i, seed));
  growing.save(file_);
  EXPECT_EQ(GrowingBloomFilter::load(file_)->encode(), growing.encode());
  const auto entries = std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  EXPECT_EQ(entries, 1);  // nothing is left beside it
}

TEST_F(BloomFilterFile, ADamagedOneIsRefusedByName) {
  some_filter(1000, 1).save(file_);
  {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file << "damage";
  }
  try {
    static_cast<void>(BloomFilter::load(file_));
    FAIL() << "it was believed";
  } catch (const Unusable& error) {
    EXPECT_EQ(error.what(), file_.string() + ": the filter is damaged: the checksum of its blocks is wrong");
  }
  some_filter(1000, 1).save(file_);
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) - 1);
  EXPECT_THROW(static_cast<void>(BloomFilter::load(file_)), Unusable);
  some_filter(1000, 1).save(file_);
  std::ofstream(file_, std::ios::app) << "x";
  EXPECT_THROW(static_cast<void>(BloomFilter::load(file_)), Unusable);
}

TEST_F(BloomFilterFile, WhatCanNotBeReadOrWrittenIsUnavailable) {
  EXPECT_THROW(static_cast<void>(BloomFilter::load(file_)), Unavailable);
  EXPECT_THROW(static_cast<void>(BloomFilter::load(folder_.path())), Unavailable);
  EXPECT_THROW(some_filter(10, 1).save(folder_ / "no such folder/filter"), Unavailable);
  EXPECT_THROW(some_filter(10, 1).save(folder_.path()), Unavailable);  // a folder has this name
  EXPECT_EQ(std::filesystem::exists(folder_ / "no such folder"), false);
}

TEST_F(BloomFilterFile, AFailedSaveLeavesTheOldOne) {
  const BloomFilter filter = some_filter(10, 1);
  filter.save(file_);
  const auto fails = [](Sink& sink) {
    sink.write("half of it");
    throw Unavailable("the disk is full");
  };
  EXPECT_THROW(replace_file(file_, fails), Unavailable);
  EXPECT_EQ(BloomFilter::load(file_).encode(), filter.encode());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

}  // namespace
}  // namespace weir::filter

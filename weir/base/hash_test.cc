#include "weir/base/hash.h"

#include <gtest/gtest.h>

#include <set>

namespace weir {
namespace {

TEST(Hash64, IsXxh3) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2ULL);  // the published value for no input and seed 0
  EXPECT_NE(hash64("article:1"), hash64("article:2"));
  EXPECT_NE(hash64("article:1", 1), hash64("article:1", 2));
}

TEST(Mix64, NeighboursFallIntoDifferentBuckets) {
  std::set<std::uint64_t> buckets;
  for (std::uint64_t id = 0; id < 1000; ++id) buckets.insert(mix64(id) >> 48);
  EXPECT_GT(buckets.size(), 980u);
}

}  // namespace
}  // namespace weir

#include "weir/queue/partition.h"

#include <gtest/gtest.h>

namespace weir::queue {
namespace {

// Values of org.apache.kafka.common.utils.Utils.murmur2, from Kafka's own test of it.
TEST(Murmur2, AgreesWithJava) {
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("21")), -973932308);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("foobar")), -790332482);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("a-little-bit-long-string")), -985981536);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("a-little-bit-longer-string")), -1486304829);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8")),
            -58897971);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("abc")), 479470107);
}

TEST(PartitionOf, IsStableInRangeAndUsesAll) {
  std::vector<int> hits(8);
  for (int id = 1; id <= 1000; ++id) {
    const std::string key = "article:" + std::to_string(id);
    const auto partition = partition_of(key, 8);
    ASSERT_LT(partition, 8u);
    ASSERT_EQ(partition, partition_of(key, 8));
    ++hits[partition];
  }
  for (const int count : hits) EXPECT_GT(count, 80);
  EXPECT_LT(partition_of("", 3), 3u);
}

}  // namespace
}  // namespace weir::queue

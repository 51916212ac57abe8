#include "weir/ranking/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "weir/base/id.h"
#include "weir/base/random.h"

namespace weir::ranking {
namespace {

struct Entry {
  double score;
  Id id;
  bool operator==(const Entry&) const = default;
};
struct Better {
  bool operator()(const Entry& a, const Entry& b) const {
    return a.score != b.score ? a.score > b.score : a.id > b.id;
  }
};

TEST(TopK, KeepsTheBestAndBreaksTiesByTheNewerId) {
  TopK<Entry, Better> top(3);
  EXPECT_TRUE(top.offer({1, 1}));
  EXPECT_TRUE(top.offer({5, 2}));
  EXPECT_EQ(top.worst()->id, 1);
  EXPECT_TRUE(top.offer({5, 4}));
  EXPECT_TRUE(top.full());
  EXPECT_TRUE(top.offer({5, 3}));
  EXPECT_FALSE(top.offer({5, 1})) << "the older of equals is turned away";
  EXPECT_FALSE(top.offer({0.5, 9}));
  EXPECT_EQ(top.take(), (std::vector<Entry>{{5, 4}, {5, 3}, {5, 2}}));
  EXPECT_EQ(top.size(), 0U);
  EXPECT_EQ(top.worst(), nullptr);
}

TEST(TopK, KeepsNothingWhenAskedForNothing) {
  TopK<Entry, Better> top(0);
  EXPECT_FALSE(top.offer({1, 1}));
  EXPECT_TRUE(top.take().empty());
}

TEST(TopK, AgreesWithSortingInAnyOrder) {
  const std::uint64_t seed = thread_random().next();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<Entry> all;
    const std::uint64_t n = random.below(300);
    // Few different scores, so that ties are common.
    for (std::uint64_t i = 0; i < n; ++i)
      all.push_back({static_cast<double>(random.below(20)), static_cast<Id>(i + 1)});
    std::shuffle(all.begin(), all.end(), random);
    const std::size_t k = random.below(50);
    TopK<Entry, Better> top(k);
    for (const Entry& entry : all) top.offer(entry);
    std::sort(all.begin(), all.end(), Better{});
    all.resize(std::min(all.size(), k));
    ASSERT_EQ(top.take(), all);
  }
}

}  // namespace
}  // namespace weir::ranking

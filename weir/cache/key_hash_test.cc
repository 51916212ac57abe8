#include "weir/cache/key_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "weir/base/random.h"

namespace weir::cache {
namespace {

// Whatever the seed, keys that follow each other in any step fall evenly into shards (by the uppermost bits) and
// buckets (by the upper bits of the lower half).
TEST(KeyHash, SpreadsKeysThatFollowEachOther) {
  constexpr int kKeys = 256, kParts = 8;
  for (int round = 0; round < 5'000; ++round) {
    const std::uint64_t seed = secure_random64();
    const unsigned step = static_cast<unsigned>(round % 64);
    std::array<int, kParts> shards{}, buckets{};
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const std::uint64_t hash = KeyHash<std::uint64_t>{}(i << step % 56, seed);
      ++shards[hash >> 56 & (kParts - 1)];
      ++buckets[(hash & 0xffffffff) * kParts >> 32];
    }
    // Of 32 on average, by chance more than 66 about once in 100 million times.
    ASSERT_LE(*std::ranges::max_element(shards), 66) << "seed " << seed << " step " << step;
    ASSERT_LE(*std::ranges::max_element(buckets), 66) << "seed " << seed << " step " << step;
  }
}

}  // namespace
}  // namespace weir::cache

// The keys that the benchmarks of caches ask for: a sequence by Zipf's law.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/base/random.h"

namespace weir::bench {

inline constexpr std::size_t kKeys = 131'072;
inline constexpr std::size_t kSequence = std::size_t{1} << 20;

// kSequence keys below kKeys, by Zipf's law with the exponent 0.99.
inline std::vector<std::uint32_t> zipf(std::uint64_t seed) {
  std::vector<double> sums;
  double sum = 0;
  for (std::size_t rank = 1; rank <= kKeys; ++rank)
    sums.push_back(sum += 1 / std::pow(static_cast<double>(rank), 0.99));
  Random random(seed);
  std::vector<std::uint32_t> keys(kSequence);
  for (auto& key : keys) {
    const auto at = std::ranges::lower_bound(sums, random.unit() * sum);
    key = static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(at - sums.begin(), kKeys - 1));
  }
  return keys;
}

}  // namespace weir::bench

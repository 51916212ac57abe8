// What the filters' tests share.
#pragma once

#include <cstdint>
#include <vector>

#include "weir/base/hash.h"
#include "weir/base/random.h"
#include "weir/filter/split_block.h"

namespace weir::filter {

// Small enough that `member` and `stranger` have room for it.
inline std::uint64_t random_seed() {
  return secure_random64() >> 44;
}

// A seeded sequence whose two halves never meet: mix64 is a bijection.
inline std::uint64_t member(std::uint64_t i, std::uint64_t seed) {
  return mix64(2 * i + 1 + (seed << 40));
}
inline std::uint64_t stranger(std::uint64_t i, std::uint64_t seed) {
  return mix64(2 * i + (seed << 40));
}

template <class Filter>
double measured_rate(const Filter& filter, std::uint64_t seed, std::uint64_t tries) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < tries; ++i) wrong += filter.may_contain(stranger(i, seed)) ? 1 : 0;
  return static_cast<double>(wrong) / static_cast<double>(tries);
}

// What this machine can do.
inline std::vector<Path> paths() {
  if (best_path() == Path::portable) return {Path::portable};
  return {Path::portable, best_path()};
}

}  // namespace weir::filter

// BloomFilter: answers "certainly not there" or "maybe there" about a set that only grows, in one cache line.
//
// A split-block filter: a key's eight bits lie in one block of 64 bytes, one bit in each of its eight 64-bit
// words, so that a look-up costs one cache miss however large the filter is. The blocked filter is Putze,
// Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007); the split into words is what
// Apache Impala and Parquet do (theirs are eight words of 32 bits). It buys speed for a somewhat higher
// false-positive rate than an unblocked filter of the same size; `false_positive_rate` has the layout's own
// formula, which sizes the filter.
//
// Promises: what was inserted is never denied; inserts and look-ups may run at once, without locks; indices
// are 64 bits wide throughout.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace weir::filter {

class BloomFilter {
 public:
  // For `expected` keys at the given rate of false positives: 0 < rate < 1 (clamped to 1e-7 .. 0.5), expected
  // 0 counts as 1. Throws std::bad_alloc.
  BloomFilter(std::uint64_t expected, double rate);

  // Both take 64 well-mixed bits of the key (`mix64`, `hash64`; seeded where somebody else chooses the keys).
  // Thread-safe and lock-free. An insert happens before a look-up when the program orders the two (a mutex, a
  // release and an acquire): only then the look-up must see it.
  void insert(std::uint64_t hash);
  bool may_contain(std::uint64_t hash) const;

  // How many keys it was sized for, and what it takes.
  std::uint64_t expected() const { return expected_; }
  std::uint64_t bytes() const { return blocks_ * sizeof(Block); }

  // The rate of false positives of `blocks` blocks that hold `keys` keys: a block's load is Poisson
  // distributed.
  static double false_positive_rate(std::uint64_t keys, std::uint64_t blocks);
  // The least number of blocks that keeps the rate.
  static std::uint64_t blocks_for(std::uint64_t keys, double rate);

 private:
  static constexpr int kWords = 8;
  struct alignas(64) Block {
    std::array<std::atomic<std::uint64_t>, kWords> words;
  };
  Block& block_of(std::uint64_t hash) const;

  std::uint64_t expected_;
  std::uint64_t blocks_;
  std::unique_ptr<Block[]> table_;
};

}  // namespace weir::filter

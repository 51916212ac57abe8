// GrowingBloomFilter: a BloomFilter for a set whose final size nobody knows.
//
// The scalable filter of Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom Filters" (2007): when the
// newest filter holds as many keys as it was made for, one twice its size with half its rate of false
// positives is put before it. The rates sum to at most twice the first's, so the first gets half of what was
// asked. A look-up costs a cache miss for each doubling.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "weir/filter/bloom_filter.h"

namespace weir::filter {

class GrowingBloomFilter {
 public:
  // Sized for `expected` keys at first; `rate` bounds the false positives at every size.
  GrowingBloomFilter(std::uint64_t expected, double rate);
  ~GrowingBloomFilter();
  GrowingBloomFilter(const GrowingBloomFilter&) = delete;
  GrowingBloomFilter& operator=(const GrowingBloomFilter&) = delete;

  // As BloomFilter's: thread-safe; look-ups take no lock, an insert takes one only when it has to grow.
  // A key inserted twice counts twice towards growing, unless the filter has seen it.
  void insert(std::uint64_t hash);
  bool may_contain(std::uint64_t hash) const;

  std::uint64_t inserted() const { return inserted_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const;
  int stages() const { return stages_.load(std::memory_order_acquire); }

 private:
  void grow(int seen_stages);

  static constexpr int kMaxStages = 40;  // a first stage of one key would outgrow every memory by then
  const double first_rate_;
  std::array<std::atomic<BloomFilter*>, kMaxStages> filters_{};
  std::atomic<int> stages_{0};
  std::atomic<std::uint64_t> inserted_{0};
  std::atomic<std::uint64_t> room_{0};  // keys that all stages together were made for
  std::mutex growing_;
};

}  // namespace weir::filter

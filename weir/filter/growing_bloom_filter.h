// GrowingBloomFilter: a BloomFilter for a set whose final size nobody knows.
//
// The scalable filter of Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom Filters" (2007): when the
// newest filter holds as many keys as it was made for, one twice its size with a lower rate of false positives
// is put before it, and the rates sum to what was asked. They fall as 1, 1/4, 1/9, 1/16 .. (Apple, "Stretching
// Your Data With Taffy Filters", 2021): that takes less memory than halving them, since the sum is
// 1.6 times the first and not twice, and a filter of eight bits a key pays dearly for very low rates. A look-up
// costs a cache miss for each doubling.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "weir/filter/bloom_filter.h"

namespace weir::filter {

class GrowingBloomFilter {
 public:
  // Sized for `expected` keys at first; `rate` bounds the false positives at every size (down to 1e-6).
  // `hashing` as BloomFilter's. Throws std::invalid_argument and std::bad_alloc.
  GrowingBloomFilter(std::uint64_t expected, double rate, std::uint64_t hashing = 0);
  ~GrowingBloomFilter();
  GrowingBloomFilter(const GrowingBloomFilter&) = delete;
  GrowingBloomFilter& operator=(const GrowingBloomFilter&) = delete;

  // As BloomFilter's: thread-safe; look-ups take no lock, an insert takes one only when it has to grow.
  // A key inserted twice counts once towards growing. Where there is no memory to grow, the newest stage is
  // overfilled (`statistics` shows it), and after some more keys it is tried again.
  void insert(std::uint64_t hash);
  bool may_contain(std::uint64_t hash) const;

  // As BloomFilter's, in a format of their own. (Two of these can't be merged and keep their rate: put the keys
  // of one into the other, or ask both.)
  std::string encode() const;
  static std::unique_ptr<GrowingBloomFilter> decode(std::string_view bytes);
  void save(const std::filesystem::path& file) const;
  static std::unique_ptr<GrowingBloomFilter> load(const std::filesystem::path& file);

  std::uint64_t inserted() const { return inserted_.load(std::memory_order_relaxed); }
  std::uint64_t hashing() const { return hashing_; }
  std::uint64_t bytes() const;
  int stages() const { return stages_.load(std::memory_order_acquire); }
  // Of all stages together; up to a millisecond a stage.
  Statistics statistics() const;

  void write(Sink& sink) const;
  static std::unique_ptr<GrowingBloomFilter> read(Source& source);

 private:
  // Without a stage yet.
  struct Start {
    double rate;
    std::uint64_t hashing;
  };
  explicit GrowingBloomFilter(Start start) : rate_(start.rate), hashing_(start.hashing) {}
  const BloomFilter& stage(int index) const {
    return *filters_[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
  }
  // Under the lock, or while nobody else has the filter.
  void append(std::unique_ptr<BloomFilter> filter);
  double rate_of(int stage) const;
  void grow(int seen_stages);

  static constexpr int kMaxStages = 40;  // a first stage of one key would outgrow every memory by then
  const double rate_;
  const std::uint64_t hashing_;
  std::array<std::atomic<BloomFilter*>, kMaxStages> filters_{};
  std::atomic<int> stages_{0};
  // It grows at so many keys: what all stages together were made for.
  std::atomic<std::uint64_t> room_{0};
  std::mutex growing_;
  // Written by each insert: on a cache line that look-ups don't read.
  alignas(64) std::atomic<std::uint64_t> inserted_{0};
};

}  // namespace weir::filter

#include "weir/filter/growing_bloom_filter.h"

#include <cassert>
#include <cmath>

namespace weir::filter {

GrowingBloomFilter::GrowingBloomFilter(std::uint64_t expected, double rate) : first_rate_(rate / 2) {
  filters_[0] = new BloomFilter(expected, first_rate_);
  room_ = filters_[0].load()->expected();
  stages_ = 1;
}

GrowingBloomFilter::~GrowingBloomFilter() {
  for (auto& filter : filters_) delete filter.load();
}

void GrowingBloomFilter::insert(std::uint64_t hash) {
  if (may_contain(hash)) return;
  const int stages = stages_.load(std::memory_order_acquire);
  filters_[static_cast<std::size_t>(stages - 1)].load(std::memory_order_acquire)->insert(hash);
  if (inserted_.fetch_add(1, std::memory_order_relaxed) + 1 >= room_.load(std::memory_order_relaxed))
    grow(stages);
}

bool GrowingBloomFilter::may_contain(std::uint64_t hash) const {
  // The newest first: it holds most of the keys.
  for (int stage = stages_.load(std::memory_order_acquire) - 1; stage >= 0; --stage)
    if (filters_[static_cast<std::size_t>(stage)].load(std::memory_order_acquire)->may_contain(hash))
      return true;
  return false;
}

void GrowingBloomFilter::grow(int seen_stages) {
  const std::lock_guard lock(growing_);
  const int stages = stages_.load(std::memory_order_relaxed);
  if (stages != seen_stages) return;  // somebody else was first
  assert(stages < kMaxStages);
  const auto last = static_cast<std::size_t>(stages) - 1;
  const std::uint64_t expected = 2 * filters_[last].load(std::memory_order_relaxed)->expected();
  filters_[last + 1].store(new BloomFilter(expected, std::ldexp(first_rate_, -stages)),
                           std::memory_order_release);
  room_.fetch_add(expected, std::memory_order_relaxed);
  stages_.store(stages + 1, std::memory_order_release);
}

std::uint64_t GrowingBloomFilter::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& filter : filters_)
    if (const auto* stage = filter.load(std::memory_order_acquire)) sum += stage->bytes();
  return sum;
}

}  // namespace weir::filter

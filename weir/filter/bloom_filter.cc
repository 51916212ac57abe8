#include "weir/filter/bloom_filter.h"

#include <algorithm>
#include <cmath>

#include "weir/base/hash.h"

namespace weir::filter {
namespace {

constexpr double kLowestRate = 1e-7;  // below this the eight bits of a key can't reach at any sensible size
constexpr double kHighestRate = 0.5;
constexpr int kWordBits = 64;
constexpr int kKeyBits = 8;

// The upper half of a * b: maps a hash onto [0, b) without a division (Lemire 2016), for any number of
// blocks.
std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a_low = a & 0xffffffffU, a_high = a >> 32;
  const std::uint64_t b_low = b & 0xffffffffU, b_high = b >> 32;
  const std::uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const std::uint64_t carried = a_low * b_high + (middle & 0xffffffffU);
  return a_high * b_high + (middle >> 32) + (carried >> 32);
}

// Eight times six bits, mixed again: the block took the hash's upper ones.
std::uint64_t bits_of(std::uint64_t hash) {
  return mix64(hash);
}
std::uint64_t mask_of(std::uint64_t bits, int word) {
  return std::uint64_t{1} << ((bits >> (6 * word)) & 63U);
}

// Of blocks that hold `load` keys on average.
double rate_at(double load) {
  // The Poisson distribution, from its mean outwards in logarithms, so that nothing underflows.
  const double spread = 12 * std::sqrt(load) + 30;
  const auto first = static_cast<std::int64_t>(std::max(1.0, std::floor(load - spread)));
  const auto last = static_cast<std::int64_t>(std::ceil(load + spread));
  double rate = 0;
  for (std::int64_t keys = first; keys <= last; ++keys) {
    const auto k = static_cast<double>(keys);
    const double probability = std::exp(k * std::log(load) - load - std::lgamma(k + 1));
    rate += probability * std::pow(1 - std::pow(1 - 1.0 / kWordBits, k), kKeyBits);
  }
  return rate;
}

}  // namespace

BloomFilter::BloomFilter(std::uint64_t expected, double rate)
    : expected_(std::max<std::uint64_t>(expected, 1)),
      blocks_(blocks_for(expected_, rate)),
      table_(std::make_unique<Block[]>(blocks_)) {}

BloomFilter::Block& BloomFilter::block_of(std::uint64_t hash) const {
  return table_[multiply_high(hash, blocks_)];
}

void BloomFilter::insert(std::uint64_t hash) {
  Block& block = block_of(hash);
  const std::uint64_t bits = bits_of(hash);
  for (int word = 0; word < kWords; ++word) {
    const std::uint64_t mask = mask_of(bits, word);
    auto& cell = block.words[static_cast<std::size_t>(word)];
    // A plain read first: bits that are set already need no exclusive cache line.
    if ((cell.load(std::memory_order_relaxed) & mask) == 0) cell.fetch_or(mask, std::memory_order_relaxed);
  }
}

bool BloomFilter::may_contain(std::uint64_t hash) const {
  const Block& block = block_of(hash);
  const std::uint64_t bits = bits_of(hash);
  std::uint64_t missing = 0;
  for (int word = 0; word < kWords; ++word)
    missing |=
        ~block.words[static_cast<std::size_t>(word)].load(std::memory_order_relaxed) & mask_of(bits, word);
  return missing == 0;
}

double BloomFilter::false_positive_rate(std::uint64_t keys, std::uint64_t blocks) {
  return keys == 0 ? 0 : rate_at(static_cast<double>(keys) / static_cast<double>(blocks));
}

std::uint64_t BloomFilter::blocks_for(std::uint64_t keys, double rate) {
  const double wanted = std::clamp(rate, kLowestRate, kHighestRate);
  double low = 1e-3, high = 1024;  // keys a block: the rate grows with it
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (rate_at(middle) <= wanted ? low : high) = middle;
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(static_cast<double>(keys) / low)));
}

}  // namespace weir::filter

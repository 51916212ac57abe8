#include "weir/filter/bloom_filter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <new>
#include <stdexcept>

#include "weir/base/fault.h"

namespace weir::filter {

using split_block::Block;

namespace {

constexpr double kLowestRate = 1e-9;  // below this eight bits a key don't reach at any sensible size
constexpr double kHighestRate = 0.5;
constexpr double kMostBitsPerKey = 1024;
constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::uint64_t>::max() / sizeof(Block);
constexpr std::uint64_t kSampledBlocks = 65'536;

double sane_rate(double rate) {
  if (!(rate > 0 && rate < 1))  // not a number is none, either
    throw std::invalid_argument("a rate of false positives lies between 0 and 1, but is " +
                                std::to_string(rate));
  return std::clamp(rate, kLowestRate, kHighestRate);
}

std::uint64_t allowed_blocks(double blocks) {
  if (blocks >= static_cast<double>(kMostBlocks)) throw std::bad_alloc();
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(blocks));
}

}  // namespace

BloomFilter::BloomFilter(const Shape& shape)
    : expected_(shape.expected),
      hashing_(shape.hashing),
      memory_(shape.blocks * sizeof(Block)),
      table_{static_cast<Block*>(memory_.data()), shape.blocks, best_path()} {}

BloomFilter::BloomFilter(std::uint64_t expected, double rate, std::uint64_t hashing)
    : BloomFilter(Shape{std::max<std::uint64_t>(expected, 1), blocks_for(expected, rate), hashing}) {}

BloomFilter BloomFilter::with_bits_per_key(std::uint64_t expected, double bits, std::uint64_t hashing) {
  if (!(bits > 0 && bits <= kMostBitsPerKey))
    throw std::invalid_argument("bits per key lie between 0 and 1024, but are " + std::to_string(bits));
  const std::uint64_t keys = std::max<std::uint64_t>(expected, 1);
  return BloomFilter(Shape{
      keys, allowed_blocks(std::ceil(static_cast<double>(keys) * bits / split_block::kBlockBits)), hashing});
}

void BloomFilter::may_contain(std::span<const std::uint64_t> hashes, std::span<bool> out) const {
  if (hashes.size() != out.size()) throw std::invalid_argument("as many answers as questions");
  split_block::contains(table_, hashes, out);
}

void BloomFilter::merge(const BloomFilter& other) {
  if (blocks() != other.blocks())
    throw Unusable("filters of different sizes can't be merged: " + std::to_string(blocks()) +
                   " blocks here, " + std::to_string(other.blocks()) + " there");
  if (hashing_ != other.hashing_)
    throw Unusable("filters of differently hashed keys can't be merged: " + std::to_string(hashing_) +
                   " here, " + std::to_string(other.hashing_) + " there");
  for (std::uint64_t at = 0; at < blocks(); ++at) {
    for (std::size_t cell = 0; cell < split_block::kCells; ++cell) {
      const std::uint64_t theirs =
          std::atomic_ref<std::uint64_t>(other.table_.blocks[at].cells[cell]).load(std::memory_order_relaxed);
      if (theirs != 0)
        std::atomic_ref<std::uint64_t>(table_.blocks[at].cells[cell])
            .fetch_or(theirs, std::memory_order_relaxed);
    }
  }
}

void BloomFilter::use(Path path) {
  if (path == Path::avx2 && best_path() != Path::avx2)
    throw std::invalid_argument("this machine has no AVX2");
  table_.path = path;
}

Statistics BloomFilter::statistics() const {
  const std::uint64_t looked_at = std::min(blocks(), kSampledBlocks);
  std::uint64_t bits = 0;
  double rate = 0;
  for (std::uint64_t i = 0; i < looked_at; ++i) {
    const Block& block = table_.blocks[looked_at == blocks() ? i : blocks() / looked_at * i];
    bits += static_cast<std::uint64_t>(split_block::bits_set(block));
    rate += split_block::pass_rate(block);
  }
  const auto all = static_cast<double>(looked_at * split_block::kBlockBits);
  Statistics result{.bytes = bytes(), .fill = static_cast<double>(bits) / all};
  result.rate = rate / static_cast<double>(looked_at);
  // A key leaves a given bit clear by 31 in 32 if it falls into its block: (1 - 1 / (32 * blocks)) ^ keys are.
  const double clear = std::max(1 - result.fill, 0.5 / all);  // a full one holds at least so many
  const double keys = std::log(clear) / std::log1p(-1.0 / (split_block::kWordBits * double(blocks())));
  result.keys = static_cast<std::uint64_t>(std::llround(keys));
  return result;
}

// A stranger passes a block that holds k keys when each of its eight bits is set: (1 - q^k)^8 with q = 31/32.
// k is binomial (each of the keys falls into this block or into another), so that the mean of q^(jk) is
// (1 - (1 - q^j) / blocks) ^ keys; the eighth power, multiplied out, is a sum of nine of those. Its terms
// cancel to within 1e-14 of the truth.
double BloomFilter::false_positive_rate(std::uint64_t keys, std::uint64_t blocks) {
  constexpr std::array<double, 9> kBinomial{1, -8, 28, -56, 70, -56, 28, -8, 1};
  const auto n = static_cast<double>(keys);
  double rate = 0, power = 1;
  for (const double factor : kBinomial) {
    const double into = (1 - power) / static_cast<double>(std::max<std::uint64_t>(blocks, 1));
    rate += factor * std::exp(n * std::log1p(-into));
    power *= 1 - 1.0 / split_block::kWordBits;
  }
  return std::clamp(rate, 0.0, 1.0);
}

std::uint64_t BloomFilter::blocks_for(std::uint64_t keys, double rate) {
  const double wanted = sane_rate(rate);
  const std::uint64_t count = std::max<std::uint64_t>(keys, 1);
  std::uint64_t low = 0;  // too few
  std::uint64_t high =
      allowed_blocks(static_cast<double>(count) * (kMostBitsPerKey / split_block::kBlockBits));
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (false_positive_rate(count, middle) <= wanted ? high : low) = middle;
  }
  return high;
}

}  // namespace weir::filter

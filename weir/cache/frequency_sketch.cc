#include "weir/cache/frequency_sketch.h"

#include <algorithm>

#include "weir/base/hash.h"

namespace weir::cache::detail {
namespace {

// Ages run 1 .. 255 and round again.
unsigned ages_between(std::uint8_t from, std::uint8_t to) {
  return to >= from ? to - from : to + 255U - from;
}

std::size_t scale(std::uint64_t mixed, std::size_t size) {
  return static_cast<std::size_t>(((mixed >> 32) * size) >> 32);
}

// Hashes of different parts of a program must not meet in the same bits: the sketch mixes its own 64.
std::uint64_t mix(std::uint32_t hash) {
  return mix64(hash ^ 0x9e3779b97f4a7c15ULL);
}

}  // namespace

void FrequencySketch::resize(std::size_t entries) {
  const std::size_t blocks = std::max<std::size_t>(1, (entries + kEntriesPerBlock - 1) / kEntriesPerBlock);
  if (blocks == now_.blocks.size()) return;
  // What wasn't carried over since the last resize is lost: keys that nobody asked for since.
  before_ = std::move(now_);
  now_.blocks = ZeroedArray<Block>(blocks);
  now_.ages = ZeroedArray<std::uint8_t>(blocks);
  set_period(entries);
}

void FrequencySketch::fade(Block& block, unsigned ages) {
  if (ages == 0) return;
  if (ages >= 4) {
    block = {};
    return;
  }
  const std::uint64_t nibble = 0xfULL >> ages;
  const std::uint64_t mask = nibble * 0x1111111111111111ULL;
  for (std::uint64_t& word : block.words) word = (word >> ages) & mask;
}

// A block of the new table takes the counters of the one of the old table that covered its hashes (of the
// one in the middle, when there were several).
void FrequencySketch::carry_over(std::size_t block) {
  now_.ages[block] = age_;
  if (before_.blocks.empty()) return;
  const std::size_t old = (2 * block + 1) * before_.blocks.size() / (2 * now_.blocks.size());
  if (before_.ages[old] == 0) return;
  now_.blocks[block] = before_.blocks[old];
  fade(now_.blocks[block], ages_between(before_.ages[old], age_));
}

auto FrequencySketch::block_of(std::uint64_t mixed) -> Block& {
  if (now_.blocks.empty()) resize(1);
  const std::size_t at = scale(mixed, now_.blocks.size());
  if (now_.ages[at] == 0) {
    carry_over(at);
  } else if (now_.ages[at] != age_) {
    fade(now_.blocks[at], ages_between(now_.ages[at], age_));
    now_.ages[at] = age_;
  }
  return now_.blocks[at];
}

auto FrequencySketch::place(std::uint64_t mixed, unsigned row) -> Place {
  const auto counter = static_cast<unsigned>(mixed >> (5 * row)) & 31U;
  return {2 * row + counter / 16, 4 * (counter % 16)};
}

unsigned FrequencySketch::estimate(std::uint32_t hash) {
  const std::uint64_t mixed = mix(hash);
  const Block& block = block_of(mixed);
  std::uint64_t least = kMost;
  for (unsigned row = 0; row < 4; ++row) {
    const auto [word, shift] = place(mixed, row);
    least = std::min(least, (block.words[word] >> shift) & 0xf);
  }
  return static_cast<unsigned>(least);
}

void FrequencySketch::add(std::uint32_t hash, unsigned times) {
  const unsigned before = estimate(hash);
  const std::uint64_t after = std::min(kMost, before + times);
  if (after == before) return;
  const std::uint64_t mixed = mix(hash);
  Block& block = block_of(mixed);
  for (unsigned row = 0; row < 4; ++row) {
    const auto [word, shift] = place(mixed, row);
    const std::uint64_t counter = (block.words[word] >> shift) & 0xf;
    if (counter < after) block.words[word] += (after - counter) << shift;
  }
  added_ += after - before;
  if (added_ >= period_) grow_older();
}

void FrequencySketch::grow_older() {
  added_ = 0;
  age_ = age_ == 255 ? 1 : age_ + 1;
}

std::size_t FrequencySketch::memory_bytes() const {
  return (now_.blocks.size() + before_.blocks.size()) * (sizeof(Block) + 1);
}

}  // namespace weir::cache::detail

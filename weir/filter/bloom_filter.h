// BloomFilter: answers "certainly not there" or "maybe there" about a set that only grows, in one cache line.
//
// A split-block filter (see split_block.h): all of a key's eight bits lie in one block of 32 bytes, so that a
// look-up costs one cache miss however large the filter is, and a few vector instructions where the processor
// has AVX2. It buys that speed for a somewhat higher false-positive rate than an unblocked filter of the same
// size; `false_positive_rate` has the layout's own formula, which sizes the filter.
//
// Promises: what was inserted is never denied; inserts and look-ups may run at once, without locks; indices
// are 64 bits wide throughout; a damaged file is refused, not believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "weir/filter/split_block.h"
#include "weir/filter/zeroed_memory.h"

namespace weir {
class Sink;
class Source;
}  // namespace weir

namespace weir::filter {

// How a filter is doing, of its bits as they are.
struct Statistics {
  std::uint64_t bytes = 0;
  double fill = 0;         // share of the bits that are set
  double rate = 0;         // of false positives
  std::uint64_t keys = 0;  // different ones inserted, estimated from the fill (within 1 % or so)
};

class BloomFilter {
 public:
  // For `expected` keys (0 counts as 1) at the given rate of false positives, 0 < rate < 1; what is below
  // 1e-9 or above 0.5 is made that. `hashing` names how keys become hashes, a seed or a version: it stays with
  // the filter, in files too, and filters that differ in it aren't merged.
  // Throws std::invalid_argument and std::bad_alloc.
  BloomFilter(std::uint64_t expected, double rate, std::uint64_t hashing = 0);
  // The same with so many bits for each expected key, 0 < bits <= 1024.
  static BloomFilter with_bits_per_key(std::uint64_t expected, double bits, std::uint64_t hashing = 0);

  // All of them take 64 well-mixed bits of the key (`mix64`, `hash64`; seeded where somebody else chooses the
  // keys). Thread-safe and lock-free, O(1). An insert happens before a look-up when the program orders the two
  // (a mutex, a release and an acquire): only then the look-up must see it.
  // Whether the key certainly was not there before; of two threads that insert it at once both may be told.
  bool insert(std::uint64_t hash) { return split_block::insert(table_, hash); }
  bool may_contain(std::uint64_t hash) const { return split_block::contains(table_, hash); }
  // Of many keys at a time: their cache misses overlap. Throws std::invalid_argument unless `out` is as long.
  void insert(std::span<const std::uint64_t> hashes) { split_block::insert(table_, hashes); }
  void may_contain(std::span<const std::uint64_t> hashes, std::span<bool> out) const;

  // Puts in whatever is in the other, as if each of its keys were inserted; `other` isn't changed. Both may be
  // in use meanwhile. O(bytes). Throws weir::Unusable, and changes nothing, if the two differ in their number
  // of blocks or in `hashing`. The rate of the union is in `statistics`.
  void merge(const BloomFilter& other);

  // The whole filter in a portable form with a checksum, format version 1. What is inserted meanwhile may or
  // may not be in it.
  std::string encode() const;
  // Throws weir::Unusable, with the reason, if the bytes are damaged, incomplete, or of another format, and
  // std::bad_alloc. Never takes more memory than the input's length.
  static BloomFilter decode(std::string_view bytes);
  // The same to a file, which is replaced at once and on disk when it returns: a crash leaves the old one or
  // the new one. Throws weir::Unavailable if it can't be written or read.
  void save(const std::filesystem::path& file) const;
  static BloomFilter load(const std::filesystem::path& file);

  // How many keys it was sized for, its hashing, and what it takes.
  std::uint64_t expected() const { return expected_; }
  std::uint64_t hashing() const { return hashing_; }
  std::uint64_t blocks() const { return table_.count; }
  std::uint64_t bytes() const { return memory_.bytes(); }
  // Looks at up to 65,536 blocks, evenly spread: less than a millisecond.
  Statistics statistics() const;

  // By which instructions it works: the machine's best, unless it is told (which is for tests and benchmarks;
  // not while others use the filter). Throws std::invalid_argument if the machine can't.
  Path path() const { return table_.path; }
  void use(Path path);

  // The expected rate of false positives of `blocks` blocks (at least 1) that hold `keys` different keys:
  // exact for keys that are hashed at random. O(1).
  static double false_positive_rate(std::uint64_t keys, std::uint64_t blocks);
  // The least number of blocks that keeps the rate. Throws std::invalid_argument unless 0 < rate < 1.
  static std::uint64_t blocks_for(std::uint64_t keys, double rate);

  // As `encode` and `decode`, as a part of something longer.
  void write(Sink& sink) const;
  static BloomFilter read(Source& source);

 private:
  struct Shape {
    std::uint64_t expected, blocks, hashing;
  };
  explicit BloomFilter(const Shape& shape);

  std::uint64_t expected_;
  std::uint64_t hashing_;
  ZeroedMemory memory_;
  split_block::Table table_;  // of that memory
};

}  // namespace weir::filter

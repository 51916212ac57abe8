// FrequencySketch: about how often each key was asked for lately, in 4 bits a counter.
//
// A count-min sketch (Cormode and Muthukrishnan, 2005) with conservative update (Estan and Varghese, SIGCOMM
// 2002), blocked: all four counters of a key lie in one cache line, in a quarter of it each (Putze, Sanders
// and Singler, 2007, did this for Bloom filters). Counters are halved every ten increments an entry, so that
// the past fades; a block is halved when it is next touched, so no call walks the table. Memory: 16 counters
// an entry, 8 bytes. Not thread-safe: it belongs to a shard and its lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weir/cache/zeroed_array.h"

namespace weir::cache::detail {

class FrequencySketch {
 public:
  static constexpr unsigned kMost = 15;

  // Makes it fit for so many entries. What was counted is carried over block by block when it is touched:
  // O(1), besides the allocation of zeroed memory.
  void resize(std::size_t entries);
  // How many entries' increments make an age; when unset, as many as it was sized for.
  void set_period(std::size_t entries) { period_ = kIncrementsPerEntry * (entries == 0 ? 1 : entries); }

  // Counts `times` more; O(1).
  void add(std::uint32_t hash, unsigned times = 1);
  // 0 .. kMost; never less than what was counted since the last halvings, up to kMost. O(1).
  unsigned estimate(std::uint32_t hash);

  std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kIncrementsPerEntry = 10;
  static constexpr std::size_t kEntriesPerBlock = 8;  // of 128 counters

  struct alignas(64) Block {
    std::uint64_t words[8];
  };
  struct Table {
    ZeroedArray<Block> blocks;
    ZeroedArray<std::uint8_t> ages;  // the age in which a block was last touched; 0: not since the resize
  };
  // Where a key's counters are: the word and the shift in it, one in each quarter of the block.
  struct Place {
    std::size_t word;
    unsigned shift;
  };

  Block& block_of(std::uint64_t mixed);
  static Place place(std::uint64_t mixed, unsigned row);
  static void fade(Block& block, unsigned ages);
  void carry_over(std::size_t block);
  void grow_older();

  Table now_, before_;
  std::uint8_t age_ = 1;  // 1 .. 255
  std::size_t added_ = 0, period_ = kIncrementsPerEntry;
};

}  // namespace weir::cache::detail

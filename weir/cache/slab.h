// Slab: the entries of a shard, by number; they never move, and their memory stays until the shard goes.
//
// Four chunks of 64 entries, four of 128, of 256 and so on: growing never copies, and no more than a fifth of
// the memory is spare. What only some caches need of an entry (weight, times) is a second column that is
// allocated for the chunks where it is needed; zero means the ordinary. One writer at a time; entries may be
// looked at beside it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/cache/zeroed_array.h"

namespace weir::cache::detail {

template <class Entry, class Extra>
class Slab {
 public:
  using Id = std::uint32_t;  // from 1; 0 is nobody

  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // The number of an entry that isn't in use; makes memory if it must, and may throw then.
  Id take() {
    if (free_ != 0) {
      const Id id = free_;
      free_ = entry(id)->next_free();
      return id;
    }
    const auto [chunk, offset] = place(last_ + 1);
    if (chunks_[chunk].entries.load(std::memory_order_relaxed) == nullptr) {
      memory_.emplace_back(size_of(chunk));
      chunks_[chunk].entries.store(memory_.back().data(), std::memory_order_release);
    }
    return ++last_;
  }
  void give_back(Id id) {
    entry(id)->set_next_free(free_);
    free_ = id;
  }

  // Null for a number that was never taken, as far as this thread has seen.
  Entry* entry(Id id) const {
    const auto [chunk, offset] = place(id);
    Entry* entries = chunks_[chunk].entries.load(std::memory_order_acquire);
    return entries == nullptr ? nullptr : entries + offset;
  }
  // Null: everything ordinary.
  Extra* extra(Id id) const {
    const auto [chunk, offset] = place(id);
    Extra* extras = chunks_[chunk].extras.load(std::memory_order_acquire);
    return extras == nullptr ? nullptr : extras + offset;
  }
  // Makes the column if it isn't there; may throw.
  Extra& want_extra(Id id) {
    const auto [chunk, offset] = place(id);
    if (chunks_[chunk].extras.load(std::memory_order_relaxed) == nullptr) {
      extra_memory_.emplace_back(size_of(chunk));
      chunks_[chunk].extras.store(extra_memory_.back().data(), std::memory_order_release);
    }
    return *extra(id);
  }

  Id last() const { return last_; }  // the highest number ever taken

 private:
  static constexpr unsigned kFirstBits = 6;  // the size of the first chunks
  static constexpr unsigned kSplitBits = 2;  // chunks of the same size
  static constexpr std::size_t kOctaves = 17;
  static constexpr std::size_t kChunks = kOctaves
                                         << kSplitBits;  // 2^25 entries, more than an index can number

  struct Place {
    std::size_t chunk, offset;
  };
  // As a floating-point number keeps an exponent and a few leading bits.
  static Place place(Id id) {
    const std::uint32_t at = id - 1 + (1U << (kFirstBits + kSplitBits));
    const auto octave = static_cast<unsigned>(std::bit_width(at)) - (kFirstBits + kSplitBits + 1);
    const unsigned leading = at >> (octave + kFirstBits);  // with its highest bit, which is the same for all
    return {leading + (octave << kSplitBits) - (1U << kSplitBits), at & ((1U << (octave + kFirstBits)) - 1)};
  }
  static std::size_t size_of(std::size_t chunk) {
    return std::size_t{1} << (kFirstBits + (chunk >> kSplitBits));
  }

  struct Chunk {
    std::atomic<Entry*> entries{nullptr};
    std::atomic<Extra*> extras{nullptr};
  };
  std::array<Chunk, kChunks> chunks_;
  std::vector<ZeroedArray<Entry>> memory_;
  std::vector<ZeroedArray<Extra>> extra_memory_;
  Id free_ = 0, last_ = 0;
};

}  // namespace weir::cache::detail

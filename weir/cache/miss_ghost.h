// MissGhost: when a key that isn't here was last missed, if that was lately; 4 bytes an entry of the cache.
//
// Two cells an entry, each with 8 bits of a fingerprint and 8 bits of time; who comes later overwrites. Time
// runs in misses: a tick is a sixteenth of the cache's entries, and 255 of them are the longest memory. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weir/base/hash.h"
#include "weir/cache/zeroed_array.h"

namespace weir::cache::detail {

class MissGhost {
 public:
  using Time = std::uint8_t;
  static constexpr Time kNever = 0;

  // O(1), and forgets.
  void resize(std::size_t entries) {
    const std::size_t cells = 2 * std::max<std::size_t>(1, entries);
    if (cells != cells_.size()) cells_ = ZeroedArray<std::uint16_t>(cells);
    per_tick_ = std::max<std::size_t>(1, entries / kTicksPerTurnover);
  }

  Time now() const { return now_; }

  // A miss of the key: answers when the one before was, or kNever.
  Time miss(std::uint32_t hash) {
    if (cells_.empty()) resize(1);
    if (++misses_ >= per_tick_) {
      misses_ = 0;
      now_ = now_ == 255 ? 1 : now_ + 1;
    }
    const std::uint64_t mixed = mix64(hash ^ 0xd1b54a32d192ed03ULL);
    std::uint16_t& cell = cells_[static_cast<std::size_t>(((mixed >> 32) * cells_.size()) >> 32)];
    const auto fingerprint = static_cast<std::uint16_t>((mixed & 0xff) << 8);
    const bool same = (cell & 0xff) != kNever && (cell & 0xff00) == fingerprint;
    const Time last = same ? static_cast<Time>(cell & 0xff) : kNever;
    cell = static_cast<std::uint16_t>(fingerprint | now_);
    return last;
  }

  // Whether `a` was after `b`; a time that never was is before all. Meant for times of the last 255 ticks.
  bool newer(Time a, Time b) const {
    if (a == kNever || b == kNever) return a != kNever;
    return age(a) < age(b);
  }

  std::size_t memory_bytes() const { return cells_.size() * sizeof(std::uint16_t); }

 private:
  static constexpr std::size_t kTicksPerTurnover = 16;
  unsigned age(Time time) const { return time <= now_ ? now_ - time : now_ + 255U - time; }

  ZeroedArray<std::uint16_t> cells_;
  std::size_t per_tick_ = 1, misses_ = 0;
  Time now_ = 1;
};

}  // namespace weir::cache::detail

// What readers of a cache have to themselves, so that they needn't write where others write.
//
//  - ThreadSlot: a small number that belongs to this thread alone while it lives.
//  - ReadCounters: sums that each thread counts in a cache line of its own.
//  - ReaderGate: many readers without a lock that they share, against one writer at a time. A reader says in
//    its thread's own line where it reads, then looks whether somebody writes there; the writer says that it
//    writes, then looks whether somebody reads. One of the two sees the other (store, then load, both
//    sequentially consistent: Dekker). Like BRAVO (Dice and Kogan, USENIX ATC 2019) without the table of hashes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/cache/hot_path.h"
#include "weir/cache/zeroed_array.h"

namespace weir::cache::detail {

class ThreadSlot {
 public:
  static constexpr unsigned kSlots = 64;
  static constexpr unsigned kShared = kSlots;  // what threads get when all slots are taken

  // This thread's slot: 0 .. kSlots - 1 are no other living thread's. A nanosecond.
  static unsigned mine() { return mine_ != kUnset ? mine_ : take(); }
  // The same, if the thread has one already: else kShared or more.
  static unsigned mine_if_any() { return mine_; }
  // No thread ever had a slot from here on.
  static unsigned end() { return end_.load(std::memory_order_seq_cst); }

 private:
  friend struct SlotReturner;
  static constexpr unsigned kUnset = ~0U;
  static unsigned take();
  WEIR_INITIAL_EXEC static thread_local constinit unsigned mine_;
  static std::atomic<unsigned> end_;
};

// `kinds` sums. Adding costs a load and a store, both in the thread's own line.
class ReadCounters {
 public:
  static constexpr std::size_t kKinds = 4;

  ReadCounters() : lines_(ThreadSlot::kSlots + 1) {}

  void add(std::size_t kind) {
    const unsigned slot = ThreadSlot::mine();
    if (slot != ThreadSlot::kShared) return add_own(slot, kind);
    lines_[slot].sums[kind].fetch_add(1, std::memory_order_relaxed);
  }
  // The same for a thread that has the slot.
  void add_own(unsigned slot, std::size_t kind) {
    auto& sum = lines_[slot].sums[kind];
    sum.store(sum.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  std::uint64_t total(std::size_t kind) const {
    std::uint64_t total = 0;
    for (std::size_t slot = 0; slot < lines_.size(); ++slot)
      total += lines_[slot].sums[kind].load(std::memory_order_relaxed);
    return total;
  }

 private:
  struct alignas(64) Line {
    std::array<std::atomic<std::uint64_t>, kKinds> sums;
  };
  ZeroedArray<Line> lines_;
};

class ReaderGate {
 public:
  static constexpr bool kReadersCheck = false;

  // Whether this thread, which has this slot, may read now; then it must call `leave`. When not, and when it has
  // none, it takes the writers' mutex. Must not be nested, in the same gate or another.
  WEIR_HOT bool enter(unsigned slot) {
    if (slot >= ThreadSlot::kSlots) [[unlikely]]
      return false;
    auto& reading = reading_[slot].gate;
    reading.store(this, std::memory_order_seq_cst);
    if (!writing_.load(std::memory_order_seq_cst)) [[likely]]
      return true;
    reading.store(nullptr, std::memory_order_release);
    return false;
  }
  WEIR_HOT static void leave(unsigned slot) { reading_[slot].gate.store(nullptr, std::memory_order_release); }

  // Under the writers' mutex: returns when nobody reads, and nobody will until `end_write`. O(threads); waits
  // for the reads that are under way.
  void begin_write() {
    writing_.store(true, std::memory_order_seq_cst);
    const unsigned end = ThreadSlot::end();
    for (unsigned slot = 0; slot < end; ++slot)
      if (reading_[slot].gate.load(std::memory_order_seq_cst) == this) wait_for(slot);
  }
  void end_write() { writing_.store(false, std::memory_order_release); }

 private:
  struct alignas(64) Line {
    std::atomic<const ReaderGate*> gate{nullptr};
  };
  void wait_for(unsigned slot) const;

  static std::array<Line, ThreadSlot::kSlots> reading_;
  std::atomic<bool> writing_{false};
};

}  // namespace weir::cache::detail

#include "weir/cache/thread_slot.h"

#include <mutex>
#include <thread>

namespace weir::cache::detail {
namespace {

std::atomic<std::uint64_t> taken{0};  // a bit a slot
static_assert(ThreadSlot::kSlots == 64);

}  // namespace

thread_local constinit unsigned ThreadSlot::mine_ = ThreadSlot::kUnset;
std::atomic<unsigned> ThreadSlot::end_{0};
std::array<ReaderGate::Line, ThreadSlot::kSlots> ReaderGate::reading_;

// Gives the slot back when its thread ends. What the thread does after that (destructors of other
// thread-locals) counts as a thread without a slot.
struct SlotReturner {
  unsigned slot = ThreadSlot::kShared;
  ~SlotReturner() {
    ThreadSlot::mine_ = ThreadSlot::kShared;
    // Released and acquired, so that the next owner's plain counting goes on from this one's.
    if (slot != ThreadSlot::kShared) taken.fetch_and(~(std::uint64_t{1} << slot), std::memory_order_release);
  }
};

unsigned ThreadSlot::take() {
  thread_local SlotReturner returner;
  std::uint64_t seen = taken.load(std::memory_order_relaxed);
  while (~seen != 0) {
    const auto slot = static_cast<unsigned>(__builtin_ctzll(~seen));
    if (!taken.compare_exchange_weak(seen, seen | std::uint64_t{1} << slot, std::memory_order_acquire,
                                     std::memory_order_relaxed))
      continue;
    returner.slot = mine_ = slot;
    unsigned end = end_.load(std::memory_order_seq_cst);
    while (end < slot + 1 && !end_.compare_exchange_weak(end, slot + 1, std::memory_order_seq_cst)) {
    }
    return slot;
  }
  mine_ = kShared;
  return kShared;
}

// A read is short, but its thread may have lost the processor.
void ReaderGate::wait_for(unsigned slot) const {
  constexpr int kSpins = 200;
  for (int spins = 0; reading_[slot].gate.load(std::memory_order_acquire) == this; ++spins)
    if (spins > kSpins) std::this_thread::yield();
}

}  // namespace weir::cache::detail

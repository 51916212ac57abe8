// BriefMutex: a lock for sections of some nanoseconds that hardly ever meet.
//
// Unlocking is a plain store where std::mutex needs a second locked instruction, which would be a fifth of a
// write to the cache. What it costs: who waits isn't woken but looks again, first at once, then after giving
// way, then after naps that double up to a millisecond; so a holder that lost its processor gets it back, and a
// long section (a walk over all entries) costs the others no processor. Not fair, not recursive.
#pragma once

#include <atomic>

#include "weir/cache/hot_path.h"

namespace weir::cache::detail {

class BriefMutex {
 public:
  BriefMutex() = default;
  BriefMutex(const BriefMutex&) = delete;
  BriefMutex& operator=(const BriefMutex&) = delete;

  WEIR_HOT void lock() {
    if (!try_lock()) [[unlikely]]
      lock_slowly();
  }
  WEIR_HOT bool try_lock() { return !locked_.exchange(true, std::memory_order_acquire); }
  WEIR_HOT void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  void lock_slowly();

  std::atomic<bool> locked_{false};
};

}  // namespace weir::cache::detail

#include "weir/cache/brief_mutex.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace weir::cache::detail {

void BriefMutex::lock_slowly() {
  using std::chrono::microseconds;
  constexpr int kLooks = 100, kYields = 20;
  constexpr microseconds kFirstNap{20}, kLongestNap{1'000};
  const auto free = [this] { return !locked_.load(std::memory_order_relaxed); };
  microseconds nap = kFirstNap;
  for (int turn = 0;; ++turn) {
    if (free() && try_lock()) return;
    if (turn < kLooks) continue;
    if (turn < kLooks + kYields) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, kLongestNap);
  }
}

}  // namespace weir::cache::detail

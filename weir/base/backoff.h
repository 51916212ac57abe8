// Backoff: exponential, with full jitter (Brooker, "Exponential Backoff And Jitter", 2015), so that those who
// failed together don't come back together.
#pragma once

#include <chrono>

#include "weir/base/random.h"

namespace weir {

class Backoff {
 public:
  // Waits between 0 and min(max, first * 2^tries). first > 0.
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds max)
      : first_(first), max_(max), ceiling_(first) {}

  // How long to wait before the next try.
  std::chrono::milliseconds next(Random& random = thread_random());
  // After a success.
  void reset() { ceiling_ = first_; }

 private:
  std::chrono::milliseconds first_, max_, ceiling_;
};

}  // namespace weir

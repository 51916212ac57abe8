// Breaker: how often to ask somebody who doesn't answer.
//
// After a failure nobody asks for a while; then one does, for all. While that fails too, the while doubles, up
// to a limit. So a remote that hangs costs one time-out now and then instead of one for each read. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

#include "weir/base/clock.h"

namespace weir::cache {

class Breaker {
 public:
  using Nanos = std::chrono::nanoseconds;

  // The first while and the longest one; at least a millisecond.
  Breaker(const Clock& clock, Nanos first, Nanos last)
      : clock_(clock), first_(std::max<Nanos>(first, kLeast)), last_(std::max(last, first_)) {}

  // Whether to ask now. Past the while exactly one caller gets a yes, the next one a while later: should the
  // one never tell how it went, nothing is stuck.
  bool allows() {
    const std::lock_guard lock(mutex_);
    if (!open_) return true;
    const SteadyTime now = clock_.steady_now();
    if (now < next_) return false;
    next_ = now + while_;
    return true;
  }

  // What those tell who have asked. A failure is true when it is the first since the last success.
  void succeeded() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  bool failed() {
    const std::lock_guard lock(mutex_);
    const SteadyTime now = clock_.steady_now();
    const bool first = !open_;
    // Those who had asked before the breaker opened fail soon after: they don't double the while.
    if (!first && quiet_until_ > now) return false;
    while_ = first ? first_ : std::min(while_ * 2, last_);
    open_ = true;
    next_ = quiet_until_ = now + while_;
    return first;
  }

  // How long nobody asks from now on; negative or zero when the next one does.
  Nanos quiet_for() const {
    const std::lock_guard lock(mutex_);
    return open_ ? next_ - clock_.steady_now() : Nanos(0);
  }
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return open_;
  }

 private:
  static constexpr Nanos kLeast = std::chrono::milliseconds(1);

  const Clock& clock_;
  const Nanos first_, last_;
  mutable std::mutex mutex_;
  bool open_ = false;
  Nanos while_{0};
  SteadyTime next_, quiet_until_;
};

}  // namespace weir::cache

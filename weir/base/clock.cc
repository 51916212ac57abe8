#include "weir/base/clock.h"

namespace weir {
namespace {

class SystemClock final : public Clock {
 public:
  WallTime now() const override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  }
  SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

const Clock& Clock::system() {
  static const SystemClock clock;
  return clock;
}

ManualClock::ManualClock(WallTime start) : start_(start) {}

WallTime ManualClock::now() const {
  return start_ +
         std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::nanoseconds(elapsed_ns_.load()));
}

// A steady clock of the real world never shows zero; starting a day in keeps "now - ttl" from wrapping.
SteadyTime ManualClock::steady_now() const {
  return SteadyTime(std::chrono::hours(24)) + std::chrono::nanoseconds(elapsed_ns_.load());
}

void ManualClock::advance(std::chrono::nanoseconds by) {
  elapsed_ns_ += by.count();
}

}  // namespace weir

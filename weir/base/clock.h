// Clock: where Weir takes the time from, so that a test decides what time it is.
//
// Two times are told apart: `now` is the wall clock (what is shown and stored; it may jump), `steady_now`
// only moves forward (deadlines, TTLs, ages). Thread-safe. Reading the system's clocks costs about 25 ns.
#pragma once

#include <atomic>
#include <chrono>

namespace weir {

using SteadyTime = std::chrono::steady_clock::time_point;
// Wall-clock times have microseconds: what SQL columns and RFC 3339 texts hold.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime now() const = 0;
  virtual SteadyTime steady_now() const = 0;

  // The machine's own clocks; lives as long as the program.
  static const Clock& system();
};

// A clock that stands still until it is moved. Both times move together.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(WallTime start = WallTime(std::chrono::seconds(1'700'000'000)));
  WallTime now() const override;
  SteadyTime steady_now() const override;
  void advance(std::chrono::nanoseconds by);

 private:
  WallTime start_;
  std::atomic<std::int64_t> elapsed_ns_{0};
};

// Microseconds since 1970 and back: how times are stored.
inline std::int64_t to_micros(WallTime t) {
  return t.time_since_epoch().count();
}
inline WallTime from_micros(std::int64_t us) {
  return WallTime(std::chrono::microseconds(us));
}

}  // namespace weir

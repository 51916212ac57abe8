// Ticker: calls something at start and then every interval, from a thread of its own.
//
// Ticks lie on a grid that begins at start (start + n * interval), so that they don't drift by what the calls
// take. A call that takes longer than the interval pushes nothing up behind it: the ticks that it missed are
// left out, and the next one is the next on the grid. `stop` is prompt: it wakes the thread when it waits,
// and asks the call by its stop token when it runs. What a call throws is counted and logged
// (weir_swallowed_errors_total{where="ticker.NAME"}), and the ticking goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "weir/base/clock.h"

namespace weir::scheduler {

class Ticker {
 public:
  using Call = std::function<void(std::stop_token)>;

  // Starts at once. interval > 0, else Unusable. The clock's steady time counts; whoever moves it by hand
  // calls `look_again`. Throws std::system_error when the system refuses the thread.
  Ticker(std::string name, std::chrono::nanoseconds interval, Call call,
         const Clock& clock = Clock::system());
  // Stops.
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Asks the call under way to stop, waits for it, joins. Once is enough; more is harmless. Not from within
  // the call.
  void stop();
  // Makes the thread compare the clock with the next tick now. For clocks that are moved by hand.
  void look_again();

 private:
  void work();
  void tick();
  // False when it is time to end.
  bool wait_until(SteadyTime due);

  const std::string name_;
  const std::chrono::nanoseconds interval_;
  const Call call_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t looks_ = 0;  // how often look_again was called
  std::stop_source stop_;
  std::thread thread_;  // the last member: it uses all the others
};

}  // namespace weir::scheduler

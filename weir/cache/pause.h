// Pause: how a coroutine lets time pass. By the machine's timers, or by a clock that a test or a simulation
// moves: then an hour takes none, and what happens in it is the same each time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "weir/base/clock.h"
#include "weir/cache/gate.h"

namespace weir::cache {

// Ends when the time has passed; throws boost::system::system_error(operation_aborted) when the coroutine is
// cancelled. Thread-safe.
using Pause = std::function<boost::asio::awaitable<void>(std::chrono::nanoseconds)>;

// The usual one: a steady timer on the coroutine's executor.
boost::asio::awaitable<void> timer_pause(std::chrono::nanoseconds time);

// Waits until the gate opens, `limit` at most; true when it has opened. Throws operation_aborted when the
// coroutine is cancelled. Only for coroutines whose executor runs one of them at a time (a strand, say).
boost::asio::awaitable<bool> opened_within(std::shared_ptr<Gate> gate, std::chrono::nanoseconds limit,
                                           Pause pause);

// A clock that stands still until it is moved, and the pauses that end when it is. Thread-safe.
class SimulatedTime final : public Clock {
 public:
  SimulatedTime();
  WallTime now() const override;
  SteadyTime steady_now() const override;

  // Pauses of this time; they may outlive it, and then don't end.
  Pause pause() const;
  // Moves the time on and then ends what is due, the earliest first; those resume on their own executors.
  void advance(std::chrono::nanoseconds by);
  // From now until the next pause ends; nothing when there is none.
  std::optional<std::chrono::nanoseconds> next() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace weir::cache

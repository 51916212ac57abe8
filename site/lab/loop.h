// An io_context turned by hand: the accidents decide what happens in which order, so each run is the same.
#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <future>
#include <utility>

#include "weir/base/fault.h"
#include "weir/cache/pause.h"

namespace weir::site {

// No accident takes longer, whatever goes wrong in it.
inline constexpr std::chrono::seconds kGiveUp{30};

// Runs what is ready, and what that makes ready; never waits. What has not ended then waits for somebody.
inline void settle(boost::asio::io_context& io) {
  io.restart();
  io.poll();
}

// Runs everything to its end.
inline void run_out(boost::asio::io_context& io) {
  io.restart();
  io.run_for(kGiveUp);
}

// The same in simulated time, which is moved on from one event to the next.
inline void pass(boost::asio::io_context& io, cache::SimulatedTime& time, std::chrono::nanoseconds by) {
  while (by > std::chrono::nanoseconds(0)) {
    settle(io);
    const std::chrono::nanoseconds part = std::min(by, time.next().value_or(by));
    time.advance(part);
    by -= part;
  }
  settle(io);
}

// What the coroutine returns or throws; TimedOut when it doesn't end.
template <class T>
T finish(boost::asio::io_context& io, boost::asio::awaitable<T> work) {
  auto future = boost::asio::co_spawn(io, std::move(work), boost::asio::use_future);
  run_out(io);
  if (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    throw TimedOut("nobody ends this wait");
  return future.get();
}

// Where coroutines stop until they are let go: the worst moment for somebody else to come between.
class Hold {
 public:
  explicit Hold(const boost::asio::any_io_executor& executor)
      : timer_(executor, boost::asio::steady_timer::time_point::max()) {}

  // Throws system_error(operation_aborted) when the coroutine is cancelled.
  boost::asio::awaitable<void> wait() {
    if (open_) co_return;
    const auto [error] = co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    if (!open_) throw boost::system::system_error(error);
  }
  void let_go() {
    open_ = true;
    timer_.cancel();
  }

 private:
  boost::asio::steady_timer timer_;
  bool open_ = false;
};

}  // namespace weir::site

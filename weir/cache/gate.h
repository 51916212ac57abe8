// Gate: closed at first, opened once; coroutines on any executors wait for that.
//
// Each waiter resumes on its own executor, which counts as busy while it waits. A waiter's cancellation (its
// asio cancellation slot) ends its own wait alone. Nobody is lost: who comes when the gate is open goes
// through. Thread-safe; the slots are used as asio asks: emit on the waiter's own executor.
#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace weir::cache {

class Gate : public std::enable_shared_from_this<Gate> {
 public:
  // Throws boost::system::system_error(operation_aborted) when the waiter is cancelled. The gate must be
  // owned by a shared_ptr; the wait shares it.
  boost::asio::awaitable<void> wait();

  // The same until the deadline at most: false when the gate hadn't opened by then. That costs a timer on the waiter's
  // executor, and none when the gate is open already.
  boost::asio::awaitable<bool> wait_until(std::chrono::steady_clock::time_point deadline);

  // Runs `first`, which nobody who waits can miss, opens, and wakes all. False, doing nothing, when it was
  // open.
  template <class F>
  bool open(F first) {
    Waiters waiters;
    {
      const std::lock_guard lock(mutex_);
      if (open_) return false;
      first();
      open_ = true;
      waiters.swap(waiters_);
    }
    wake(std::move(waiters));
    return true;
  }

 private:
  struct Waiter {
    boost::asio::any_completion_handler<void(boost::system::error_code)> handler;
    boost::asio::any_io_executor executor;  // with its work counted
  };
  using Waiters = std::map<std::uint64_t, Waiter>;

  template <class Handler>
  void enlist(Handler handler, boost::asio::steady_timer* deadline);
  void end(std::uint64_t waiter, boost::system::error_code outcome);
  static void resume(Waiter waiter, boost::system::error_code outcome);
  static void wake(Waiters waiters);

  mutable std::mutex mutex_;
  bool open_ = false;
  std::uint64_t last_waiter_ = 0;
  Waiters waiters_;  // in the order they came
};

}  // namespace weir::cache

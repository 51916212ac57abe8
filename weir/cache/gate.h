// Gate: closed at first, opened once; coroutines on any executors wait for that.
//
// Each waiter resumes on its own executor, which counts as busy while it waits. A waiter's cancellation (its
// asio cancellation slot) ends its own wait alone. Nobody is lost: who comes when the gate is open goes
// through. Who is suspended here belongs to its own executor's context, as one who waits for a timer: when that
// context is destroyed, so is the coroutine, and the gate may be opened before or afterwards (while it is being destroyed
// nobody may touch what is on it, as ever with asio). Thread-safe; the slots are used as asio asks: emit on the waiter's
// own executor.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>

namespace weir::cache {

class Gate : public std::enable_shared_from_this<Gate> {
 public:
  // Throws boost::system::system_error(operation_aborted) when the waiter is cancelled. The gate must be
  // owned by a shared_ptr; the wait shares it, from this call on.
  boost::asio::awaitable<void> wait();

  // The same until the deadline at most: false when the gate hadn't opened by then.
  boost::asio::awaitable<bool> wait_until(std::chrono::steady_clock::time_point deadline);

  // Runs `first`, which nobody who waits can miss, opens, and wakes all, in the order they came. False, doing
  // nothing, when it was open.
  template <class F>
  bool open(F first) {
    {
      const std::lock_guard lock(mutex_);
      if (open_) return false;
      first();
      open_ = true;
    }
    wake();
    return true;
  }

 private:
  struct Waiter;
  using Waiters = std::list<Waiter*>;

  static boost::asio::awaitable<bool> pass(std::shared_ptr<Gate> gate,
                                           std::chrono::steady_clock::time_point deadline);
  static boost::asio::awaitable<void> pass(std::shared_ptr<Gate> gate);
  void wake();

  mutable std::mutex mutex_;
  bool open_ = false;
  Waiters waiters_;  // in the order they came
};

}  // namespace weir::cache

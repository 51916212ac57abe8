#include "weir/cache/gate.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

namespace weir::cache {

namespace asio = boost::asio;
using boost::system::error_code;
using TimePoint = std::chrono::steady_clock::time_point;

// One who waits, in its coroutine's frame: for a timer, which the gate cancels when it opens. So the suspended
// coroutine is the timer's, and goes with the timer's context. If the gate held it, the two would hold each other for
// ever once nobody opens, and the gate would wake what isn't there any more once somebody does.
struct Gate::Waiter {
  Waiter(std::shared_ptr<Gate> g, const asio::any_io_executor& executor, TimePoint deadline)
      : gate(std::move(g)), timer(executor, deadline) {}
  ~Waiter() { leave(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  template <class Handler>
  void begin(Handler handler) {
    // From when the timer is set, the frame may go on, and end, elsewhere.
    const std::shared_ptr<Gate> kept = gate;
    const std::lock_guard lock(kept->mutex_);
    if (!kept->open_) {
      at = kept->waiters_.insert(kept->waiters_.end(), this);
      listed = true;
    }
    // Under the lock: nobody can cancel a timer while it is being set.
    timer.async_wait(std::move(handler));
    if (kept->open_) timer.cancel();
  }
  // Whether the gate has opened.
  bool leave() {
    const std::lock_guard lock(gate->mutex_);
    if (std::exchange(listed, false)) gate->waiters_.erase(at);
    return gate->open_;
  }

  const std::shared_ptr<Gate> gate;
  asio::steady_timer timer;
  Waiters::iterator at;
  bool listed = false;  // and so on, under the gate's lock
};

asio::awaitable<bool> Gate::pass(std::shared_ptr<Gate> gate, TimePoint deadline) {
  {
    const std::lock_guard lock(gate->mutex_);
    if (gate->open_) co_return true;
  }
  Waiter waiter(std::move(gate), co_await asio::this_coro::executor, deadline);
  constexpr auto kOutcome = asio::as_tuple(asio::use_awaitable);
  const auto [outcome] = co_await asio::async_initiate<decltype(kOutcome), void(error_code)>(
      [](auto handler, Waiter* one) { one->begin(std::move(handler)); }, kOutcome, &waiter);
  if (waiter.leave()) co_return true;
  if (outcome) throw boost::system::system_error(outcome);
  co_return false;
}

asio::awaitable<void> Gate::pass(std::shared_ptr<Gate> gate) {
  co_await pass(std::move(gate), TimePoint::max());
}

// No coroutines: who keeps what they return keeps the gate.
asio::awaitable<bool> Gate::wait_until(TimePoint deadline) {
  return pass(shared_from_this(), deadline);
}
asio::awaitable<void> Gate::wait() {
  return pass(shared_from_this());
}

// A waiter is there as long as it is in the list, so it is told under the lock; a few at a time, or those who go on
// already would wait here until the last is told.
void Gate::wake() {
  constexpr int kAtOnce = 64;
  for (bool more = true; more;) {
    const std::lock_guard lock(mutex_);
    for (int told = 0; told < kAtOnce && !waiters_.empty(); ++told) {
      Waiter& waiter = *waiters_.front();
      waiters_.pop_front();
      waiter.listed = false;
      waiter.timer.cancel();
    }
    more = !waiters_.empty();
  }
}

}  // namespace weir::cache

#include "weir/cache/gate.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

namespace weir::cache {

namespace asio = boost::asio;
using boost::system::error_code;

asio::awaitable<void> Gate::wait() {
  auto self = shared_from_this();
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void(error_code)>(
      [](auto handler, std::shared_ptr<Gate> gate) { gate->enlist(std::move(handler), nullptr); },
      asio::use_awaitable, self);
}

asio::awaitable<bool> Gate::wait_until(std::chrono::steady_clock::time_point deadline) {
  auto self = shared_from_this();
  {
    const std::lock_guard lock(mutex_);
    if (open_) co_return true;
  }
  // It goes when this coroutine goes on, on its own executor.
  asio::steady_timer timer(co_await asio::this_coro::executor, deadline);
  constexpr auto kOutcome = asio::as_tuple(asio::use_awaitable);
  const auto [outcome] = co_await asio::async_initiate<decltype(kOutcome), void(error_code)>(
      [](auto handler, std::shared_ptr<Gate> gate, asio::steady_timer* end) {
        gate->enlist(std::move(handler), end);
      },
      kOutcome, self, &timer);
  if (outcome == asio::error::timed_out) co_return false;
  if (outcome) throw boost::system::system_error(outcome);
  co_return true;
}

template <class Handler>
void Gate::enlist(Handler handler, asio::steady_timer* deadline) {
  auto executor =
      asio::prefer(asio::get_associated_executor(handler), asio::execution::outstanding_work.tracked);
  auto slot = asio::get_associated_cancellation_slot(handler);
  Waiter waiter{std::move(handler), std::move(executor)};
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++last_waiter_;
  }
  // Before it is among the waiters: from then on it may be resumed, elsewhere, at any moment. The slot refers
  // to the waiter by number only. To own it would be a circle (handler, coroutine, slot), and a late emission
  // finds nobody.
  if (slot.is_connected()) {
    slot.assign([gate = weak_from_this(), number](asio::cancellation_type) {
      if (const auto alive = gate.lock()) alive->end(number, asio::error::operation_aborted);
    });
  }
  {
    const std::lock_guard lock(mutex_);
    if (!open_) {
      // Under the lock: nobody can end this wait, and so the timer, while it is being set.
      if (deadline != nullptr)
        deadline->async_wait([gate = weak_from_this(), number](error_code error) {
          if (error) return;
          if (const auto alive = gate.lock()) alive->end(number, asio::error::timed_out);
        });
      waiters_.emplace(number, std::move(waiter));
      return;
    }
  }
  resume(std::move(waiter), {});
}

void Gate::end(std::uint64_t waiter, error_code outcome) {
  Waiters::node_type found;
  {
    const std::lock_guard lock(mutex_);
    found = waiters_.extract(waiter);
  }
  if (!found.empty()) resume(std::move(found.mapped()), outcome);
}

void Gate::resume(Waiter waiter, error_code outcome) {
  auto executor = std::move(waiter.executor);
  asio::post(executor, [handler = std::move(waiter.handler), executor, outcome]() mutable {
    std::move(handler)(outcome);
  });
}

void Gate::wake(Waiters waiters) {
  for (auto& [number, waiter] : waiters) resume(std::move(waiter), {});
}

}  // namespace weir::cache

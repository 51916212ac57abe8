// offload: runs a blocking call on a pool and brings its result back to the awaiting coroutine's own
// executor.
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/base/blocking_pool.h"
#include "weir/base/fault.h"

namespace weir {

// What a call left: a value or an exception. `void` calls have a monostate's worth of nothing.
template <class T>
struct Outcome {
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
  std::exception_ptr error;
  std::optional<Value> value;

  template <class F>
  static Outcome of(F& f) noexcept {
    Outcome outcome;
    try {
      if constexpr (std::is_void_v<T>) {
        f();
        outcome.value.emplace();
      } else {
        outcome.value.emplace(f());
      }
    } catch (...) {
      outcome.error = std::current_exception();
    }
    return outcome;
  }

  T get() && {
    if (error) std::rethrow_exception(error);
    if constexpr (!std::is_void_v<T>) return std::move(*value);
  }
};

// `co_await without_cancellation();`: from here on the coroutine isn't cut off by its request's deadline. For
// writes: what follows a commit must happen.
inline auto without_cancellation() {
  return boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
}

// Awaits an operation that `start` begins and that ends by one call, from any thread, of the completion it is
// given: completion(Outcome<T>). The coroutine resumes on its own executor, which is kept alive meanwhile.
template <class T, class Start>
boost::asio::awaitable<T> await_completion(Start start) {
  namespace asio = boost::asio;
  Outcome<T> outcome = co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Outcome<T>)>(
      [](auto handler, Start begin) {
        auto executor =
            asio::prefer(asio::get_associated_executor(handler), asio::execution::outstanding_work.tracked);
        begin([handler = std::move(handler), executor = std::move(executor)](Outcome<T> result) mutable {
          asio::post(executor, [handler = std::move(handler), result = std::move(result)]() mutable {
            handler(std::move(result));
          });
        });
      },
      asio::use_awaitable, std::move(start));
  co_return std::move(outcome).get();
}

// Throws what the call throws, and Unavailable when the pool's queue is full. `f` and what it holds die on
// the pool.
template <class F>
boost::asio::awaitable<std::invoke_result_t<F&>> offload(BlockingPool& pool, F f) {
  using T = std::invoke_result_t<F&>;
  auto begin = [&pool, f = std::move(f)](auto complete) mutable {
    // Shared, because a refused task must still be able to complete.
    auto shared = std::make_shared<decltype(complete)>(std::move(complete));
    const bool taken = pool.submit([f = std::move(f), shared]() mutable { (*shared)(Outcome<T>::of(f)); });
    if (!taken)
      (*shared)(Outcome<T>{std::make_exception_ptr(Unavailable("too many calls are waiting")), std::nullopt});
  };
  co_return co_await await_completion<T>(std::move(begin));
}

}  // namespace weir

// For the tests of this folder: an io_context that a test turns by hand, or that has a thread of its own.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <future>

#include "weir/testing/io_threads.h"

namespace weir::cache {

template <class F>
auto start_on(boost::asio::any_io_executor executor, F coroutine) {
  return boost::asio::co_spawn(executor, std::move(coroutine), boost::asio::use_future);
}

// Runs what is ready, never waits.
inline void turn(boost::asio::io_context& io) {
  io.restart();
  io.poll();
}

template <class Future>
bool is_ready(Future& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

// Turns until the future is there; the test fails if that takes unreasonably long.
template <class T>
T finish(boost::asio::io_context& io, std::future<T>& future) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_ready(future)) {
    if (std::chrono::steady_clock::now() > give_up) throw std::logic_error("nobody ends this wait");
    io.restart();
    io.run_one_for(std::chrono::milliseconds(10));
  }
  return future.get();
}

inline boost::asio::awaitable<void> pause(std::chrono::steady_clock::duration time) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, time);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

// A loop of one thread.
class ThreadLoop : public IoThreads {
 public:
  ThreadLoop() : IoThreads(1) {}
};

}  // namespace weir::cache

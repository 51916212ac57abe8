// For the tests of this folder: an io_context that a test turns by hand, or that has a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <future>
#include <thread>

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

class ThreadLoop {
 public:
  ThreadLoop() : work_(boost::asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {}
  ~ThreadLoop() {
    work_.reset();
    thread_.join();
  }
  boost::asio::any_io_executor executor() { return io_.get_executor(); }
  std::thread::id thread() const { return thread_.get_id(); }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace weir::cache

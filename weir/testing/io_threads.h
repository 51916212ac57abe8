// IoThreads: the I/O threads of a server, for tests of what speaks coroutines.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>
#include <utility>
#include <vector>

namespace weir {

// Threads that run one io_context until it is destroyed. Thread-safe.
class IoThreads {
 public:
  explicit IoThreads(int threads = 2) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { context_.run(); });
  }
  // Drops what hasn't run, joins.
  ~IoThreads() {
    context_.stop();
    for (auto& thread : threads_) thread.join();
  }
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  boost::asio::any_io_executor executor() { return context_.get_executor(); }

  template <class T>
  std::future<T> start(boost::asio::awaitable<T> work) {
    return boost::asio::co_spawn(context_, std::move(work), boost::asio::use_future);
  }
  // What it returns or throws, when it is done.
  template <class T>
  T run(boost::asio::awaitable<T> work) {
    return start(std::move(work)).get();
  }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  std::vector<std::thread> threads_;
};

// The same without another thread: runs it here to its end.
template <class T>
T run_here(boost::asio::awaitable<T> work) {
  boost::asio::io_context context;
  auto future = boost::asio::co_spawn(context, std::move(work), boost::asio::use_future);
  context.run();
  return future.get();
}

}  // namespace weir

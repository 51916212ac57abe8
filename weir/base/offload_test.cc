#include "weir/base/offload.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <string>
#include <thread>

namespace weir {
namespace {

namespace asio = boost::asio;

template <class F>
void run(F f) {
  asio::io_context io;
  std::exception_ptr error;
  asio::co_spawn(io, std::move(f), [&](std::exception_ptr e) { error = e; });
  io.run();
  if (error) std::rethrow_exception(error);
}

TEST(OffloadConcurrency, RunsElsewhereAndComesBack) {
  BlockingPool pool("test", 2, 100);
  run([&]() -> asio::awaitable<void> {
    const auto here = std::this_thread::get_id();
    auto there = co_await offload(pool, [] { return std::this_thread::get_id(); });
    EXPECT_NE(there, here);
    EXPECT_EQ(std::this_thread::get_id(), here);
    co_await offload(pool, [] {});
  });
}

TEST(OffloadConcurrency, BringsTheErrorBack) {
  BlockingPool pool("test", 1, 100);
  EXPECT_THROW(run([&]() -> asio::awaitable<void> {
                 co_await offload(pool, []() -> std::string { throw std::out_of_range("no"); });
               }),
               std::out_of_range);
}

TEST(OffloadConcurrency, AFullPoolIsUnavailable) {
  BlockingPool pool("test", 1, 0);
  EXPECT_THROW(run([&]() -> asio::awaitable<void> { co_await offload(pool, [] {}); }), Unavailable);
}

}  // namespace
}  // namespace weir

#include "weir/base/offload.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "weir/testing/io_threads.h"

namespace weir {
namespace {

namespace asio = boost::asio;

TEST(OffloadConcurrency, RunsElsewhereAndComesBack) {
  BlockingPool pool("test", 2, 100);
  run_here([&]() -> asio::awaitable<void> {
    const auto here = std::this_thread::get_id();
    auto there = co_await offload(pool, [] { return std::this_thread::get_id(); });
    EXPECT_NE(there, here);
    EXPECT_EQ(std::this_thread::get_id(), here);
    co_await offload(pool, [] {});
  }());
}

TEST(OffloadConcurrency, BringsTheErrorBack) {
  BlockingPool pool("test", 1, 100);
  EXPECT_THROW(run_here([&]() -> asio::awaitable<void> {
                 co_await offload(pool, []() -> std::string { throw std::out_of_range("no"); });
               }()),
               std::out_of_range);
}

TEST(OffloadConcurrency, AFullPoolIsUnavailable) {
  BlockingPool pool("test", 1, 0);
  EXPECT_THROW(run_here([&]() -> asio::awaitable<void> { co_await offload(pool, [] {}); }()), Unavailable);
}

}  // namespace
}  // namespace weir

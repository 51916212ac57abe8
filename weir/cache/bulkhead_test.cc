#include "weir/cache/bulkhead.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <deque>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/cache/test_loop.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct BulkheadTest : testing::Test {
  std::future<Bulkhead::Place> enter() {
    auto entering = start_on(io.get_executor(), bulkhead.enter());
    turn(io);
    return entering;
  }
  SimulatedTime time;
  asio::io_context io;
  Bulkhead bulkhead{{.places = 2, .max_waiting = 2, .patience = 100ms, .pause = time.pause()}};
};

TEST_F(BulkheadTest, BoundsHowManyAreInside) {
  auto first = enter().get();
  auto second = enter().get();
  EXPECT_EQ(bulkhead.inside(), 2U);
  EXPECT_FALSE(bulkhead.try_enter());
  auto third = enter(), fourth = enter();
  EXPECT_EQ(bulkhead.waiting(), 2U);
  EXPECT_THROW(enter().get(), Unavailable);  // the queue is bounded too
  first = {};
  turn(io);
  ASSERT_TRUE(is_ready(third));  // in the order of coming
  EXPECT_FALSE(is_ready(fourth));
  EXPECT_EQ(bulkhead.inside(), 2U);
  second = {};
  turn(io);
  {
    auto both = std::pair(third.get(), fourth.get());
  }
  EXPECT_EQ(bulkhead.inside(), 0U);
  EXPECT_TRUE(bulkhead.try_enter());
  EXPECT_EQ(bulkhead.inside(), 0U);
}

TEST_F(BulkheadTest, WhoWaitsTooLongIsRefused) {
  auto first = enter().get(), second = enter().get();
  auto waiting = enter();
  time.advance(99ms);
  turn(io);
  EXPECT_FALSE(is_ready(waiting));
  time.advance(1ms);
  turn(io);
  EXPECT_THROW(waiting.get(), Unavailable);
  EXPECT_EQ(bulkhead.waiting(), 0U);
}

TEST_F(BulkheadTest, ACancelledOneTakesNobodysPlace) {
  auto first = enter().get(), second = enter().get();
  asio::cancellation_signal cancel;
  bool failed = false;
  asio::co_spawn(io, bulkhead.enter(),
                 asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr error, Bulkhead::Place) {
                   failed = error != nullptr;
                 }));
  turn(io);
  auto next = enter();
  cancel.emit(asio::cancellation_type::terminal);
  turn(io);
  EXPECT_TRUE(failed);
  EXPECT_EQ(bulkhead.waiting(), 1U);
  first = {};
  turn(io);
  EXPECT_TRUE(is_ready(next));
  next.get();
  second = {};
  EXPECT_EQ(bulkhead.inside(), 0U);
  EXPECT_EQ(bulkhead.waiting(), 0U);
}

// Admitted and cancelled at the same moment: whichever wins, the place isn't lost.
TEST_F(BulkheadTest, APlaceGivenToWhoIsCancelledGoesOn) {
  auto first = enter().get(), second = enter().get();
  asio::cancellation_signal cancel;
  asio::co_spawn(io, bulkhead.enter(),
                 asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr, Bulkhead::Place) {}));
  turn(io);
  auto next = enter();
  first = {};
  cancel.emit(asio::cancellation_type::terminal);
  turn(io);
  ASSERT_TRUE(is_ready(next));
  next.get();
  second = {};
  EXPECT_EQ(bulkhead.inside(), 0U);
}

TEST_F(BulkheadTest, AStopEndsEveryWait) {
  auto inside = bulkhead.try_enter();
  auto first = enter().get();
  auto waiting = enter();
  bulkhead.stop();
  turn(io);
  EXPECT_THROW(waiting.get(), Unavailable);
  first = {};
  EXPECT_FALSE(bulkhead.try_enter());
  EXPECT_THROW(enter().get(), Unavailable);
  EXPECT_EQ(bulkhead.inside(), 1U);
}

TEST_F(BulkheadTest, APlaceMayOutliveTheBulkhead) {
  std::optional<Bulkhead> gone(std::in_place, BulkheadOptions{.places = 1});
  auto place = gone->try_enter();
  gone.reset();
  place.reset();
}

TEST(BulkheadConcurrency, NeverMoreInsideAndNobodyIsForgotten) {
  Bulkhead bulkhead({.places = 3, .max_waiting = 1'000, .patience = 30s});
  std::deque<ThreadLoop> loops(4);
  std::atomic<int> inside{0}, most{0};
  const auto work = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 50; ++i) {
      const auto place = co_await bulkhead.enter();
      const int now = ++inside;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      --inside;
    }
  };
  std::vector<std::future<void>> all;
  for (std::size_t i = 0; i < 40; ++i)
    all.push_back(start_on(asio::make_strand(loops[i % loops.size()].executor()), work()));
  for (auto& one : all) one.get();
  EXPECT_EQ(most, 3);
  EXPECT_EQ(bulkhead.inside(), 0U);
}

}  // namespace
}  // namespace weir::cache

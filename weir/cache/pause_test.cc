#include "weir/cache/pause.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "weir/cache/test_loop.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

TEST(SimulatedTime, PausesEndWhenTheTimeIsMovedAndNotBefore) {
  SimulatedTime time;
  asio::io_context io;
  EXPECT_FALSE(time.next());
  auto later = start_on(io.get_executor(), time.pause()(20ms));
  auto sooner = start_on(io.get_executor(), time.pause()(10ms));
  turn(io);
  EXPECT_EQ(time.next(), 10ms);
  const SteadyTime before = time.steady_now();
  time.advance(10ms);
  turn(io);
  EXPECT_EQ(time.steady_now() - before, 10ms);
  EXPECT_TRUE(is_ready(sooner));
  EXPECT_FALSE(is_ready(later));
  time.advance(1h);
  turn(io);
  EXPECT_TRUE(is_ready(later));
}

struct OpenedWithin : testing::Test {
  std::future<bool> start(std::chrono::nanoseconds limit) {
    return start_on(io.get_executor(), opened_within(gate, limit, time.pause()));
  }
  SimulatedTime time;
  asio::io_context io;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
};

TEST_F(OpenedWithin, TellsWhichCameFirst) {
  auto opened = start(10ms);
  turn(io);
  gate->open([] {});
  turn(io);
  EXPECT_TRUE(opened.get());
  OpenedWithin::gate->open([] {});
  auto at_once = start(10ms);
  turn(io);
  EXPECT_TRUE(at_once.get());
}

TEST_F(OpenedWithin, GivesUp) {
  auto waiting = start(10ms);
  turn(io);
  time.advance(9ms);
  turn(io);
  EXPECT_FALSE(is_ready(waiting));
  time.advance(1ms);
  turn(io);
  EXPECT_FALSE(waiting.get());
}

TEST_F(OpenedWithin, EndsWhenItsCoroutineIsCancelled) {
  asio::cancellation_signal cancel;
  std::exception_ptr error;
  asio::co_spawn(
      io, opened_within(gate, 1h, time.pause()),
      asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr e, bool) { error = std::move(e); }));
  turn(io);
  cancel.emit(asio::cancellation_type::terminal);
  turn(io);
  ASSERT_TRUE(error);
  try {
    std::rethrow_exception(error);
  } catch (const boost::system::system_error& aborted) {
    EXPECT_EQ(aborted.code(), asio::error::operation_aborted);
  }
}

TEST_F(OpenedWithin, WorksWithTheMachinesTimersToo) {
  auto waiting = start_on(io.get_executor(), opened_within(gate, 1ms, timer_pause));
  EXPECT_FALSE(finish(io, waiting));
}

}  // namespace
}  // namespace weir::cache

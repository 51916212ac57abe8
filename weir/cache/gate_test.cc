#include "weir/cache/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "weir/cache/pause.h"
#include "weir/cache/test_loop.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

struct GateTest : testing::Test {
  // Waits and then counts itself; `token` lives as long as its coroutine.
  asio::awaitable<void> waiter(std::shared_ptr<Gate> at, std::shared_ptr<int> token) {
    co_await at->wait();
    ++*token;
  }
  asio::awaitable<void> waiter_until(std::shared_ptr<Gate> at, std::shared_ptr<int> token,
                                     SteadyClock::time_point deadline) {
    if (co_await at->wait_until(deadline)) ++*token;
  }
  asio::io_context io;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
};

TEST_F(GateTest, AllGoOnInTheOrderTheyCameAndWhoComesLaterGoesThrough) {
  std::vector<int> order;
  const auto come = [&](int number) {
    asio::co_spawn(
        io,
        [](std::shared_ptr<Gate> at, std::vector<int>& went, int own) -> asio::awaitable<void> {
          co_await at->wait();
          went.push_back(own);
        }(gate, order, number),
        asio::detached);
  };
  std::vector<int> expected;
  for (int i = 0; i < 200; ++i) {
    come(i);
    expected.push_back(i);
  }
  turn(io);
  EXPECT_TRUE(order.empty());
  bool first_ran = false;
  EXPECT_TRUE(gate->open([&] { first_ran = true; }));
  EXPECT_TRUE(first_ran);
  turn(io);
  EXPECT_EQ(order, expected);
  EXPECT_FALSE(gate->open([] { FAIL() << "it is open already"; }));
  come(200);
  turn(io);
  EXPECT_EQ(order.back(), 200);
  EXPECT_TRUE(io.stopped());  // nothing is left that would keep it busy
}

TEST_F(GateTest, AWaitEndsAtItsDeadlineAndKeepsNobodyElseBack) {
  const auto patient = std::make_shared<int>(), hasty = std::make_shared<int>();
  auto stays = start_on(io.get_executor(), waiter_until(gate, patient, SteadyClock::now() + 1h));
  auto goes = start_on(io.get_executor(), gate->wait_until(SteadyClock::now() + 2ms));
  EXPECT_FALSE(finish(io, goes));
  EXPECT_FALSE(is_ready(stays));
  gate->open([] {});
  finish(io, stays);
  EXPECT_EQ(*patient, 1);
  auto late = start_on(io.get_executor(), gate->wait_until(SteadyClock::now() - 1h));
  EXPECT_TRUE(finish(io, late));
}

TEST_F(GateTest, ACancelledWaitEndsAloneAndALateCancellationFindsNobody) {
  asio::cancellation_signal cancel;
  std::optional<std::exception_ptr> end;
  const auto token = std::make_shared<int>();
  asio::co_spawn(io, waiter(gate, token),
                 asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr e) { end = e; }));
  auto other = start_on(io.get_executor(), waiter(gate, token));
  turn(io);
  cancel.emit(asio::cancellation_type::terminal);
  turn(io);
  ASSERT_TRUE(end && *end);
  EXPECT_THROW(std::rethrow_exception(*end), boost::system::system_error);
  EXPECT_FALSE(is_ready(other));
  gate->open([] {});
  turn(io);
  EXPECT_EQ(*token, 1);
  cancel.emit(asio::cancellation_type::terminal);
}

// However a coroutine waits at a gate, and whether or not that is ever opened.
TEST_F(GateTest, AContextThatIsDestroyedTakesItsWaitersWithIt) {
  SimulatedTime time;
  std::vector<std::weak_ptr<int>> tokens;
  {
    asio::io_context going;
    const auto token = [&] {
      auto one = std::make_shared<int>();
      tokens.push_back(one);
      return one;
    };
    const auto start = [&](auto executor, asio::awaitable<void> work) {
      asio::co_spawn(executor, std::move(work), asio::detached);
    };
    start(going.get_executor(), waiter(gate, token()));
    start(asio::make_strand(going), waiter(gate, token()));
    start(going.get_executor(), waiter_until(gate, token(), SteadyClock::now() + 1h));
    start(going.get_executor(), waiter(std::make_shared<Gate>(), token()));  // nobody else has this gate
    const auto in_time = [](std::shared_ptr<Gate> at, Pause pause,
                            std::shared_ptr<int> own) -> asio::awaitable<void> {
      if (co_await opened_within(at, 1h, pause)) ++*own;
    };
    start(going.get_executor(), in_time(gate, time.pause(), token()));
    turn(going);
    for (const auto& one : tokens) EXPECT_FALSE(one.expired());
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_TRUE(tokens[i].expired()) << i;
  gate->open([] {});  // finds nobody
  time.advance(2h);
}

TEST_F(GateTest, AWaitThatIsNeverBegunNeedsNoGateAndHarmsNobody) {
  auto own = std::make_shared<Gate>();
  std::weak_ptr<Gate> alive = own;
  {
    auto begun_late = own->wait();
    auto never = own->wait_until(SteadyClock::now() + 1h);
    own->open([] {});
    own.reset();
    auto done = start_on(io.get_executor(), std::move(begun_late));
    finish(io, done);
  }
  EXPECT_TRUE(alive.expired());
}

// Contexts with threads of their own; and one that is gone when the gate opens, or goes before its waiters have run.
TEST(GateConcurrency, OpeningRacesWithDeadlinesAndMeetsContextsThatGo) {
  for (int round = 0; round < 50; ++round) {
    const auto gate = std::make_shared<Gate>();
    std::atomic<int> through{0}, timed_out{0};
    const auto count = [&](std::shared_ptr<Gate> at,
                           std::chrono::microseconds limit) -> asio::awaitable<void> {
      (co_await at->wait_until(SteadyClock::now() + limit) ? through : timed_out)++;
    };
    constexpr int kWaiters = 100;
    IoThreads staying(2);
    std::vector<std::future<void>> all;
    for (int i = 0; i < kWaiters; ++i)
      all.push_back(asio::co_spawn(asio::make_strand(staying.executor()),
                                   count(gate, std::chrono::microseconds(20 * i)), asio::use_future));
    const auto token = std::make_shared<int>();
    std::optional<asio::io_context> going(std::in_place);
    std::thread coming([&] {
      for (int i = 0; i < kWaiters; ++i)
        asio::co_spawn(
            *going,
            [](std::shared_ptr<Gate> at, std::shared_ptr<int> own) -> asio::awaitable<void> {
              co_await at->wait();
              ++*own;
            }(gate, token),
            asio::detached);
      turn(*going);
    });
    if (round % 2 == 0) {
      coming.join();
      going.reset();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
    gate->open([] {});
    if (coming.joinable()) coming.join();
    going.reset();
    for (auto& one : all) one.get();
    EXPECT_EQ(through + timed_out, kWaiters);
    EXPECT_EQ(token.use_count(), 1);
  }
}

}  // namespace
}  // namespace weir::cache

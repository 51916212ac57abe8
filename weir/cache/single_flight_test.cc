#include "weir/cache/single_flight.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <string>

#include "weir/cache/test_loop.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Shared = std::shared_ptr<const std::string>;
using Flights = SingleFlight<int, Shared>;

Shared text(const std::string& t) {
  return std::make_shared<const std::string>(t);
}

// A load that waits until the test lets it go on.
struct Controlled {
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  Shared result = text("value");

  auto load() const {
    return [gate = gate, calls = calls, result = result]() -> asio::awaitable<Shared> {
      ++*calls;
      co_await gate->wait();
      co_return result;
    };
  }
  auto failing() const {
    return [gate = gate, calls = calls]() -> asio::awaitable<Shared> {
      ++*calls;
      co_await gate->wait();
      throw Unavailable("the store is away");
    };
  }
  void go() {
    gate->open([] {});
  }
};

class SingleFlightTest : public testing::Test {
 protected:
  asio::io_context io_;
  Flights flights_{io_.get_executor()};
  Controlled controlled_;

  std::future<Shared> read(int key = 1) {
    return start_on(io_.get_executor(), flights_.run(key, controlled_.load()));
  }
};

TEST_F(SingleFlightTest, AHundredReadersLoadOnceAndShareTheValue) {
  std::vector<std::future<Shared>> readers;
  readers.reserve(100);
  for (int i = 0; i < 100; ++i) readers.push_back(read());
  turn(io_);
  EXPECT_EQ(*controlled_.calls, 1);
  EXPECT_EQ(flights_.size(), 1U);
  controlled_.go();
  for (auto& reader : readers) EXPECT_EQ(finish(io_, reader).get(), controlled_.result.get());
  EXPECT_EQ(*controlled_.calls, 1);
  EXPECT_EQ(flights_.size(), 0U);
}

TEST_F(SingleFlightTest, KeysFlyAlone) {
  auto one = read(1), two = read(2);
  turn(io_);
  EXPECT_EQ(*controlled_.calls, 2);
  controlled_.go();
  finish(io_, one);
  finish(io_, two);
  auto again = read(1);  // nothing is kept
  finish(io_, again);
  EXPECT_EQ(*controlled_.calls, 3);
}

TEST_F(SingleFlightTest, ALeaderThatIsCancelledLeavesNobodyHanging) {
  asio::cancellation_signal cancel;
  std::exception_ptr leader_error;
  asio::co_spawn(
      io_, flights_.run(1, controlled_.load()),
      asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr e, Shared) { leader_error = e; }));
  turn(io_);
  auto follower = read();
  turn(io_);
  cancel.emit(asio::cancellation_type::terminal);
  cancel.emit(asio::cancellation_type::terminal);  // twice does no more
  turn(io_);
  ASSERT_TRUE(leader_error);
  EXPECT_THROW(std::rethrow_exception(leader_error), boost::system::system_error);
  EXPECT_FALSE(is_ready(follower));
  controlled_.go();
  EXPECT_EQ(*finish(io_, follower), "value");
  EXPECT_EQ(*controlled_.calls, 1);
  cancel.emit(asio::cancellation_type::terminal);  // long after
}

// A flight is nobody's: the key stays in the table until it ends, also when everyone has given up.
TEST_F(SingleFlightTest, WhenAllAreCancelledTheFlightGoesOnForWhoComesNext) {
  asio::cancellation_signal first, second;
  int cancelled = 0;
  for (auto* cancel : {&first, &second})
    asio::co_spawn(io_, flights_.run(1, controlled_.load()),
                   asio::bind_cancellation_slot(
                       cancel->slot(), [&](std::exception_ptr e, Shared) { cancelled += e ? 1 : 0; }));
  turn(io_);
  first.emit(asio::cancellation_type::terminal);
  second.emit(asio::cancellation_type::terminal);
  turn(io_);
  EXPECT_EQ(cancelled, 2);
  EXPECT_EQ(flights_.size(), 1U);
  auto next = read();
  turn(io_);
  controlled_.go();
  EXPECT_EQ(finish(io_, next).get(), controlled_.result.get());
  EXPECT_EQ(*controlled_.calls, 1);
  EXPECT_EQ(flights_.size(), 0U);
}

TEST_F(SingleFlightTest, AnEndlessLimitIsNotOverAtOnce) {
  Flights endless(io_.get_executor(), {.limit = std::chrono::milliseconds::max()});
  auto reader = start_on(io_.get_executor(), endless.run(1, controlled_.load()));
  turn(io_);
  EXPECT_FALSE(is_ready(reader));
  controlled_.go();
  EXPECT_EQ(*finish(io_, reader), "value");
}

TEST_F(SingleFlightTest, AFollowerThatIsCancelledLeavesAlone) {
  auto leader = read();
  asio::cancellation_signal cancel;
  std::exception_ptr error;
  asio::co_spawn(
      io_, flights_.run(1, controlled_.load()),
      asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr e, Shared) { error = e; }));
  turn(io_);
  cancel.emit(asio::cancellation_type::terminal);
  turn(io_);
  EXPECT_TRUE(error);
  controlled_.go();
  EXPECT_EQ(*finish(io_, leader), "value");
}

TEST_F(SingleFlightTest, EveryoneGetsTheErrorAndTheNextCallWorks) {
  std::vector<std::future<Shared>> readers;
  readers.reserve(100);
  for (int i = 0; i < 10; ++i)
    readers.push_back(start_on(io_.get_executor(), flights_.run(1, controlled_.failing())));
  turn(io_);
  controlled_.go();
  for (auto& reader : readers) EXPECT_THROW(finish(io_, reader), Unavailable);
  EXPECT_EQ(*controlled_.calls, 1);
  auto next = read();
  EXPECT_EQ(*finish(io_, next), "value");
}

TEST_F(SingleFlightTest, ALoadThatThrowsBeforeItIsACoroutineFailsLikeAnyOther) {
  const auto refuse = []() -> asio::awaitable<Shared> {
    throw Unusable("no");
  };  // NOLINT: no co_await on purpose
  auto reader = start_on(io_.get_executor(), flights_.run(1, refuse));
  EXPECT_THROW(finish(io_, reader), Unusable);
  EXPECT_EQ(flights_.size(), 0U);
}

TEST_F(SingleFlightTest, AfterAForgetLaterReadersStartANewFlight) {
  auto early = read();
  turn(io_);
  flights_.forget(1);
  Controlled fresh;
  fresh.result = text("fresh");
  auto late = start_on(io_.get_executor(), flights_.run(1, fresh.load()));
  turn(io_);
  EXPECT_EQ(*fresh.calls, 1);
  EXPECT_EQ(flights_.size(), 2U);
  fresh.go();
  EXPECT_EQ(*finish(io_, late), "fresh");
  EXPECT_FALSE(is_ready(early));
  auto later = read();  // the forgotten flight's landing must not take this one off the table
  turn(io_);
  controlled_.go();
  EXPECT_EQ(*finish(io_, early), "value");
  EXPECT_EQ(*finish(io_, later), "value");
  EXPECT_EQ(flights_.size(), 0U);
}

TEST_F(SingleFlightTest, ManyKeysShareOneLoad) {
  const auto a = flights_.enter(1), b = flights_.enter(2);
  ASSERT_TRUE(a.leader && b.leader);
  EXPECT_FALSE(flights_.enter(2).leader);
  flights_.launch({a.flight, b.flight}, []() -> asio::awaitable<std::vector<Shared>> {
    co_return std::vector<Shared>{text("one"), text("two")};
  });
  auto one = start_on(io_.get_executor(), flights_.wait(a.flight));
  auto two = start_on(io_.get_executor(), flights_.wait(b.flight));
  EXPECT_EQ(*finish(io_, one), "one");
  EXPECT_EQ(*finish(io_, two), "two");
}

TEST_F(SingleFlightTest, ALoadThatAnswersTheWrongNumberIsAnErrorForAll) {
  const auto a = flights_.enter(1), b = flights_.enter(2);
  flights_.launch({a.flight, b.flight}, []() -> asio::awaitable<std::vector<Shared>> {
    co_return std::vector<Shared>{text("one")};
  });
  auto one = start_on(io_.get_executor(), flights_.wait(a.flight));
  EXPECT_THROW(finish(io_, one), std::logic_error);
  EXPECT_EQ(flights_.size(), 0U);
}

TEST_F(SingleFlightTest, TooManyAtOnceAreRefusedButJoiningIsNot) {
  Flights few(io_.get_executor(), {.max_flights = 2});
  auto a = start_on(io_.get_executor(), few.run(1, controlled_.load()));
  auto b = start_on(io_.get_executor(), few.run(2, controlled_.load()));
  turn(io_);
  auto c = start_on(io_.get_executor(), few.run(3, controlled_.load()));
  EXPECT_THROW(finish(io_, c), Unavailable);
  auto d = start_on(io_.get_executor(), few.run(2, controlled_.load()));
  controlled_.go();
  finish(io_, a);
  finish(io_, b);
  finish(io_, d);
  auto e = start_on(io_.get_executor(), few.run(3, controlled_.load()));
  finish(io_, e);
}

TEST_F(SingleFlightTest, StoppingEndsEveryWait) {
  auto open = read(1), forgotten = read(2);
  turn(io_);
  flights_.forget(2);
  flights_.stop();
  EXPECT_THROW(finish(io_, open), Unavailable);
  EXPECT_THROW(finish(io_, forgotten), Unavailable);
  auto late = read(3);
  EXPECT_THROW(finish(io_, late), Unavailable);
  controlled_.go();  // the loads end unheard
  turn(io_);
}

TEST(SingleFlight, AWaitHasADeadlineAndTheLoadIsToldToStop) {
  asio::io_context io;
  int timeouts = 0;
  bool told = false;
  Flights flights(io.get_executor(), {.limit = 20ms, .on_timeout = [&] { ++timeouts; }});
  const auto endless = [&]() -> asio::awaitable<Shared> {
    try {
      co_await pause(1h);
    } catch (const boost::system::system_error&) {
      told = true;
      throw;
    }
    co_return text("never");
  };
  auto a = start_on(io.get_executor(), flights.run(1, endless));
  auto b = start_on(io.get_executor(), flights.run(1, endless));
  EXPECT_THROW(finish(io, a), TimedOut);
  EXPECT_THROW(finish(io, b), TimedOut);
  EXPECT_EQ(timeouts, 1);
  EXPECT_EQ(flights.size(), 0U);
  turn(io);
  EXPECT_TRUE(told);
}

// The loads' context is there, and nobody runs it.
TEST(SingleFlight, AWaitEndsThoughTheLoadsExecutorIsBlocked) {
  asio::io_context io, loads;
  int timeouts = 0;
  Controlled controlled;
  Flights flights(loads.get_executor(), {.limit = 20ms, .on_timeout = [&] { ++timeouts; }});
  const auto began = std::chrono::steady_clock::now();
  auto leader = start_on(io.get_executor(), flights.run(1, controlled.load()));
  auto follower = start_on(io.get_executor(), flights.run(1, controlled.load()));
  EXPECT_THROW(finish(io, leader), TimedOut);
  EXPECT_THROW(finish(io, follower), TimedOut);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
  EXPECT_EQ(timeouts, 1);
  turn(loads);  // too late: the flight lands, and nothing is loaded for nobody
  EXPECT_EQ(flights.size(), 0U);
  EXPECT_EQ(*controlled.calls, 0);
  EXPECT_EQ(timeouts, 1);
}

TEST(SingleFlight, TenThousandWaitsWithADeadlineAreCheapAndEndTogether) {
  asio::io_context io, loads;
  Controlled controlled;
  controlled.go();
  Flights flights(loads.get_executor());
  int served = 0;
  for (int i = 0; i < 10'000; ++i)
    asio::co_spawn(io, flights.run(1, controlled.load()),
                   [&](std::exception_ptr error, Shared) { served += error ? 0 : 1; });
  turn(io);
  turn(loads);
  EXPECT_EQ(*controlled.calls, 1);
  turn(io);
  EXPECT_EQ(served, 10'000);
  EXPECT_EQ(io.poll(), 0U);  // no timer holds the context up
  EXPECT_TRUE(io.stopped());
}

TEST(SingleFlight, ALoadThatEndsLongAfterItsDeadlineHarmsNobody) {
  asio::io_context io;
  Controlled deaf;  // a gate can be cancelled, so this load hides from that
  Flights flights(io.get_executor(), {.limit = 10ms});
  const auto load = [inner = deaf.load()]() -> asio::awaitable<Shared> {
    auto done = std::make_shared<Gate>();
    auto result = std::make_shared<Shared>();
    asio::co_spawn(co_await asio::this_coro::executor, inner(),
                   [done, result](std::exception_ptr, Shared value) {
                     done->open([&] { *result = std::move(value); });
                   });
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await done->wait();
    co_return *result;
  };
  auto first = start_on(io.get_executor(), flights.run(1, load));
  EXPECT_THROW(finish(io, first), TimedOut);
  auto second = start_on(io.get_executor(), flights.run(1, load));
  turn(io);
  EXPECT_EQ(*deaf.calls, 2);
  deaf.go();
  EXPECT_EQ(*finish(io, second), "value");
  turn(io);
}

TEST(SingleFlight, WhenTheLoadsExecutorGoesAwayTheWaitersHearOfIt) {
  asio::io_context io;
  auto loads = std::make_unique<asio::io_context>();
  Flights flights(loads->get_executor());
  const auto load = []() -> asio::awaitable<Shared> {
    co_await pause(1h);
    co_return text("never");
  };
  auto begun = start_on(io.get_executor(), flights.run(1, load));
  turn(io);
  turn(*loads);
  auto not_begun = start_on(io.get_executor(), flights.run(2, load));
  turn(io);
  loads.reset();
  EXPECT_THROW(finish(io, begun), Unavailable);
  EXPECT_THROW(finish(io, not_begun), Unavailable);
}

TEST(SingleFlight, AContextMayGoWithEverythingStillUnderWay) {
  int calls = 0;  // leaks and uses after free are the address sanitizer's to see
  {
    asio::io_context io;
    Flights flights(io.get_executor());
    const auto load = [&calls]() -> asio::awaitable<Shared> {
      ++calls;
      co_await pause(1h);
      co_return text("never");
    };
    for (int i = 0; i < 10; ++i)
      asio::co_spawn(io, flights.run(i % 3, load), [](std::exception_ptr, Shared) {});
    turn(io);
    flights.forget(1);
  }
  EXPECT_EQ(calls, 3);
}

TEST(SingleFlightConcurrency, WaitersResumeOnTheirOwnThreads) {
  std::deque<ThreadLoop> loops(4);
  asio::thread_pool loads(2);
  Flights flights(loads.get_executor());
  std::atomic<int> calls{0}, at_home{0};
  std::vector<std::future<void>> done;
  done.reserve(200);
  for (int i = 0; i < 200; ++i) {
    ThreadLoop& loop = loops[static_cast<std::size_t>(i) % loops.size()];
    done.push_back(start_on(loop.executor(), [&]() -> asio::awaitable<void> {
      const auto home = std::this_thread::get_id();
      const Shared value = co_await flights.run(1, [&calls]() -> asio::awaitable<Shared> {
        ++calls;
        co_await pause(100ms);
        co_return text("value");
      });
      EXPECT_EQ(*value, "value");
      at_home += std::this_thread::get_id() == home ? 1 : 0;
    }));
  }
  for (auto& each : done) each.get();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(at_home, 200);
  loads.join();
}

// Readers, cancellations, failures, time-outs and forgets at random on several threads: every wait ends, each
// with a value that a load made for its key, a load's error, or its own cancellation, and nothing stays
// behind.
TEST(SingleFlightConcurrency, EveryWaitEndsWhateverHappens) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  asio::thread_pool loads(2);
  Flights flights(loads.get_executor(), {.limit = 3ms});
  std::atomic<int> values{0}, errors{0}, cancels{0};
  {
    std::deque<ThreadLoop> loops(3);
    std::vector<std::future<void>> done;
    done.reserve(200);
    for (std::uint64_t reader = 0; reader < 30; ++reader) {
      done.push_back(
          start_on(loops[reader % loops.size()].executor(), [&, reader]() -> asio::awaitable<void> {
            Random random(seed + reader);
            for (int i = 0; i < 100; ++i) {
              const int key = static_cast<int>(random.below(4));
              if (random.chance(0.1)) flights.forget(key);
              const auto wait = std::chrono::microseconds(random.below(4000));
              const bool fails = random.chance(0.2), cancelled = random.chance(0.3);
              const auto cancel_after = std::chrono::microseconds(random.below(2000));
              auto done_gate = std::make_shared<Gate>();
              auto signal = std::make_shared<asio::cancellation_signal>();
              auto load = [key, wait, fails]() -> asio::awaitable<Shared> {
                co_await pause(wait);
                if (fails) throw Unavailable("no");
                co_return text(std::to_string(key));
              };
              const auto executor = co_await asio::this_coro::executor;
              asio::co_spawn(
                  executor, flights.run(key, load),
                  asio::bind_cancellation_slot(
                      signal->slot(), [&, key, signal, done_gate](std::exception_ptr error, Shared value) {
                        if (!error) EXPECT_EQ(*value, std::to_string(key));
                        try {
                          if (error) std::rethrow_exception(error);
                          ++values;
                        } catch (const Unavailable&) {
                          ++errors;
                        } catch (const boost::system::system_error&) {
                          ++cancels;
                        }
                        done_gate->open([] {});
                      }));
              if (cancelled) {
                co_await pause(cancel_after);
                signal->emit(asio::cancellation_type::terminal);
              }
              co_await done_gate->wait();
            }
          }));
    }
    for (auto& each : done) each.get();
  }
  loads.join();
  EXPECT_EQ(values + errors + cancels, 3000);
  EXPECT_GT(values, 0);
  EXPECT_GT(errors, 0);
  EXPECT_GT(cancels, 0);
  EXPECT_EQ(flights.size(), 0U);
}

}  // namespace
}  // namespace weir::cache

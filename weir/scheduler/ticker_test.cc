#include "weir/scheduler/ticker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "weir/base/fault.h"
#include "weir/telemetry/metrics.h"

namespace weir::scheduler {
namespace {

using namespace std::chrono_literals;

// Collects at what times calls came, and lets the test wait for them.
class Calls {
 public:
  explicit Calls(const Clock& clock) : clock_(clock), start_(clock.steady_now()) {}
  std::size_t note() {
    const std::lock_guard lock(mutex_);
    at_.push_back(std::chrono::duration_cast<std::chrono::seconds>(clock_.steady_now() - start_).count());
    changed_.notify_all();
    return at_.size();
  }
  std::vector<std::int64_t> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 20s, [&] { return at_.size() >= count; });
    return at_;
  }

 private:
  const Clock& clock_;
  SteadyTime start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> at_;
};

using Times = std::vector<std::int64_t>;

TEST(TickerConcurrency, CallsAtStartAndThenEveryInterval) {
  ManualClock clock;
  Calls calls(clock);
  Ticker ticker("plain", 60s, [&](const std::stop_token&) { calls.note(); }, clock);
  EXPECT_EQ(calls.wait_for(1), Times({0}));
  clock.advance(59s);
  ticker.look_again();
  clock.advance(1s);
  ticker.look_again();
  EXPECT_EQ(calls.wait_for(2), Times({0, 60}));
  ticker.stop();
  clock.advance(600s);
  ticker.look_again();
  EXPECT_EQ(calls.wait_for(0), Times({0, 60})) << "nothing comes after stop";
}

TEST(TickerConcurrency, NeitherDriftsNorPilesUp) {
  ManualClock clock;
  Calls calls(clock);
  Ticker ticker(
      "slow", 60s,
      [&](const std::stop_token&) {
        // The first call takes a little, the second longer than three intervals.
        const std::size_t n = calls.note();
        if (n == 1) clock.advance(7s);
        if (n == 2) clock.advance(200s);
      },
      clock);
  calls.wait_for(1);
  // The call may still be moving the clock; the grid is the same wherever it stands.
  while (clock.steady_now() - SteadyTime{} < 7s) std::this_thread::yield();
  clock.advance(53s);
  ticker.look_again();
  EXPECT_EQ(calls.wait_for(2), Times({0, 60}));
  while (clock.now() < ManualClock().now() + 260s) std::this_thread::yield();
  clock.advance(40s);
  ticker.look_again();
  EXPECT_EQ(calls.wait_for(3), Times({0, 60, 300})) << "120, 180 and 240 are left out";
}

TEST(TickerConcurrency, GoesOnAfterACallThatThrew) {
  ManualClock clock;
  Calls calls(clock);
  Ticker ticker(
      "thrower", 60s,
      [&](const std::stop_token&) {
        if (calls.note() == 1) throw std::runtime_error("not today");
      },
      clock);
  calls.wait_for(1);
  clock.advance(60s);
  ticker.look_again();
  EXPECT_EQ(calls.wait_for(2).size(), 2U);
  EXPECT_THAT(telemetry::scrape(),
              testing::HasSubstr("weir_swallowed_errors_total{where=\"ticker.thrower\"} 1"));
}

TEST(TickerConcurrency, StopsAtOnceWhileItWaitsAndWhileItWorks) {
  const auto start = std::chrono::steady_clock::now();
  {
    Calls calls(Clock::system());
    Ticker waiting("waiting", 1h, [&](const std::stop_token&) { calls.note(); });
    calls.wait_for(1);
  }
  {
    Calls calls(Clock::system());
    Ticker working("working", 1h, [&](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any stopped;
      std::unique_lock lock(mutex);
      calls.note();
      stopped.wait_for(lock, stop, 1h, [] { return false; });
    });
    calls.wait_for(1);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST(Ticker, RefusesAnIntervalThatIsNone) {
  EXPECT_THROW(Ticker("never", 0s, [](const std::stop_token&) {}), Unusable);
}

TEST(TickerConcurrency, TicksByTheSystemsClockToo) {
  Calls calls(Clock::system());
  const Ticker ticker("quick", 1ms, [&](const std::stop_token&) { calls.note(); });
  EXPECT_GE(calls.wait_for(20).size(), 20U);
}

}  // namespace
}  // namespace weir::scheduler

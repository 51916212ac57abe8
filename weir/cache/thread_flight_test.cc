#include "weir/cache/thread_flight.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/random.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;
using Flights = ThreadFlight<std::string, std::shared_ptr<const int>>;

std::shared_ptr<const int> number(int n) {
  return std::make_shared<const int>(n);
}

// A flight whose leader waits for the test.
struct Led {
  explicit Led(Flights& flights, int value, bool fails = false) {
    leader = std::async(std::launch::async, [this, &flights, value, fails] {
      return flights.run("k", [&] {
        begun.set_value();
        go.get_future().wait();
        if (fails) throw Unavailable("no");
        return number(value);
      });
    });
    begun.get_future().wait();
  }
  std::promise<void> begun, go;
  std::future<std::shared_ptr<const int>> leader;
};

TEST(ThreadFlightConcurrency, FollowersShareTheLeadersValue) {
  Flights flights;
  Led led(flights, 7);
  std::atomic<int> calls{0};
  std::vector<std::future<std::shared_ptr<const int>>> followers;
  followers.reserve(8);
  for (int i = 0; i < 8; ++i) {
    followers.push_back(std::async(std::launch::async, [&] {
      return flights.run("k", [&] {
        ++calls;
        return number(8);
      });
    }));
  }
  EXPECT_EQ(*flights.run("another", [] { return number(9); }), 9);
  std::this_thread::sleep_for(20ms);  // lets them come; who is late would load alone, and show
  led.go.set_value();
  const auto value = led.leader.get();
  int shared = 0;
  for (auto& follower : followers) shared += follower.get() == value ? 1 : 0;
  EXPECT_EQ(shared + calls, 8);
  EXPECT_GT(shared, 0);
  EXPECT_EQ(*flights.run("k", [] { return number(10); }), 10);  // nothing is kept
}

TEST(ThreadFlightConcurrency, ALeaderThatThrowsLeavesNobodyWaiting) {
  Flights flights;
  Led led(flights, 0, true);
  auto follower = std::async(std::launch::async, [&] { return flights.run("k", [] { return number(1); }); });
  std::this_thread::sleep_for(20ms);
  led.go.set_value();
  EXPECT_THROW(led.leader.get(), Unavailable);
  try {
    EXPECT_EQ(*follower.get(), 1);  // came late
  } catch (const Unavailable&) {
  }
  EXPECT_EQ(*flights.run("k", [] { return number(2); }), 2);
}

TEST(ThreadFlightConcurrency, AWaitHasALimit) {
  Flights flights;
  Led led(flights, 7);
  EXPECT_THROW(flights.run("k", [] { return number(1); }, 10ms), TimedOut);
  // It ended that wait alone: the flight is still there to join.
  auto patient =
      std::async(std::launch::async, [&] { return flights.run("k", [] { return number(1); }, 1min); });
  EXPECT_EQ(patient.wait_for(20ms), std::future_status::timeout);
  led.go.set_value();
  EXPECT_EQ(*led.leader.get(), 7);
  EXPECT_EQ(*patient.get(), 7);
}

TEST(ThreadFlightConcurrency, ALimitWithoutEndIsNotOver) {
  Flights flights;
  Led led(flights, 7);
  auto follower = std::async(std::launch::async, [&] {
    return flights.run("k", [] { return number(1); }, std::chrono::milliseconds::max());
  });
  EXPECT_EQ(follower.wait_for(20ms), std::future_status::timeout);
  led.go.set_value();
  EXPECT_EQ(*follower.get(), 7);
}

TEST(ThreadFlightConcurrency, ALeaderWhoseThreadEndsLeavesNobodyWaiting) {
  Flights flights;
  std::promise<void> begun, go;
  std::thread leader([&] {
    flights.run("k", [&]() -> std::shared_ptr<const int> {
      begun.set_value();
      go.get_future().wait();
      pthread_exit(nullptr);  // unwinds, as a cancellation does
    });
  });
  begun.get_future().wait();
  auto follower =
      std::async(std::launch::async, [&] { return flights.run("k", [] { return number(1); }, 1min); });
  EXPECT_EQ(follower.wait_for(20ms), std::future_status::timeout);
  go.set_value();
  leader.join();
  EXPECT_THROW(follower.get(), Unavailable);
  EXPECT_EQ(*flights.run("k", [] { return number(2); }), 2);
}

TEST(ThreadFlightConcurrency, ALoadThatAsksForItsOwnKeyEnds) {
  Flights flights;
  const auto inner = [&] { return flights.run("k", [] { return number(1); }, 10ms); };
  EXPECT_THROW(flights.run("k", inner), TimedOut);
  EXPECT_EQ(*flights.run("k", [] { return number(2); }), 2);
}

TEST(ThreadFlightConcurrency, AfterAForgetANewFlightStarts) {
  Flights flights;
  Led old(flights, 1);
  flights.forget("k");
  Led fresh(flights, 2);
  old.go.set_value();
  EXPECT_EQ(*old.leader.get(), 1);
  // The old one's landing has not taken the new one off the table.
  EXPECT_THROW(flights.run("k", [] { return number(3); }, 10ms), TimedOut);
  fresh.go.set_value();
  EXPECT_EQ(*fresh.leader.get(), 2);
}

TEST(ThreadFlightConcurrency, AfterAForgetOfAllNewFlightsStart) {
  Flights flights;
  Led old(flights, 1);
  flights.forget_all();
  EXPECT_EQ(*flights.run("k", [] { return number(2); }), 2);
  old.go.set_value();
  EXPECT_EQ(*old.leader.get(), 1);
}

// Threads, failures and forgets at random: every wait ends, with a value of its key or a load's error.
TEST(ThreadFlightConcurrency, EveryWaitEndsWhateverHappens) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  ThreadFlight<int, std::shared_ptr<const int>> flights;
  std::atomic<int> values{0}, errors{0}, overtime{0}, wrong{0};
  constexpr int kThreads = 6, kCalls = 2000;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Random random(seed + t);
      for (int i = 0; i < kCalls; ++i) {
        const int key = static_cast<int>(random.below(3));
        if (random.chance(0.1)) flights.forget(key);
        const bool fails = random.chance(0.2);
        const auto time = std::chrono::microseconds(random.below(200));
        const auto load = [&] {
          std::this_thread::sleep_for(time);
          if (fails) throw Unavailable("no");
          return number(key);
        };
        try {
          if (*flights.run(key, load, std::chrono::milliseconds(random.chance(0.1) ? 0 : 60'000)) != key)
            ++wrong;
          ++values;
        } catch (const TimedOut&) {
          ++overtime;
        } catch (const Unavailable&) {
          ++errors;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(values + errors + overtime, kThreads * kCalls);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(values, 0);
  EXPECT_GT(errors, 0);
  EXPECT_GT(overtime, 0);
}

}  // namespace
}  // namespace weir::cache

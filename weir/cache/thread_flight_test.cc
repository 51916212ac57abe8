#include "weir/cache/thread_flight.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

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
  led.go.set_value();
  EXPECT_EQ(*led.leader.get(), 7);
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

}  // namespace
}  // namespace weir::cache

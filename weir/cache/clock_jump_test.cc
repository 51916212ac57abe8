// Clocks that jump: a wall clock that is set does nothing to a TTL, and not even a steady clock that goes back, as
// that of a machine moved elsewhere may, loses an entry that comes later or keeps one for ever.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "weir/base/random.h"
#include "weir/cache/read_through_fixture.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

// Each look at the wall clock shows another year; the steady clock is where it was put.
class JumpingClock final : public Clock {
 public:
  WallTime now() const override {
    const auto years = static_cast<int>((looks_.fetch_add(1) * 7919) % 60) - 30;
    return WallTime(std::chrono::seconds(1'700'000'000)) + std::chrono::hours(24 * 365) * years;
  }
  SteadyTime steady_now() const override { return SteadyTime(at_.load()); }
  void put(std::chrono::nanoseconds at) { at_ = at; }
  void advance(std::chrono::nanoseconds by) { at_ = at_.load() + by; }

 private:
  mutable std::atomic<std::uint64_t> looks_{0};
  std::atomic<std::chrono::nanoseconds> at_{std::chrono::hours(1)};
};

TEST(ClockJump, AWallClockThatIsSetDoesNothingToALocalCache) {
  JumpingClock clock;
  LocalCache<int, std::string> cache({.clock = &clock});
  for (int round = 0; round < 100; ++round) {
    cache.put(round, text("value"), 1, 10s, 5s);
    EXPECT_FALSE(cache.look(round).stale);
    clock.advance(5s);
    EXPECT_TRUE(cache.look(round).refresh);
    clock.advance(4999ms);
    EXPECT_TRUE(cache.find(round));
    clock.advance(1ms);
    EXPECT_FALSE(cache.find(round));
  }
}

TEST(ClockJump, NorToAGuardedRead) {
  JumpingClock clock;
  boost::asio::io_context io;
  TextStore store;
  store.rows = {{1, "one"}};
  TextCache cache({.name = "jump", .ttl = 10s, .jitter = 0, .negative_ttl = 2s, .clock = &clock},
                  store.load(), io.get_executor());
  const auto get = [&](int key) {
    auto read = start_on(io.get_executor(), cache.get(key));
    return finish(io, read);
  };
  for (int round = 1; round <= 20; ++round) {
    store.loads = 0;
    EXPECT_EQ(*get(1), "one");
    EXPECT_FALSE(get(2));
    clock.advance(1999ms);
    EXPECT_TRUE(cache.find(2));
    clock.advance(1ms);
    EXPECT_FALSE(cache.find(2));
    clock.advance(7999ms);
    EXPECT_TRUE(cache.find(1));
    clock.advance(1ms);
    EXPECT_FALSE(cache.find(1));
    EXPECT_EQ(store.loads, 2);
  }
}

TEST(ClockJump, WhatIsPutAfterASteadyClockWentBackIsSeenAndDies) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  JumpingClock clock;
  LocalCache<std::uint64_t, std::string> cache({.capacity = 100'000, .clock = &clock});
  for (int round = 0; round < 5'000; ++round) {
    clock.put(std::chrono::milliseconds(random.below(3'600'000)));
    const std::uint64_t key = random.below(200);
    const auto ttl = std::chrono::milliseconds(1 + random.below(60'000));
    ASSERT_TRUE(cache.put(key, text("value"), 100, ttl));
    ASSERT_TRUE(cache.find(key));
    clock.advance(ttl - 1ns);
    ASSERT_TRUE(cache.find(key));
    clock.advance(1ns);
    ASSERT_FALSE(cache.find(key));
    ASSERT_LE(cache.weight(), cache.capacity());
  }
}

// A time to live that no clock can hold ends where the clock's numbers end: not before it began.
TEST(ClockJump, ATtlBeyondTheClocksEndIsNoShortOne) {
  for (const std::chrono::nanoseconds at :
       {0ns, std::chrono::nanoseconds(1ns), std::chrono::nanoseconds::max() / 2}) {
    JumpingClock clock;
    clock.put(at);
    LocalCache<int, std::string> cache({.clock = &clock});
    EXPECT_TRUE(cache.put(1, text("value"), 1, kNever - 1ns, kNever - 2ns));
    EXPECT_TRUE(cache.put(2, text("value"), 1, 1us));
    EXPECT_TRUE(cache.find(1));
    EXPECT_TRUE(cache.find(2));
    clock.advance(1us);
    EXPECT_FALSE(cache.find(2));
    clock.advance(24h * 365);
    EXPECT_TRUE(cache.find(1));
    EXPECT_FALSE(cache.look(1).stale);
  }
}

}  // namespace
}  // namespace weir::cache

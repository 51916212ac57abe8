#include "weir/cache/memory_remote.h"

#include "weir/base/fault.h"
#include "weir/cache/remote_level_fixture.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;
using Hit = RemoteLevel::Hit;
using Lease = RemoteLevel::Lease;
using Held = RemoteLevel::Held;

struct InMemory {
  std::shared_ptr<RemoteLevel> make(ContractOptions options) {
    return level = std::make_shared<MemoryRemote>(
               MemoryRemoteOptions{.ttl = options.ttl,
                                   .lease_ttl = options.lease_ttl,
                                   .max_value_bytes = options.max_value_bytes});
  }
  void plant_foreign(const std::string& key) { level->plant_foreign(key); }
  std::shared_ptr<MemoryRemote> level;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, RemoteLevelContract, InMemory);

struct MemoryRemoteTest : testing::Test {
  // What doesn't need time to pass.
  template <class T>
  T run(boost::asio::awaitable<T> work) {
    auto future = start_on(io.get_executor(), std::move(work));
    turn(io);
    if (!is_ready(future)) throw std::logic_error("it waits");
    return future.get();
  }
  bool put(const std::string& key, const std::string& value) {
    return run(level.fill(key, run(level.take_over(key)), value));
  }
  SimulatedTime time;
  boost::asio::io_context io;
  MemoryRemote level{{.ttl = 100ms,
                      .negative_ttl = 10ms,
                      .jitter = 0,
                      .lease_ttl = 50ms,
                      .timeout = 30ms,
                      .max_keys = 3,
                      .seed = 1,
                      .clock = &time,
                      .pause = time.pause()}};
};

TEST_F(MemoryRemoteTest, TtlsAndLeasesEndByTheClock) {
  put("a", "1");
  run(level.fill_absent("b", run(level.take_over("b"))));
  time.advance(9ms);
  EXPECT_EQ(run(level.get("a"))->left, 91ms);
  EXPECT_TRUE(run(level.get("b")));
  time.advance(1ms);
  EXPECT_FALSE(run(level.get("b")));
  time.advance(90ms);
  EXPECT_FALSE(run(level.get("a")));
  const auto lease = std::get<Lease>(run(level.get_or_wait("a", 0ms)));
  EXPECT_EQ(std::get<Held>(run(level.get_or_wait("a", 0ms))).left, 50ms);
  auto waiting = start_on(io.get_executor(), level.get_or_wait("a", 80ms));
  turn(io);
  time.advance(50ms);
  turn(io);
  EXPECT_TRUE(std::holds_alternative<Lease>(waiting.get()));
  EXPECT_FALSE(run(level.fill("a", lease, "late")));
}

TEST_F(MemoryRemoteTest, WhatRefusesDoesNothing) {
  put("a", "1");
  level.set_trouble({.refuses = true});
  EXPECT_THROW(run(level.get("a")), Unavailable);
  EXPECT_THROW(run(level.remove("a")), Unavailable);
  level.set_trouble({});
  EXPECT_TRUE(run(level.get("a")));
}

TEST_F(MemoryRemoteTest, WhatLosesItsRepliesHasDoneIt) {
  put("a", "1");
  level.set_trouble({.loses_replies = true});
  EXPECT_THROW(run(level.remove("a")), Unavailable);
  level.set_trouble({});
  EXPECT_FALSE(run(level.get("a")));
}

TEST_F(MemoryRemoteTest, WhatHangsCostsTheTimeOutOrGoesOn) {
  put("a", "1");
  level.set_trouble({.hangs = true});
  auto lost = start_on(io.get_executor(), level.get("a"));
  turn(io);
  time.advance(29ms);
  turn(io);
  EXPECT_FALSE(is_ready(lost));
  auto lucky = start_on(io.get_executor(), level.get("a"));
  turn(io);
  time.advance(1ms);
  turn(io);
  EXPECT_THROW(lost.get(), TimedOut);
  level.set_trouble({});
  turn(io);
  EXPECT_EQ(lucky.get()->value, "1");
}

TEST_F(MemoryRemoteTest, LatencyComesBeforeTheDeed) {
  put("a", "1");
  level.set_trouble({.latency = 5ms});
  auto slow = start_on(io.get_executor(), level.get("a"));
  turn(io);
  level.evict_value("a");
  time.advance(5ms);
  turn(io);
  EXPECT_FALSE(slow.get());
}

TEST_F(MemoryRemoteTest, KeysAreBoundedAndDeadOnesMakeRoom) {
  put("a", "1");
  put("b", "1");
  put("c", "1");
  EXPECT_THROW(put("d", "1"), Unavailable);
  EXPECT_TRUE(put("a", "2"));
  time.advance(100ms);
  EXPECT_TRUE(put("d", "1"));
}

// What only looks, or forgets, needs no room and takes none.
TEST_F(MemoryRemoteTest, OnlyWhatMustInsertIsRefusedByAFullLevel) {
  const auto look_and_forget = [&](const std::string& key) {
    EXPECT_FALSE(run(level.get(key)));
    EXPECT_FALSE(run(level.peek(key)).hit);
    EXPECT_FALSE(run(level.fill(key, {"9"}, "1")));
    run(level.release(key, {"9"}));
    run(level.remove(key));
    EXPECT_FALSE(run(level.remove(key, Lease{"9"})));
    level.evict_value(key);
    level.evict_lease(key);
  };
  look_and_forget("x");
  put("a", "1");
  put("b", "1");
  put("c", "1");
  look_and_forget("d");
  EXPECT_THROW(run(level.lease("d")), Unavailable);
  EXPECT_THROW(run(level.take_over("d")), Unavailable);
  EXPECT_THROW(run(level.get_or_wait("d", 0ms)), Unavailable);
  run(level.remove("a"));
  EXPECT_THROW(run(level.get_or_lease_many({"a", "d", "e"})), Unavailable);
  EXPECT_TRUE(run(level.lease("a")));  // that granted none
  EXPECT_EQ(run(level.get("b"))->value, "1");
}

TEST_F(MemoryRemoteTest, AccidentsForgetToTheSafeSide) {
  const Lease lease = run(level.take_over("a"));
  level.evict_lease("a");
  EXPECT_FALSE(run(level.fill("a", lease, "x")));
  put("a", "1");
  const auto refresh = run(level.lease("a"));
  level.flush();
  EXPECT_FALSE(run(level.get("a")));
  EXPECT_FALSE(run(level.fill("a", *refresh, "x")));
  level.plant("a", "somebody's");
  EXPECT_EQ(run(level.get("a"))->value, "somebody's");
}

}  // namespace
}  // namespace weir::cache

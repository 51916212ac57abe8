// Refreshes in the background: soft TTL, early refresh (XFetch), and whose turn it is among nodes.
#include <gtest/gtest.h>

#include "weir/cache/read_through_nodes_fixture.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct ReadThroughRefresh : ReadThroughNodes {
  TextCache::Options soft_options() {
    auto given = options();
    given.ttl = 1min;
    given.soft_ttl = 10s;
    return given;
  }
  void SetUp() override {
    ReadThroughNodes::SetUp();
    make(soft_options());
  }
  // What a reader gets at once; a refresh that this starts is done when it returns.
  std::string find(std::size_t i, int key) {
    const auto found = node(i).find(key);
    turn(io_);
    return found ? found->value ? **found : "absent" : "unknown";
  }
  double refreshes(const std::string& outcome) {
    return metric("weir_cache_refreshes_total", "outcome", outcome);
  }
};

TEST_F(ReadThroughRefresh, OneNodeRefreshesAndTheOtherTakesItFromThere) {
  get(0, 1);
  get(1, 1);
  store_.rows[1] = "new";
  pass(10s);
  EXPECT_EQ(find(0, 1), "one");
  EXPECT_EQ(find(0, 1), "new");
  EXPECT_EQ(find(1, 1), "one");
  EXPECT_EQ(find(1, 1), "new");
  EXPECT_EQ(store_.loads, 2);
  EXPECT_EQ(refreshes("ok"), 1);
  EXPECT_EQ(refreshes("adopted"), 1);
}

TEST_F(ReadThroughRefresh, TheAgeCountsFromTheLoadNotFromTheLevel) {
  get(0, 1);
  pass(8s);
  get(1, 1);
  pass(2s);
  store_.rows[1] = "new";
  EXPECT_EQ(find(1, 1), "one");
  EXPECT_EQ(find(1, 1), "new");
}

TEST_F(ReadThroughRefresh, NobodyRefreshesWhileAnotherNodeDoes) {
  get(0, 1);
  get(1, 1);
  pass(10s);
  store_.hold_loads();
  EXPECT_EQ(find(0, 1), "one");
  EXPECT_EQ(find(1, 1), "one");
  EXPECT_EQ(store_.loads, 2);
  EXPECT_EQ(refreshes("skipped"), 1);
  store_.let_go();
  turn(io_);
}

// A fault that others shipped: a loader that throws once, and the entry is never refreshed again.
TEST_F(ReadThroughRefresh, ALoaderThatThrowsOnceIsAskedAgain) {
  get(0, 1);
  pass(10s);
  store_.failing = true;
  EXPECT_EQ(find(0, 1), "one");
  EXPECT_EQ(find(0, 1), "one");
  EXPECT_EQ(store_.loads, 2);
  EXPECT_EQ(refreshes("error"), 1);
  store_.failing = false;
  store_.rows[1] = "new";
  pass(10s);  // load_timeout: when the next one is asked
  EXPECT_EQ(find(0, 1), "one");
  EXPECT_EQ(find(0, 1), "new");
}

TEST_F(ReadThroughRefresh, AWriteDuringARefreshIsNotUndone) {
  get(0, 1);
  pass(10s);
  store_.hold_loads();
  EXPECT_EQ(find(0, 1), "one");
  store_.rows[1] = "new";
  now(node(1).invalidate_all({1}));
  store_.let_go();
  turn(io_);
  EXPECT_EQ(find(0, 1), "one");  // as it was: the refresh was refused, and the TTL goes on
  EXPECT_FALSE(level_knows(1));
  EXPECT_EQ(*get(1, 1), "new");
}

TEST_F(ReadThroughRefresh, ReadersWhoJoinARefreshThatGivesWayAreServed) {
  get(0, 1);
  get(1, 1);
  pass(10s);
  store_.hold_loads();
  find(0, 1);  // node 0 refreshes, slowly
  level_->set_trouble({.latency = 1s});
  find(1, 1);  // node 1 would, and is told that node 0 does, after its entry has ended
  time_.advance(50s);
  auto reader = start(1, 1);
  level_->set_trouble({});
  store_.let_go();
  turn(io_);
  for (int i = 0; i < 20 && !is_ready(reader); ++i) pass(500ms);
  ASSERT_TRUE(is_ready(reader));
  EXPECT_EQ(*reader.get(), "one");
}

TEST_F(ReadThroughRefresh, WithoutTheLevelRefreshesUseOnlyWhatReadersLeave) {
  auto given = soft_options();
  given.remote.bulkhead_loads = 1;
  make(given, 1);
  get(0, 1);
  get(0, 2);
  pass(10s);
  level_->set_trouble({.refuses = true});
  store_.hold_loads();
  auto reader = start(0, 3);     // has the only place
  EXPECT_EQ(find(0, 1), "one");  // so this one isn't refreshed, and nobody waits
  EXPECT_EQ(store_.loads, 3);
  EXPECT_EQ(refreshes("skipped"), 1);
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*reader.get(), "three");
  store_.rows[2] = "new";
  EXPECT_EQ(find(0, 2), "two");
  EXPECT_EQ(find(0, 2), "new");
}

TEST_F(ReadThroughRefresh, AProtectedStoreSeesNoRefreshes) {
  auto given = soft_options();
  given.remote.on_error = OnRemoteError::protect;
  make(given);
  get(0, 1);
  pass(10s);
  level_->set_trouble({.refuses = true});
  EXPECT_EQ(find(0, 1), "one");
  EXPECT_EQ(find(0, 1), "one");
  EXPECT_EQ(store_.loads, 1);
}

// Faults that others shipped.

TEST_F(ReadThroughRefresh, AJitterOfZeroIsJustNone) {
  auto given = soft_options();  // whose jitter is 0
  given.early_refresh = 1;
  make(given);
  get(0, 1);
  pass(10s - 1ns);
  EXPECT_FALSE(node(0).find(1) == std::nullopt);
  EXPECT_EQ(refreshes("ok"), 0);
  pass(1ns);
  find(0, 1);
  EXPECT_EQ(refreshes("ok"), 1);
}

TEST_F(ReadThroughRefresh, AComputedTtlOfNothingIsNeitherForEverNorDeadOnArrival) {
  for (const Millis ttl : {0ms, -5'000ms}) {
    make(soft_options());
    EXPECT_EQ(*now(node(0).get(1, ttl)), "one");
    EXPECT_TRUE(node(0).find(1));
    EXPECT_TRUE(level_knows(1));
    pass(1ms);
    EXPECT_FALSE(node(0).find(1));
    EXPECT_FALSE(level_knows(1));
  }
}

TEST_F(ReadThroughRefresh, AFillAfterTheExpiryIsVisible) {
  get(0, 1);
  pass(1min);
  EXPECT_FALSE(node(0).find(1));
  EXPECT_TRUE(node(0).fill(1, node(0).lease(1), text("set")));
  EXPECT_EQ(**node(0).find(1), "set");
}

// XFetch.

TEST(EarlyRefresh, IsOffWithoutABetaAndNeverEndsAnEntry) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  EXPECT_EQ(early_refresh(1min, 1s, 0, random), kNever);
  EXPECT_EQ(early_refresh(1min, 1s, -1, random), kNever);
  EXPECT_EQ(early_refresh(1min, 0s, 1, random), kNever);
  EXPECT_EQ(early_refresh(kNever, 1s, 1, random), kNever);
  for (int i = 0; i < 1000; ++i) {
    const Duration after = early_refresh(1s, 10s, 1e6, random);  // a load longer than the TTL
    EXPECT_EQ(after, 1ms);
  }
}

// The time before the expiry is exponential with the mean took * beta.
TEST(EarlyRefresh, IsDistributedAsInThePaper) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (const double beta : {1.0, 3.0}) {
    constexpr int kDraws = 20'000;
    double sum = 0;
    int in_time = 0;
    for (int i = 0; i < kDraws; ++i) {
      const Duration early = 1h - early_refresh(1h, 1s, beta, random);
      EXPECT_GE(early, 0ns);
      sum += std::chrono::duration<double>(early).count();
      in_time += early >= 1s ? 1 : 0;  // its load has ended by the expiry
    }
    EXPECT_NEAR(sum / kDraws, beta, beta * 0.05);
    EXPECT_NEAR(static_cast<double>(in_time) / kDraws, std::exp(-1 / beta), 0.03);
  }
}

TEST_F(ReadThroughRefresh, AnEntryThatIsSlowToLoadIsRefreshedBeforeItsEnd) {
  auto given = options();
  given.ttl = 1min;
  given.early_refresh = 1;
  make(given, 1);
  int early = 0;
  for (int key = 100; key < 200; ++key) {
    store_.rows[key] = "row";
    store_.hold_loads();
    auto read = start(0, key);
    time_.advance(4s);  // the load takes this
    store_.let_go();
    turn(io_);
    EXPECT_EQ(*read.get(), "row");
    const int loads = store_.loads;
    pass(56s);
    EXPECT_EQ(find(0, key),
              "row");  // alive in any case, and refreshed in about every third (1 - exp(-1) aren't)
    early += store_.loads - loads;
  }
  EXPECT_GT(early, 10);
  EXPECT_LT(early, 70);
}

TEST_F(ReadThroughRefresh, AnotherNodeKnowsWhatTheLoadTook) {
  auto given = options();
  given.early_refresh = 1e9;  // so that what took any time is due at once
  make(given);
  store_.hold_loads();
  auto read = start(0, 1);
  time_.advance(1s);
  store_.let_go();
  turn(io_);
  read.get();
  EXPECT_EQ(*get(1, 1), "one");
  pass(1ms);
  EXPECT_TRUE(now(node(1).explain(1)).local == Explanation::Local::stale);
}

}  // namespace
}  // namespace weir::cache

// The guarded read over a level that nodes share: what it is for, and what happens when it fails.
#include <gtest/gtest.h>

#include "weir/cache/read_through_nodes_fixture.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

TEST_F(ReadThroughNodes, OneNodeLoadsForAll) {
  EXPECT_EQ(*get(0, 1), "one");
  EXPECT_EQ(*get(1, 1), "one");
  EXPECT_FALSE(get(0, 9));
  EXPECT_FALSE(get(1, 9));
  EXPECT_EQ(store_.loads, 2);
  EXPECT_TRUE(node(1).find(1));
  ASSERT_TRUE(node(1).find(9));
  EXPECT_FALSE(*node(1).find(9));
}

TEST_F(ReadThroughNodes, WhoComesWhileAnotherNodeLoadsWaitsForIt) {
  store_.hold_loads();
  std::vector<std::future<TextCache::Found>> readers;
  for (std::size_t i = 0; i < 20; ++i) readers.push_back(start(i % 2, 1));
  pass(1s);
  EXPECT_EQ(store_.loads, 1);
  store_.let_go();
  turn(io_);
  for (auto& reader : readers) {
    ASSERT_TRUE(is_ready(reader));
    EXPECT_EQ(*reader.get(), "one");
  }
  EXPECT_EQ(store_.loads, 1);
}

TEST_F(ReadThroughNodes, NothingIsKeptHereForLongerThanThere) {
  auto given = options();
  given.ttl = 1h;
  make(given);
  now(node(0).get(1, 10min));
  pass(9min);
  get(1, 1);
  EXPECT_TRUE(node(1).find(1));
  pass(1min);
  EXPECT_FALSE(node(1).find(1));
}

TEST_F(ReadThroughNodes, TheCachesOwnTtlBoundsTheAgeOnAllNodes) {
  auto given = options();  // a minute; the level would keep it for ten
  given.negative_ttl = 2s;
  make(given);
  get(0, 1);
  get(0, 9);
  pass(2s);
  EXPECT_FALSE(level_knows(9));
  pass(38s);
  EXPECT_EQ(*get(1, 1), "one");
  pass(20s - 1ms);
  EXPECT_TRUE(node(1).find(1));
  pass(1ms);
  EXPECT_FALSE(node(1).find(1));
  EXPECT_FALSE(level_knows(1));
}

TEST_F(ReadThroughNodes, AnAdoptedValuesAgeCountsAgainstItsTtlHere) {
  now(node(0).get(1, 10min));
  now(node(0).get(2, 10min));
  pass(30s);
  EXPECT_EQ(*get(1, 1), "one");                 // of the minute that it would have had, half is over
  EXPECT_EQ(*now(node(1).get(2, 20s)), "two");  // it is too old for that: served, and not kept
  EXPECT_FALSE(node(1).find(2));
  EXPECT_EQ(*now(node(1).get(2, 40s)), "two");
  pass(10s - 1ms);
  EXPECT_TRUE(node(1).find(2));
  pass(1ms);
  EXPECT_FALSE(node(1).find(2));
  EXPECT_TRUE(node(1).find(1));
  pass(20s);
  EXPECT_FALSE(node(1).find(1));
}

TEST_F(ReadThroughNodes, AnAbsenceFromElsewhereIsKeptOnlyIfTheFilterVouchesForIt) {
  get(0, 8);
  get(0, 9);
  auto given = options();
  given.membership = [](const int& key) -> boost::asio::awaitable<Membership> {
    co_return key == 9 ? Membership::fresh : Membership::unknown;
  };
  make(given);
  EXPECT_FALSE(get(0, 8));
  EXPECT_FALSE(get(0, 9));
  EXPECT_EQ(store_.loads, 2);  // the level knew both
  EXPECT_TRUE(node(0).find(8));
  EXPECT_FALSE(node(0).find(9));
}

TEST_F(ReadThroughNodes, PatienceEndsBeforeTheLoadsTime) {
  store_.hold_loads();
  auto first = start(0, 1);
  auto second = start(1, 1);
  pass(5s);
  EXPECT_EQ(store_.loads, 2);
  EXPECT_EQ(metric("weir_cache_unleased_loads_total"), 1);
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*second.get(), "one");
  EXPECT_EQ(*first.get(), "one");
  EXPECT_TRUE(node(1).find(1));
}

TEST_F(ReadThroughNodes, ALoadThatThrowsGivesItsTurnToAnotherNode) {
  store_.hold_loads();
  store_.failing = true;
  auto first = start(0, 1);
  auto second = start(1, 1);
  store_.failing = false;
  store_.let_go();
  turn(io_);
  EXPECT_THROW(first.get(), Unavailable);
  ASSERT_TRUE(is_ready(second));
  EXPECT_EQ(*second.get(), "one");
  EXPECT_EQ(store_.loads, 2);
}

TEST_F(ReadThroughNodes, WithoutTheLeaseEachNodeLoadsAtOnceAndNothingStaleComesIn) {
  auto given = options();
  given.remote.lease = false;
  make(given);
  store_.hold_loads();
  auto first = start(0, 1), second = start(1, 1);
  EXPECT_EQ(store_.loads, 2);
  store_.rows[1] = "new";
  now(node(0).invalidate_all({1}));
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*first.get(), "one");
  EXPECT_EQ(*second.get(), "one");
  EXPECT_FALSE(level_knows(1));
  EXPECT_EQ(*get(0, 1), "new");
}

// A lease that runs out under its load would let another node load beside it.
TEST_F(ReadThroughNodes, OptionsThatCannotWorkAreRefused) {
  auto short_lease = options();
  short_lease.load_timeout = 10'001ms;
  EXPECT_THROW(make(short_lease), std::invalid_argument);
  auto no_codec = options();
  no_codec.remote.codec = {};
  EXPECT_THROW(make(no_codec), std::invalid_argument);
  auto no_time = options();
  no_time.remote.patience = 10s;
  EXPECT_THROW(make(no_time), std::invalid_argument);
}

// Codecs, and bytes that are nobody's.

TEST_F(ReadThroughNodes, DamagedAndForeignValuesAreMissesAndAreReplaced) {
  for (const std::string& bytes :
       {std::string(), std::string("{\"foreign\": true}"), seal(name(), "2", "of another key", {}),
        seal("other", "1", "of another cache", {}), seal(name(), "1", "cut short", {}).substr(0, 30)}) {
    make(options());
    level_->plant("1", bytes);
    const int before = store_.loads;
    EXPECT_EQ(*get(0, 1), "one");
    EXPECT_EQ(*get(1, 1), "one");
    EXPECT_EQ(store_.loads, before + 1) << bytes;
  }
  EXPECT_EQ(metric("weir_cache_codec_failures_total", "operation", "decode"), 5);
}

// A codec is the user's own, and so is what it throws.
TEST_F(ReadThroughNodes, ACodecMayThrowWhateverItLikes) {
  auto given = options();
  given.remote.codec.encode = [](const std::string&) -> std::string { throw 7; };
  make(given);
  EXPECT_EQ(*get(0, 1), "one");
  EXPECT_EQ(now(node(0).get_all(std::vector{2, 3})).size(), 2U);
  EXPECT_EQ(metric("weir_cache_codec_failures_total", "operation", "encode"), 3);
  EXPECT_TRUE(node(0).find(1));
  make(options());
  get(0, 1);
  given = options();
  given.remote.codec.decode = [](std::string_view) -> std::optional<std::string> { throw 7; };
  make(given);
  const auto sight = now(node(1).explain(1));
  EXPECT_EQ(sight.remote, Explanation::Remote::damaged);
  EXPECT_EQ(*get(1, 1), "one");
  EXPECT_EQ(metric("weir_cache_codec_failures_total", "operation", "decode"), 1);
  const double logged =
      series("weir_swallowed_errors_total{where=\"what the remote level has of " + name() + "\"}");
  EXPECT_EQ(logged, 1);
  given.remote.codec.key = [](const int&) -> std::string { throw 7; };
  make(given);
  EXPECT_EQ(*get(0, 2), "two");
  auto write = now(node(0).begin_write(2));
  EXPECT_FALSE(now(write.invalidate()));
  EXPECT_FALSE(now(node(0).invalidate_all({2, 3})));
  EXPECT_EQ(now(node(0).explain(2)).then, Explanation::Then::load_alone);
  EXPECT_GE(metric("weir_cache_codec_failures_total", "operation", "key"), 4);
}

// One key of many that the level can't use: the others go on, and nobody takes the level for a dead one.
TEST_F(ReadThroughNodes, AKeyOfAnotherTypeIsLoadedByEachNodeAndLeavesTheOthersAlone) {
  level_->plant_foreign("1");
  for (int times = 0; times < 3; ++times) {
    make(options());
    EXPECT_EQ(*get(0, 1), "one");
    EXPECT_EQ(*get(1, 1), "one");
    EXPECT_EQ(metric("weir_cache_remote_away"), 0);
  }
  EXPECT_EQ(store_.loads, 6);
  EXPECT_EQ(metric("weir_cache_remote_skipped_total"), 0);
  EXPECT_EQ(metric("weir_cache_remote_fallbacks_total", "answer", "bulkhead"), 0);
  EXPECT_EQ(metric("weir_cache_codec_failures_total", "operation", "key"), 6);
  EXPECT_EQ(*get(0, 2), "two");
  EXPECT_EQ(*get(1, 2), "two");
  EXPECT_EQ(store_.loads, 7);  // shared as ever
  make(options());
  const auto told = now(node(0).explain(1));
  EXPECT_EQ(told.remote, Explanation::Remote::unusable);
  EXPECT_EQ(told.then, Explanation::Then::load_alone);
  EXPECT_NE(to_string(told).find("remote: of no use for this key: what is under the key 1"),
            std::string::npos);
  // A write's drop mends it.
  {
    auto write = now(node(0).begin_write(1));
    EXPECT_TRUE(now(write.invalidate()));
  }
  turn(io_);
  get(0, 1);
  EXPECT_TRUE(level_knows(1));
}

TEST_F(ReadThroughNodes, AKeyOfAnotherTypeSpoilsNoBulk) {
  auto given = options();
  given.bulk_load = store_.bulk_load();
  given.soft_ttl = 10s;
  make(given);
  level_->plant_foreign("2");
  const auto all = now(node(0).get_all(std::vector{1, 2, 3}));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(*all[1], "two");
  EXPECT_EQ(store_.bulk_loads, 1);
  EXPECT_TRUE(level_knows(1) && level_knows(3));
  EXPECT_TRUE(node(0).find(2));  // here, at least
  EXPECT_EQ(metric("weir_cache_remote_away"), 0);
  // A refresh finds no lease there, and has the new value for itself.
  store_.rows[2] = "new";
  pass(10s);
  node(0).find(2);
  turn(io_);
  EXPECT_EQ(**node(0).find(2), "new");
  EXPECT_EQ(metric("weir_cache_remote_away"), 0);
  EXPECT_TRUE(now(node(0).invalidate_all({1, 2, 3})));
  get(1, 2);
  EXPECT_TRUE(level_knows(2));
}

TEST_F(ReadThroughNodes, ACodecThatThrowsOrRefusesFailsNoRead) {
  auto given = options();
  given.remote.codec.encode = [](const std::string&) -> std::string { throw std::runtime_error("no"); };
  make(given);
  EXPECT_EQ(*get(0, 1), "one");
  EXPECT_EQ(*get(1, 1), "one");
  EXPECT_EQ(store_.loads, 2);  // the lease was given back, so the second didn't wait
  EXPECT_TRUE(node(0).find(1));
  EXPECT_EQ(metric("weir_cache_codec_failures_total", "operation", "encode"), 2);
  for (const bool throws : {true, false}) {
    given = options();
    given.remote.codec.decode = [throws](std::string_view) -> std::optional<std::string> {
      if (throws) throw std::runtime_error("no");
      return std::nullopt;
    };
    make(given);
    EXPECT_EQ(*get(0, 2), "two");
    EXPECT_EQ(*get(1, 2), "two");
  }
  given.remote.codec.key = [](const int&) -> std::string { throw std::runtime_error("no"); };
  make(given);
  EXPECT_EQ(*get(0, 3), "three");
  given.remote.codec.key = [](const int&) { return std::string(); };
  make(given);
  EXPECT_EQ(*get(0, 3), "three");
  EXPECT_GE(metric("weir_cache_codec_failures_total", "operation", "key"), 2);
  EXPECT_EQ(metric("weir_cache_remote_fallbacks_total", "answer", "bulkhead"), 0);  // it isn't away
}

TEST_F(ReadThroughNodes, HeavyValuesStayOnTheirNode) {
  auto given = options();
  given.max_entry_weight = std::size_t{4} << 20;
  make(given);
  store_.rows[1] = std::string(std::size_t{2} << 20, 'x');
  EXPECT_TRUE(get(0, 1));
  EXPECT_TRUE(node(0).find(1));
  EXPECT_FALSE(level_knows(1));
  EXPECT_TRUE(get(1, 1));  // at once: the lease was given back
  EXPECT_EQ(store_.loads, 2);
}

// A level that fails.

TEST_F(ReadThroughNodes, TheBulkheadBoundsTheLoads) {
  auto given = options();
  given.remote.bulkhead_loads = 2;
  given.remote.bulkhead_waiting = 3;
  given.remote.bulkhead_wait = 500ms;
  make(given, 1);
  level_->set_trouble({.refuses = true});
  store_.hold_loads();
  std::vector<std::future<TextCache::Found>> readers;
  for (int key = 0; key < 7; ++key) readers.push_back(start(0, key));
  EXPECT_EQ(store_.loads, 2);
  EXPECT_EQ(metric("weir_cache_bulkhead_loads"), 2);
  EXPECT_EQ(metric("weir_cache_bulkhead_waiting"), 3);
  EXPECT_THROW(readers[5].get(), Unavailable);  // the queue is full: refused at once
  EXPECT_THROW(readers[6].get(), Unavailable);
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*readers[1].get(), "one");
  EXPECT_EQ(*readers[2].get(), "two");
  for (std::size_t key : {0U, 4U}) EXPECT_FALSE(readers[key].get());
  EXPECT_EQ(*get(0, 1), "one");
  EXPECT_EQ(metric("weir_cache_bulkhead_refused_total"), 2);
  EXPECT_EQ(metric("weir_cache_remote_fallbacks_total", "answer", "bulkhead"), 7);
}

TEST_F(ReadThroughNodes, WhoFindsNoPlaceInTimeIsRefused) {
  auto given = options();
  given.remote.bulkhead_loads = 1;
  given.remote.bulkhead_wait = 500ms;
  make(given);
  level_->set_trouble({.refuses = true});
  store_.hold_loads();
  auto inside = start(0, 1), outside = start(0, 2);
  pass(499ms);
  EXPECT_FALSE(is_ready(outside));
  pass(1ms);
  EXPECT_THROW(outside.get(), Unavailable);
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*inside.get(), "one");
  EXPECT_EQ(*get(0, 2), "two");
}

TEST_F(ReadThroughNodes, AvailabilityLoadsWhateverItCosts) {
  auto given = options();
  given.remote.on_error = OnRemoteError::availability;
  make(given);
  level_->set_trouble({.refuses = true});
  store_.hold_loads();
  std::vector<std::future<TextCache::Found>> readers;
  for (int key = 0; key < 100; ++key) readers.push_back(start(0, key));
  EXPECT_EQ(store_.loads, 100);
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*readers[1].get(), "one");
  EXPECT_EQ(metric("weir_cache_remote_fallbacks_total", "answer", "availability"), 100);
}

TEST_F(ReadThroughNodes, ProtectFailsFastAndServesWhatIsKnown) {
  auto given = options();
  given.remote.on_error = OnRemoteError::protect;
  make(given);
  get(0, 1);
  level_->set_trouble({.refuses = true});
  EXPECT_EQ(*get(0, 1), "one");
  EXPECT_THROW(get(0, 2), Unavailable);
  EXPECT_THROW(get(0, 2), Unavailable);
  EXPECT_EQ(store_.loads, 1);
  EXPECT_EQ(metric("weir_cache_remote_fallbacks_total", "answer", "protect"), 2);
  EXPECT_EQ(metric("weir_cache_loads_total", "outcome", "error"), 0);  // the store has done nothing
}

TEST_F(ReadThroughNodes, AFailureIsNoAbsenceAndIsNotKept) {
  level_->set_trouble({.refuses = true});
  store_.failing = true;
  EXPECT_THROW(get(0, 1), Unavailable);
  EXPECT_FALSE(node(0).find(1));
  store_.failing = false;
  EXPECT_EQ(*get(0, 1), "one");
}

TEST_F(ReadThroughNodes, ALevelThatHangsCostsOneTimeOutNowAndThen) {
  make(options(), 1);
  level_->set_trouble({.hangs = true});
  auto first = start(0, 1);
  EXPECT_FALSE(is_ready(first));
  pass(250ms);
  EXPECT_EQ(*first.get(), "one");
  const auto calls = level_->calls();
  for (int key = 10; key < 30; ++key) get(0, key);  // none of them waits
  EXPECT_EQ(level_->calls(), calls);
  EXPECT_EQ(metric("weir_cache_remote_skipped_total"), 20);
  EXPECT_EQ(metric("weir_cache_remote_away"), 1);
  pass(100ms);
  auto probe = start(0, 40);
  EXPECT_FALSE(is_ready(probe));
  EXPECT_FALSE(get(0, 41));  // beside it the others go on
  level_->set_trouble({});
  turn(io_);
  EXPECT_FALSE(probe.get());
  get(0, 2);
  EXPECT_TRUE(level_knows(2));
  EXPECT_EQ(metric("weir_cache_remote_away"), 0);
}

TEST_F(ReadThroughNodes, AFillWhoseReplyIsLostIsRight) {
  store_.hold_loads();
  auto read = start(0, 1);
  level_->set_trouble({.loses_replies = true});
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*read.get(), "one");
  level_->set_trouble({});
  EXPECT_EQ(*get(1, 1), "one");
  EXPECT_EQ(store_.loads, 1);
}

TEST_F(ReadThroughNodes, ALoadThatTimesOutEndsEveryWaitAndGivesItsLeaseBack) {
  auto given = options();
  given.load_timeout = 20ms;
  given.remote.patience = 10ms;
  make(given);
  store_.hold_loads();
  auto read = start(0, 1);
  EXPECT_THROW(finish(io_, read), TimedOut);
  turn(io_);
  store_.hold = nullptr;
  EXPECT_EQ(*get(1, 1), "one");  // no time has passed for the lease to run out
}

TEST_F(ReadThroughNodes, EveryMetricIsThereFromTheStart) {
  for (const char* line :
       {"remote_skipped_total", "bulkhead_refused_total", "unleased_loads_total", "batches_total",
        "batched_keys_total", "remote_away", "bulkhead_loads", "bulkhead_waiting"})
    EXPECT_EQ(metric(std::string("weir_cache_") + line), 0) << line;
  for (const char* answer : {"availability", "protect", "bulkhead"})
    EXPECT_EQ(metric("weir_cache_remote_fallbacks_total", "answer", answer), 0);
  for (const char* outcome : {"ok", "error", "adopted", "skipped"})
    EXPECT_EQ(metric("weir_cache_refreshes_total", "outcome", outcome), 0);
  for (const char* outcome : {"ok", "error"})
    EXPECT_EQ(metric("weir_cache_remote_drops_total", "outcome", outcome), 0);
  for (const char* operation : {"key", "encode", "decode"})
    EXPECT_EQ(metric("weir_cache_codec_failures_total", "operation", operation), 0);
}

}  // namespace
}  // namespace weir::cache

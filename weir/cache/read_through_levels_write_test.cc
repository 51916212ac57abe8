// Writes at both levels: begin_write, the store's commit, invalidate, publish.
#include <gtest/gtest.h>

#include <bit>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "weir/cache/read_through_nodes_fixture.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Write = TextCache::Write;

struct ReadThroughLevelsWrite : ReadThroughNodes {
  // A whole write on a node, publishing ahead or not.
  void write(std::size_t i, int key, const std::string& value, bool publish) {
    auto writing = now(node(i).begin_write(key));
    store_.rows[key] = value;
    EXPECT_TRUE(now(writing.invalidate()));
    if (publish) EXPECT_TRUE(now(writing.publish(text(value))));
  }
};

TEST_F(ReadThroughLevelsWrite, AWriteIsSeenHereAndThere) {
  get(0, 1);
  write(0, 1, "new", false);
  EXPECT_EQ(*get(0, 1), "new");
  EXPECT_EQ(*get(1, 1), "new");
  EXPECT_EQ(metric("weir_cache_remote_drops_total", "outcome", "ok"), 1);
}

TEST_F(ReadThroughLevelsWrite, PublishingAheadSparesTheLoad) {
  write(0, 1, "new", true);
  EXPECT_EQ(**node(0).find(1), "new");
  EXPECT_EQ(*get(1, 1), "new");
  EXPECT_EQ(store_.loads, 0);
  auto removing = now(node(0).begin_write(1));
  store_.rows.erase(1);
  now(removing.invalidate());
  EXPECT_TRUE(now(removing.publish(nullptr, 1h)));
  node(1).invalidate(1);  // it is told
  EXPECT_FALSE(get(1, 1));
  EXPECT_EQ(store_.loads, 0);
}

TEST_F(ReadThroughLevelsWrite, AWriteThatChangedNothingLeavesWhatIsCached) {
  get(0, 1);
  {
    auto writing = now(node(0).begin_write(1));
    writing.abandon();
    EXPECT_THROW(now(writing.invalidate()), std::logic_error);
    EXPECT_THROW(now(writing.publish(text("never"))), std::logic_error);
  }
  turn(io_);
  EXPECT_TRUE(level_knows(1));
  EXPECT_TRUE(node(0).find(1));
  EXPECT_EQ(metric("weir_cache_remote_drops_total", "outcome", "ok"), 0);
  // The lease was given back: who loads next needn't wait for its end.
  node(0).invalidate(1);
  now(level_->remove("1"));
  EXPECT_EQ(*get(1, 1), "one");
  EXPECT_EQ(store_.loads, 2);
  EXPECT_THROW(Write().abandon(), std::logic_error);
}

TEST_F(ReadThroughLevelsWrite, AbandoningAfterTheDropChangesNothing) {
  get(0, 1);
  auto writing = now(node(0).begin_write(1));
  store_.rows[1] = "new";
  EXPECT_TRUE(now(writing.invalidate()));
  writing.abandon();
  EXPECT_TRUE(now(writing.publish(text("new"))));
  EXPECT_EQ(*get(1, 1), "new");
}

TEST_F(ReadThroughLevelsWrite, ADropThatFailedIsMadeUpBeforeTheKeyIsReadAgain) {
  get(0, 1);
  level_->set_trouble({.refuses = true});
  store_.rows[1] = "new";
  EXPECT_FALSE(now(node(0).invalidate_all({1})));
  EXPECT_EQ(*get(0, 1), "new");  // from the store
  level_->set_trouble({});
  pass(10s);  // the level is asked again
  node(0).invalidate(1);
  EXPECT_EQ(*get(0, 1), "new");  // and not what stood there
  EXPECT_EQ(*get(1, 1), "new");
}

TEST_F(ReadThroughLevelsWrite, ADropThatGetsThroughMakesUpTheOthers) {
  get(0, 1), get(0, 2);
  level_->set_trouble({.refuses = true});
  store_.rows[1] = "new";
  EXPECT_FALSE(now(node(0).invalidate_all({1})));
  level_->set_trouble({});
  EXPECT_TRUE(level_knows(1));
  EXPECT_TRUE(now(node(0).invalidate_all({2})));
  EXPECT_FALSE(level_knows(1));
}

TEST_F(ReadThroughLevelsWrite, BulkReadsMakeUpForDropsToo) {
  get(0, 1), get(0, 2);
  level_->set_trouble({.refuses = true});
  store_.rows[1] = "new";
  now(node(0).invalidate_all({1}));
  level_->set_trouble({});
  pass(10s);
  node(0).clear();
  const std::vector<int> keys{1, 2};
  const auto found = now(node(0).get_all(keys));
  EXPECT_EQ(*found[0], "new");
  EXPECT_EQ(*found[1], "two");
}

TEST(OwedDrops, AreBoundedAndADebtMadeAnewStands) {
  ManualClock clock;
  OwedDrops owed(clock, 1h);
  owed.add({"a", "b"});
  const auto first = owed.among({"a", "c"});
  ASSERT_EQ(first.size(), 1u);
  owed.add({"a"});
  owed.paid(first);
  EXPECT_EQ(owed.among({"a"}).size(), 1u);
  owed.paid(owed.all());
  EXPECT_FALSE(owed.any());
  std::vector<std::string> many;
  for (std::size_t i = 0; i <= OwedDrops::kMost; ++i) many.push_back(std::to_string(i));
  owed.add(many);
  EXPECT_EQ(owed.size(), 0u);
  EXPECT_EQ(owed.among({"whatever"}).size(), 1u);
  owed.paid(owed.among({"whatever"}));
  EXPECT_EQ(owed.among({"whatever"}).size(), 1u);  // nobody knows what is owed
  clock.advance(2h);
  EXPECT_TRUE(owed.among({"whatever"}).empty());
  EXPECT_FALSE(owed.any());
}

TEST_F(ReadThroughLevelsWrite, AnAbsenceCachedAtBothLevelsDoesNotOutliveTheCreation) {
  EXPECT_FALSE(get(0, 9));
  EXPECT_TRUE(level_knows(9));
  write(0, 9, "nine", false);
  EXPECT_EQ(*get(0, 9), "nine");
  EXPECT_EQ(*get(1, 9), "nine");
}

TEST_F(ReadThroughLevelsWrite, AnInvalidationDuringALoadOnAnotherNodeKeepsTheOldValueOutOfBothLevels) {
  store_.hold_loads();
  auto early = start(1, 1);
  write(0, 1, "new", false);
  store_.let_go();
  turn(io_);
  EXPECT_EQ(*early.get(), "one");  // it asked before the write
  EXPECT_FALSE(level_knows(1));
  EXPECT_FALSE(node(1).find(1));  // nor where nobody has called invalidate
  EXPECT_EQ(*get(1, 1), "new");
}

TEST_F(ReadThroughLevelsWrite, AReadThatTookTheOldValueFromTheLevelBeforeTheDropDoesNotKeepItHere) {
  get(1, 1);  // the level has it
  level_->set_trouble({.latency = 5ms});
  auto write = start_on(io_.get_executor(), node(0).begin_write(1));
  turn(io_);
  pass(5ms);
  auto writing = write.get();
  store_.rows[1] = "new";
  auto early = start(0, 1);
  auto dropped = start_on(io_.get_executor(), writing.invalidate());
  turn(io_);
  pass(5ms);
  EXPECT_EQ(*early.get(), "one");
  EXPECT_TRUE(dropped.get());
  EXPECT_FALSE(node(0).find(1));
}

TEST_F(ReadThroughLevelsWrite, WhatTheLevelRefusesIsNotKeptHereEither) {
  auto first = now(node(0).begin_write(1));
  store_.rows[1] = "first";
  EXPECT_TRUE(now(first.invalidate()));
  write(1, 1, "second", false);  // node 0 hears nothing of it
  EXPECT_FALSE(now(first.publish(text("first"))));
  EXPECT_FALSE(node(0).find(1));
  EXPECT_EQ(*get(0, 1), "second");
}

TEST_F(ReadThroughLevelsWrite, WithoutTheLevelsLeaseNothingIsPublished) {
  level_->set_trouble({.refuses = true});
  auto first = now(node(0).begin_write(1));
  level_->set_trouble({});
  pass(10s);  // the level is asked again
  store_.rows[1] = "first";
  EXPECT_TRUE(now(first.invalidate()));
  write(1, 1, "second", true);
  EXPECT_FALSE(now(first.publish(text("first"))));
  EXPECT_EQ(*get(0, 1), "second");
}

// Two writers on two nodes, in every order of their steps. In the end both nodes and the level hold nothing or
// what the store holds.
TEST_F(ReadThroughLevelsWrite, TwoPublishersOnTwoNodesNeverLeaveTheOldValue) {
  for (unsigned order = 0; order < 256; ++order) {
    if (std::popcount(order) != 4) continue;
    level_->flush();
    make(options());
    std::optional<Write> writes[2];
    int step[2] = {0, 0};
    for (int i = 0; i < 8; ++i) {
      const auto who = static_cast<std::size_t>(order >> i & 1U);
      const std::string mine = who == 0 ? "first" : "second";
      switch (step[who]++) {
        case 0:
          writes[who].emplace(now(node(who).begin_write(1)));
          break;
        case 1:
          store_.rows[1] = mine;
          break;
        case 2:
          now(writes[who]->invalidate());
          break;
        default:
          now(writes[who]->publish(text(mine)));
      }
    }
    const std::string stored = store_.rows[1];
    if (const auto hit = now(level_->get("1")))
      EXPECT_EQ(unseal(name(), "1", *hit->value)->value, stored) << order;
    node(0).invalidate(1);  // what a node tells another
    node(1).invalidate(1);
    EXPECT_EQ(*get(0, 1), stored) << order;
    EXPECT_EQ(*get(1, 1), stored) << order;
  }
}

TEST_F(ReadThroughLevelsWrite, IfTheLevelCannotBeToldTheWriteStandsAndTheTtlBoundsTheDamage) {
  get(0, 1);
  auto writing = now(node(0).begin_write(1));
  store_.rows[1] = "new";
  level_->set_trouble({.refuses = true});
  EXPECT_FALSE(now(writing.invalidate()));
  EXPECT_FALSE(node(0).find(1));
  EXPECT_EQ(metric("weir_cache_remote_drops_total", "outcome", "error"), 1);
  EXPECT_TRUE(now(writing.publish(text("new"))));  // here at least
  EXPECT_EQ(*get(0, 1), "new");
  level_->set_trouble({});
  pass(100ms);
  EXPECT_EQ(*get(1, 1), "one");  // the damage ...
  pass(10min);
  EXPECT_EQ(*get(1, 1), "new");  // ... and its end
}

TEST_F(ReadThroughLevelsWrite, PublishingMendsWhatAFailedDropHasLeft) {
  get(0, 1);
  auto writing = now(node(0).begin_write(1));
  store_.rows[1] = "new";
  level_->set_trouble({.refuses = true});
  EXPECT_FALSE(now(writing.invalidate()));
  level_->set_trouble({});
  pass(100ms);
  get(0, 2);  // finds out that the level is back
  EXPECT_TRUE(now(writing.publish(text("new"))));
  EXPECT_EQ(*get(1, 1), "new");
}

TEST_F(ReadThroughLevelsWrite, ADropIsTriedAlthoughTheLevelIsKnownToFail) {
  get(0, 1);
  level_->set_trouble({.refuses = true});
  get(0, 2);  // opens the breaker
  level_->set_trouble({});
  auto writing = now(node(0).begin_write(1));  // takes no remote lease: nobody asks now
  store_.rows[1] = "new";
  EXPECT_TRUE(now(writing.invalidate()));
  EXPECT_FALSE(level_knows(1));
}

TEST_F(ReadThroughLevelsWrite, WhoIsCancelledAfterTheCommitHasDroppedAllTheSame) {
  get(0, 1);
  get(1, 1);
  auto writing = now(node(0).begin_write(1));
  store_.rows[1] = "new";
  level_->set_trouble({.latency = 5ms});
  asio::cancellation_signal cancel;
  bool ended = false;
  asio::co_spawn(io_, writing.invalidate(),
                 asio::bind_cancellation_slot(cancel.slot(), [&](const std::exception_ptr& error, bool) {
                   ended = error != nullptr;
                 }));
  turn(io_);
  cancel.emit(asio::cancellation_type::terminal);
  turn(io_);
  EXPECT_TRUE(ended);
  pass(5ms);
  level_->set_trouble({});
  EXPECT_FALSE(node(0).find(1));
  EXPECT_FALSE(level_knows(1));
}

TEST_F(ReadThroughLevelsWrite, AWriteThatIsGivenUpDropsTheKeyToo) {
  get(0, 1);
  {
    auto writing = now(node(0).begin_write(1));
    store_.rows[1] = "new";  // and then the store throws: nobody knows
  }
  turn(io_);
  EXPECT_FALSE(node(0).find(1));
  EXPECT_EQ(*get(1, 1), "new");
}

TEST_F(ReadThroughLevelsWrite, PublishingBeforeInvalidatingIsAMistake) {
  auto writing = now(node(0).begin_write(1));
  EXPECT_THROW(now(writing.publish(text("new"))), std::logic_error);
  EXPECT_TRUE(now(writing.invalidate()));
  EXPECT_TRUE(now(writing.invalidate()));
  EXPECT_TRUE(now(writing.publish(text("new"))));
  EXPECT_FALSE(now(writing.publish(text("again"))));  // once
  EXPECT_EQ(**node(0).find(1), "new");
}

TEST_F(ReadThroughLevelsWrite, ManyAreDroppedAtOnce) {
  for (int key : {1, 2, 3}) get(0, key);
  EXPECT_TRUE(now(node(0).invalidate_all({1, 2})));
  EXPECT_FALSE(node(0).find(1) || node(0).find(2));
  EXPECT_FALSE(level_knows(1) || level_knows(2));
  EXPECT_TRUE(node(0).find(3));
}

TEST_F(ReadThroughLevelsWrite, WithoutALevelTheSameWritesWork) {
  auto given = options();
  given.remote = {};
  make(given, 1);
  get(0, 1);
  write(0, 1, "new", true);
  EXPECT_EQ(**node(0).find(1), "new");
  EXPECT_EQ(store_.loads, 1);
  EXPECT_TRUE(now(node(0).invalidate_all({1})));
  EXPECT_FALSE(node(0).find(1));
}

TEST_F(ReadThroughLevelsWrite, AWriteMayOutliveTheCache) {
  auto writing = now(node(0).begin_write(1));
  nodes_.clear();
  EXPECT_TRUE(now(writing.invalidate()));
}

}  // namespace
}  // namespace weir::cache

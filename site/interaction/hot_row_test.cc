// Many at once at the same row, from two nodes on one store: all make progress, and hardly a write has to be tried again.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "site/interaction/interaction_fixture.h"
#include "weir/sql/crowd_fixture.h"

namespace weir::site::interaction {
namespace {

using sql::kAtOnce;
using sql::kCrowd;

class HotRowsConcurrency : public sql::OnEachStore {
 protected:
  // One of the two nodes.
  struct Node {
    explicit Node(const sql::TestStore& store) : database(store.at({})) {}
    sql::Database database;
    InteractionStore interactions{database};
    CollectionStore collections{database};
    HistoryStore history{database};
  };

  // The part of the crowd's writes that was tried again.
  double repeated(const char* what, const std::function<void(Node&, Id)>& work) {
    return sql::crowd(what, {&nodes[0].database, &nodes[1].database},
                      [&](std::size_t node, Id user) { work(nodes[node], user); });
  }
  Counts counts() { return io.run(nodes[0].interactions.counts(thing)).value(); }

  const Subject thing{"article", 7};
  ManualClock clock;
  IoThreads io;
  Node nodes[2]{Node(*test_store), Node(*test_store)};
};
INSTANTIATE_TEST_SUITE_P(Stores, HotRowsConcurrency, sql::each_store(), sql::name_of_store);

TEST_P(HotRowsConcurrency, LikesOfOneArticle) {
  const auto like = [&](bool liked) {
    return [this, liked](Node& node, Id user) {
      io.run(node.interactions.set_like(user, thing, liked, clock.now()));
    };
  };
  EXPECT_LT(repeated("new likes", like(true)), sql::kFew);
  EXPECT_EQ(counts().likes, kCrowd);
  EXPECT_LT(repeated("repeated likes", like(true)), sql::kFew);
  EXPECT_LT(repeated("likes taken back", like(false)), sql::kFew);
  EXPECT_EQ(counts().likes, 0);
  EXPECT_LT(repeated("likes given again", like(true)), sql::kFew);
  EXPECT_LT(repeated("likes that never were",
                     [this](Node& node, Id user) {
                       io.run(node.interactions.set_like(1'000 + user, thing, false, clock.now()));
                     }),
            sql::kFew);
  EXPECT_EQ(counts().likes, kCrowd);
}

TEST_P(HotRowsConcurrency, TheSamePersonsOwnRows) {
  repeated("one person's likes", [this](Node& node, Id user) {
    io.run(node.interactions.set_like(1, thing, user % 3 != 0, clock.now()));
  });
  const auto mine = io.run(nodes[0].interactions.mine(1, thing));
  EXPECT_EQ(counts().likes, mine.liked ? 1 : 0);
  repeated("one person's folder", [this](Node& node, Id user) {
    if (user % 3 != 0)
      io.run(node.collections.collect(1, thing, std::nullopt, clock.now()));
    else
      io.run(node.collections.uncollect(1, thing, std::nullopt));
  });
  EXPECT_EQ(counts().collects, io.run(nodes[0].interactions.mine(1, thing)).collected ? 1 : 0);
  const auto folders = io.run(nodes[0].collections.folders(1, {}, clock.now())).items;
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_EQ(folders[0].item_count, counts().collects);
}

TEST_P(HotRowsConcurrency, FirstCollectionsOfOneArticle) {
  EXPECT_LT(repeated("first collections",
                     [this](Node& node, Id user) {
                       io.run(node.collections.collect(user, thing, std::nullopt, clock.now()));
                     }),
            sql::kFew);
  EXPECT_EQ(counts().collects, kCrowd);
  EXPECT_LT(repeated("collections taken back",
                     [this](Node& node, Id user) {
                       io.run(node.collections.uncollect(user, thing, std::nullopt));
                     }),
            sql::kFew);
  EXPECT_EQ(counts().collects, 0);
}

TEST_P(HotRowsConcurrency, ReadsBesideLikes) {
  const idempotency::Inbox counting({.consumer = std::string(kCountGroup), .clock = &clock}),
      remembering({.consumer = std::string(kHistoryGroup), .clock = &clock});
  EXPECT_LT(repeated("reads beside likes",
                     [&](Node& node, Id user) {
                       const auto producer = static_cast<std::uint64_t>(user % kAtOnce + 1);
                       if (producer <= kAtOnce / 2) {
                         io.run(node.interactions.set_like(user, thing, true, clock.now()));
                         return;
                       }
                       Delivery batch(producer * 1'000 + static_cast<std::uint64_t>(user));
                       for (Id article = 1; article <= 20; ++article)
                         batch.read("article:" + std::to_string(article), user, clock.now());
                       node.interactions.count_reads_now(counting, batch.messages());
                       node.history.record_now(remembering, batch.messages());
                     }),
            sql::kFew);
  EXPECT_EQ(counts().reads, kCrowd / 2);
  EXPECT_EQ(counts().likes, kCrowd / 2);
}

// Both nodes think that the partition is theirs, and get the same events.
TEST_P(HotRowsConcurrency, OneLaneOnTwoNodes) {
  const idempotency::Inbox counting({.consumer = std::string(kCountGroup), .clock = &clock});
  repeated("one lane on two nodes", [&](Node& node, Id user) {
    Delivery batch;
    for (Id i = 0; i <= user / 2; ++i) batch.read("article:7", 0, clock.now());
    node.interactions.count_reads_now(counting, batch.messages());
  });
  EXPECT_EQ(counts().reads, kCrowd / 2 + 1);
}

}  // namespace
}  // namespace weir::site::interaction

// Reads: how they are counted and remembered, by batches as a queue delivers them and through the embedded
// queue.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "site/interaction/history_consumer.h"
#include "site/interaction/interaction_consumer.h"
#include "site/interaction/interaction_fixture.h"
#include "weir/base/fault.h"
#include "weir/sql/transaction.h"
#include "weir/testing/metrics.h"

namespace weir::site::interaction {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<Id>;

idempotency::Inbox inbox_of(std::string_view group, const Clock& clock) {
  return idempotency::Inbox({.consumer = std::string(group), .clock = &clock});
}

class Reads : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, Reads, sql::each_store(), sql::name_of_store);
class History : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, History, sql::each_store(), sql::name_of_store);
class ReadsConcurrency : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, ReadsConcurrency, sql::each_store(), sql::name_of_store);

TEST_P(Reads, ABatchIsCountedOnceHoweverOftenItComes) {
  Module m(*test_store);
  const auto inbox = inbox_of(kCountGroup, m.clock);
  EXPECT_EQ(m.counts(7).reads, 0);
  Delivery batch;
  batch.read("article:7", 0, m.clock.now())
      .read("article:7", 1, m.clock.now())
      .read("article:8", 0, m.clock.now());
  m.service.count_reads_now(inbox, batch.messages());
  m.service.count_reads_now(inbox, batch.messages());
  EXPECT_EQ(m.service.find("article", 7).value().reads, 2) << "what is cached is written through";
  EXPECT_EQ(m.counts(8).reads, 1);
}

TEST_P(Reads, TheSameEventIdCountsOnceForOneThing) {
  Module m(*test_store);
  const auto inbox = inbox_of(kCountGroup, m.clock);
  Delivery first(1), second(2);
  first.read("article:7", 0, m.clock.now(), "a").read("article:8", 0, m.clock.now(), "a");
  second.read("article:7", 0, m.clock.now(), "a").read("article:7", 0, m.clock.now(), "b");
  m.service.count_reads_now(inbox, first.messages());
  m.service.count_reads_now(inbox, second.messages());
  EXPECT_EQ(m.counts(7).reads, 2);
  EXPECT_EQ(m.counts(8).reads, 1);
}

TEST_P(Reads, ReadsAndLikesDontOverwriteEachOther) {
  Module m(*test_store);
  const auto inbox = inbox_of(kCountGroup, m.clock);
  m.counts(7);
  m.like(1, 7);
  m.service.count_reads_now(inbox, Delivery().read("article:7", 0, m.clock.now()).messages());
  m.like(2, 7);
  const auto counts = m.service.find("article", 7).value();
  EXPECT_EQ(counts.reads, 1);
  EXPECT_EQ(counts.likes, 2);
}

TEST_P(Reads, StatementsOfCountingAreTheConsumers) {
  Module m(*test_store);
  const auto inbox = inbox_of(kCountGroup, m.clock);
  const double before = statements("consumer", "counts_of"),
               requests = statements("interaction", "counts_of");
  m.service.count_reads_now(inbox, Delivery().read("article:7", 0, m.clock.now()).messages());
  EXPECT_EQ(statements("consumer", "counts_of") - before, 1);
  EXPECT_EQ(statements("interaction", "counts_of"), requests);
}

TEST_P(Reads, AMessageThatNamesNothingIsRefusedAsAWhole) {
  Module m(*test_store);
  const auto counting = inbox_of(kCountGroup, m.clock), remembering = inbox_of(kHistoryGroup, m.clock);
  Delivery batch;
  batch.read("article:7", 1, m.clock.now()).read("nonsense", 1, m.clock.now());
  EXPECT_THROW(m.service.count_reads_now(counting, batch.messages()), Unusable);
  EXPECT_THROW(m.service.record_history_now(remembering, batch.messages()), Unusable);
  EXPECT_EQ(m.counts(7).reads, 0);
  EXPECT_TRUE(m.read_history(1).empty());
}

TEST_P(History, HasEachThingOnceWithTheLastTime) {
  Module m(*test_store);
  const auto inbox = inbox_of(kHistoryGroup, m.clock);
  const WallTime t = m.clock.now();
  Delivery first(1);
  first.read("article:7", 1, t).read("article:8", 1, t + 1s).read("article:9", 2, t).read("article:5", 0, t);
  m.service.record_history_now(inbox, first.messages());
  EXPECT_EQ(m.read_history(1), Ids({8, 7}));
  EXPECT_EQ(m.read_history(2), Ids({9}));
  EXPECT_TRUE(m.read_history(3).empty());
  Delivery second(2);
  second.read("article:7", 1, t + 9s).read("article:7", 1, t + 5s).read("article:8", 1, t - 9s);
  m.service.record_history_now(inbox, second.messages());
  const auto listing = m.io.run(m.service.history(1, {}));
  ASSERT_EQ(listing.items.size(), 2U);
  EXPECT_EQ(listing.items[0].entry.subject.id, 7);
  EXPECT_EQ(listing.items[0].entry.at, t + 9s);
  EXPECT_EQ(listing.items[0].title, "title 7");
  EXPECT_EQ(listing.items[1].entry.at, t + 1s) << "an older read that comes late changes nothing";
}

TEST_P(History, ListsComeInAllForms) {
  Module m(*test_store);
  const auto inbox = inbox_of(kHistoryGroup, m.clock);
  Delivery batch;
  for (Id article = 1; article <= 10; ++article)
    batch.read("article:" + std::to_string(article), 1, m.clock.now() + article / 3 * 1s);
  m.service.record_history_now(inbox, batch.messages());
  EXPECT_EQ(m.read_history(1, {.limit = 3, .offset = 2}).size(), 3U);
  std::vector<Id> walked;
  EntrySlice slice{.limit = 4, .with_total = true};
  for (;;) {
    const auto listing = m.io.run(m.service.history(1, slice));
    EXPECT_EQ(listing.total, 10);
    for (const auto& item : listing.items) walked.push_back(item.entry.subject.id);
    if (!listing.more) break;
    slice.after = Place{listing.items.back().entry.at, listing.items.back().entry.row};
  }
  EXPECT_EQ(walked, Ids({10, 9, 8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST_P(History, WhatWasForgottenStaysForgotten) {
  Module m(*test_store);
  const auto inbox = inbox_of(kHistoryGroup, m.clock);
  Delivery read(1);
  read.read("article:7", 1, m.clock.now()).read("article:7", 2, m.clock.now());
  m.service.record_history_now(inbox, read.messages());
  Delivery under_way(2);
  under_way.read("article:8", 1, m.clock.now());
  m.clock.advance(1s);
  m.io.run(m.service.clear_history(1));
  m.service.record_history_now(inbox, read.messages());
  EXPECT_TRUE(m.read_history(1).empty()) << "a replay brings nothing back";
  m.service.record_history_now(inbox, under_way.messages());
  EXPECT_TRUE(m.read_history(1).empty()) << "nor does an event that was under way";
  EXPECT_EQ(m.read_history(2), Ids({7})) << "somebody else's stays";
  m.clock.advance(1s);
  m.service.record_history_now(inbox, Delivery(3).read("article:9", 1, m.clock.now()).messages());
  EXPECT_EQ(m.read_history(1), Ids({9}));
}

TEST_P(History, ALongOneIsForgottenInSteps) {
  Module m(*test_store);
  const auto inbox = inbox_of(kHistoryGroup, m.clock);
  Delivery batch;
  for (Id article = 1; article <= 2 * HistoryStore::kClearedAtOnce + 1; ++article)
    batch.read("article:" + std::to_string(article), 1, m.clock.now());
  m.service.record_history_now(inbox, batch.messages());
  const double steps = statements("interaction", "clear_history");
  m.io.run(m.service.clear_history(1));
  EXPECT_EQ(statements("interaction", "clear_history") - steps, 3);
  EXPECT_TRUE(m.read_history(1).empty());
}

// Waits for what other threads do.
bool soon(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

TEST_P(ReadsConcurrency, FlowFromTheJournalToBothGroups) {
  Module m(*test_store);
  InteractionConsumer counting(m.service, m.queue, 168h, m.clock);
  HistoryConsumer remembering(m.service, m.queue, 168h, m.clock);
  counting.start();
  remembering.start();
  constexpr int kReads = 300;
  for (int i = 0; i < kReads; ++i) EXPECT_TRUE(m.service.record_read("article", 1 + i % 3, i % 2));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(m.io.run(m.service.publish_read({"article", 9}, 1, "the same")), Outcome::done);
  EXPECT_TRUE(soon([&] {
    return m.counts(1).reads + m.counts(2).reads + m.counts(3).reads == kReads && m.counts(9).reads == 1;
  }));
  EXPECT_TRUE(soon([&] { return m.read_history(1).size() == 4; }));
  m.gone = {9};
  EXPECT_EQ(m.io.run(m.service.publish_read({"article", 9}, 1, "")), Outcome::not_found);
  counting.stop();
  remembering.stop();
  EXPECT_EQ(m.counts(1).reads, kReads / 3);
  EXPECT_EQ(m.counts(9).reads, 1);
}

TEST_P(Reads, WithoutAProducerNoneIsRecorded) {
  Module m(*test_store);
  InteractionService command(m.repository, nullptr);
  EXPECT_FALSE(command.record_read("article", 7, 1));
  EXPECT_THROW(m.io.run(command.publish_read({"article", 7}, 1, "")), Unavailable);
}

// Somebody has the row of counts for longer than a lock is waited for: the function runs again, and counts once.
TEST(RunAgainConcurrency, BatchesCountOnce) {
  sql::MariadbStore test_store;
  Module m(test_store);
  m.like(1, 7);
  const auto inbox = inbox_of(kCountGroup, m.clock);
  Delivery batch;
  batch.read("article:7", 1, m.clock.now())
      .read("article:7", 2, m.clock.now(), "a")
      .read("article:8", 1, m.clock.now());
  const std::vector<std::function<void()>> works{
      [&] { m.service.count_reads_now(inbox, batch.messages()); },
      [&] {
        m.interactions.add_reads_now("article", std::vector<std::pair<Id, std::int64_t>>{{7, 10}, {9, 1}});
      },
      [&] {
        m.service.like_many_now("article", std::vector<Like>{{2, 7, m.clock.now()}, {3, 7, m.clock.now()}});
      },
      [&] { m.service.import_likes_now("article", std::vector<ImportedLikes>{{7, 100}}); },
      [&] { m.collect(1, 7); },
  };
  sql::Session other(test_store.connect(sql::detail::Driver::Role::writer));
  auto held = std::make_optional<sql::Transaction>(other);
  other.execute(
      {"test", "hold", "SELECT version FROM interactions WHERE biz = 'article' AND biz_id = 7 FOR UPDATE"});
  std::vector<std::future<void>> running;
  for (const auto& work : works) running.push_back(std::async(std::launch::async, work));
  while (m.database.stats().repeats < 4) std::this_thread::sleep_for(10ms);
  held.reset();
  for (auto& one : running) one.get();
  const auto counts = m.io.run(m.interactions.counts({"article", 7})).value();
  EXPECT_EQ(counts.reads, 12);
  EXPECT_EQ(counts.likes, 103);
  EXPECT_EQ(counts.collects, 1);
  EXPECT_EQ(m.service.recount_now(), 0U);
  m.service.count_reads_now(inbox, batch.messages());
  EXPECT_EQ(m.io.run(m.interactions.counts({"article", 7})).value().reads, 12);
}

}  // namespace
}  // namespace weir::site::interaction

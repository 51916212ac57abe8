#include "weir/idempotency/inbox.h"

#include <gtest/gtest.h>

#include <set>

#include "weir/base/random.h"
#include "weir/sql/store_fixture.h"
#include "weir/telemetry/metrics.h"

namespace weir::idempotency {
namespace {

using queue::Message;
using namespace std::chrono_literals;

const sql::Query kRows{"test", "rows", "SELECT count(*) FROM inbox"};
const sql::Query kClientRows{"test", "rows", "SELECT count(*) FROM inbox_client"};

class InboxTest : public sql::OnEachStore {
 protected:
  InboxTest() { store_.migrate("idempotency", migrations()); }

  Message message(std::uint64_t sequence, std::uint32_t lane = 0, std::uint64_t producer = 9) {
    Message made;
    made.topic = "t";
    made.key = "article:1";
    made.producer = producer;
    made.lane = lane;
    made.sequence = sequence;
    made.appended_at = clock_.now();
    return made;
  }
  Message with_id(std::uint64_t sequence, std::string_view event_id, std::string_view key = "article:1") {
    Message made = message(sequence);
    made.event_id = event_id;
    made.key = key;
    return made;
  }
  Admission admit(const std::vector<Message>& messages) { return admit_by(inbox_, messages); }
  Admission admit_by(const Inbox& inbox, const std::vector<Message>& messages) {
    return store_.write_now([&](sql::Session& session) { return inbox.admit(session, messages); });
  }
  int count(const sql::Query& query) {
    return store_.read_now(
        [&](sql::Session& session) { return session.one(query, sql::first<int>).value(); });
  }

  using Indices = std::vector<std::size_t>;
  ManualClock clock_;
  sql::Database store_{test_store->at()};
  Inbox inbox_{{.consumer = "interaction", .clock = &clock_}};
};

INSTANTIATE_TEST_SUITE_P(Stores, InboxTest, sql::each_store(), sql::name_of_store);

TEST_P(InboxTest, AdmitsEachMessageOnce) {
  EXPECT_EQ(admit({message(1), message(2), message(2), message(4)}).fresh, (Indices{0, 1, 3}));
  const auto again = admit({message(4), message(3), message(1), message(5)});
  EXPECT_EQ(again.fresh, (Indices{1, 3}));  // 3 is late, not repeated
  EXPECT_EQ(again.duplicates, 2u);
  EXPECT_TRUE(again.too_old.empty());
}

TEST_P(InboxTest, TellsProducersLanesTopicsAndConsumersApart) {
  Message other_topic = message(1);
  other_topic.topic = "u";
  const std::vector<Message> batch{message(1), message(1, 1), message(1, 0, ~std::uint64_t{0}), other_topic};
  EXPECT_EQ(admit(batch).fresh, (Indices{0, 1, 2, 3}));
  EXPECT_EQ(admit(batch).duplicates, 4u);
  const Inbox other({.consumer = "history", .clock = &clock_});
  EXPECT_EQ(admit_by(other, batch).fresh, (Indices{0, 1, 2, 3}));
}

TEST_P(InboxTest, ForgetsNothingOfATransactionThatIsRolledBackAndKeepsNothing) {
  EXPECT_THROW(store_.write_now([&](sql::Session& session) {
    const std::vector<Message> batch{message(1)};
    EXPECT_EQ(inbox_.admit(session, batch).fresh.size(), 1u);
    throw std::runtime_error("the effect failed");
  }),
               std::runtime_error);
  EXPECT_EQ(admit({message(1)}).fresh.size(), 1u);
}

TEST_P(InboxTest, AClientsIdCountsOnceForItsKeyHoweverOftenItIsPublished) {
  // The same id published twice has two sequences; another key or no id is another event.
  const auto first = admit({with_id(1, "a"), with_id(2, "a"), with_id(3, "b"), with_id(4, "a", "article:2")});
  EXPECT_EQ(first.fresh, (Indices{0, 2, 3}));
  EXPECT_EQ(first.duplicates, 1u);
  const auto second = admit({with_id(5, "a"), message(6), with_id(3, "b")});
  EXPECT_EQ(second.fresh, (Indices{1}));
  EXPECT_EQ(count(kClientRows), 3);
  EXPECT_EQ(count(kRows), 1);
}

TEST_P(InboxTest, OfAnotherClientsMessagesOnlyTheirOwnIdsAreRemembered) {
  const auto foreign = [&](std::string_view event_id) {
    Message made = message(0, 0, queue::kNoProducer);
    made.event_id = event_id;
    return made;
  };
  EXPECT_EQ(admit({foreign("a"), foreign(""), foreign("b"), foreign(""), foreign("a")}).fresh,
            (Indices{0, 1, 2, 3}));
  EXPECT_EQ(admit({foreign("a"), foreign(""), foreign("c")}).fresh, (Indices{1, 2}));
  EXPECT_EQ(count(kRows), 0) << "they are of no lane";
  EXPECT_EQ(count(kClientRows), 3);
  const std::vector<Message> old{foreign("a"), foreign(""), foreign("d")};
  clock_.advance(168h + 1s);
  const auto later = admit(old);
  EXPECT_EQ(later.too_old, (Indices{1, 2}));
  EXPECT_EQ(later.duplicates, 1U);
}

TEST_P(InboxTest, IsExactInAnyOrderWithAnyGaps) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::set<std::uint64_t> model;
  for (int round = 0; round < 60; ++round) {
    std::vector<Message> batch;
    Indices expected;
    const std::uint64_t around = random.below(20'000);
    const std::size_t size = random.below(400);
    for (std::size_t i = 0; i < size; ++i) {
      // Far apart at first, so that rows grow too long and continue in others.
      const std::uint64_t sequence =
          random.chance(0.5) ? 2 * random.below(10'000) : around + random.below(500);
      if (model.insert(sequence).second) expected.push_back(i);
      batch.push_back(message(sequence));
    }
    EXPECT_EQ(admit(batch).fresh, expected) << "round " << round;
  }
  EXPECT_GT(count(kRows), 3);
}

TEST_P(InboxTest, OneHugeBatchOfGapsIsSplitIntoRows) {
  std::vector<Message> batch;
  for (std::uint64_t i = 1; i <= 5'000; ++i) batch.push_back(message(i * 2));
  EXPECT_EQ(admit(batch).fresh.size(), 5'000u);
  EXPECT_GE(count(kRows), 5);
  EXPECT_EQ(admit(batch).duplicates, 5'000u);
  for (auto& late : batch) --late.sequence;
  EXPECT_EQ(admit(batch).fresh.size(), 5'000u);
  for (auto& again : batch) ++again.sequence;
  EXPECT_EQ(admit(batch).duplicates, 5'000u);
}

TEST_P(InboxTest, WhatIsOlderThanTheRetentionIsOnlyVouchedForWithARow) {
  admit({message(1)});
  const Message old = message(2), old_of_another = message(1, 3), old_with_id = with_id(3, "x");
  clock_.advance(7 * 24h + 30min);
  EXPECT_FALSE(inbox_.prune_step(store_));
  const auto admission = admit({old, old_of_another, message(1, 4), old_with_id});
  EXPECT_EQ(admission.fresh, (Indices{0, 2}));
  EXPECT_EQ(admission.too_old, (Indices{1, 3}));
  // Neither left a mark: stamped anew they are admitted.
  EXPECT_EQ(admit({message(1, 3), with_id(3, "x")}).fresh, (Indices{0, 1}));
}

TEST_P(InboxTest, RowsGoWhenTheirNewestEventIsPastTheRetentionAndAnHour) {
  admit({message(1), message(1, 1), with_id(2, "x")});
  clock_.advance(24h);
  admit({message(3)});  // lane 0 is younger now
  clock_.advance(6 * 24h + 61min);
  inbox_.prune_step(store_);
  EXPECT_EQ(count(kRows), 1);
  EXPECT_EQ(count(kClientRows), 0);
  EXPECT_EQ(admit({message(1), message(3)}).duplicates, 2u);
  clock_.advance(24h);
  inbox_.prune_step(store_);
  EXPECT_EQ(count(kRows), 0);
}

TEST_P(InboxTest, PrunesInSmallSteps) {
  std::vector<Message> batch;
  for (std::uint32_t lane = 0; lane < Inbox::kPruneRows + 10; ++lane) batch.push_back(message(1, lane));
  admit(batch);
  clock_.advance(8 * 24h);
  EXPECT_TRUE(inbox_.prune_step(store_));
  EXPECT_EQ(count(kRows), 10);
  EXPECT_FALSE(inbox_.prune_step(store_));
  EXPECT_EQ(count(kRows), 0);
}

TEST_P(InboxTest, ProcessRunsTheEffectWithWhatIsFreshAndCountsTheRest) {
  const auto dropped =
      telemetry::counter("weir_duplicates_dropped_total",
                         "Messages that were delivered again and did nothing", {{"consumer", "interaction"}});
  const double before = dropped.value();
  const std::vector<Message> batch{message(1), message(2), message(3)};
  const auto effect = [](sql::Session&, std::span<const Message> fresh) { return fresh.size(); };
  EXPECT_EQ(inbox_.process(store_, std::span(batch).first(2), effect), 2u);
  EXPECT_EQ(inbox_.process(store_, batch, effect), 1u);
  EXPECT_EQ(dropped.value(), before + 2);
  bool called = false;
  inbox_.process(store_, batch, [&](sql::Session&, std::span<const Message>) { called = true; });
  EXPECT_FALSE(called);
  EXPECT_EQ(dropped.value(), before + 5);
}

TEST_P(InboxTest, ProcessAsksForTooOldMessagesToBeParkedBeforeAnyEffect) {
  std::vector<Message> batch{message(1), message(2)};
  clock_.advance(8 * 24h);
  batch.push_back(message(1, 5));
  bool called = false;
  const auto effect = [&](sql::Session&, std::span<const Message>) { called = true; };
  try {
    inbox_.process(store_, batch, effect);
    FAIL();
  } catch (const queue::Park& park) {
    EXPECT_EQ(park.which(), (Indices{0, 1}));
  }
  EXPECT_FALSE(called);
  inbox_.process(store_, std::span(batch).subspan(2), effect);
  EXPECT_TRUE(called);
}

}  // namespace
}  // namespace weir::idempotency

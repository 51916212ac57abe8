#include "weir/counter/counter.h"

#include <gtest/gtest.h>

#include <map>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/sql/store_fixture.h"

namespace weir::counter {
namespace {

using queue::Message;

constexpr sql::Migration kTable[] = {{1, "interactions", R"(
CREATE TABLE interactions (
  biz TEXT NOT NULL,
  biz_id INTEGER NOT NULL,
  read_count INTEGER NOT NULL DEFAULT 0 CHECK (read_count >= 0),
  like_count INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (biz, biz_id)
) WITHOUT ROWID)",
                                      R"(
CREATE TABLE interactions (
  biz VARCHAR(32) NOT NULL,
  biz_id BIGINT NOT NULL,
  read_count BIGINT NOT NULL DEFAULT 0 CHECK (read_count >= 0),
  like_count BIGINT NOT NULL DEFAULT 0,
  version BIGINT NOT NULL DEFAULT 1,
  PRIMARY KEY (biz, biz_id)
))"}};

class CounterTest : public sql::OnEachStore {
 protected:
  CounterTest() {
    store_.migrate("idempotency", idempotency::migrations());
    store_.migrate("interaction", kTable);
  }
  std::vector<Count> add(std::vector<Delta> deltas) {
    return store_.write_now([&](sql::Session& session) { return reads_.add(session, std::move(deltas)); });
  }
  std::map<std::pair<std::string, Id>, std::pair<std::int64_t, std::int64_t>> all() {
    std::map<std::pair<std::string, Id>, std::pair<std::int64_t, std::int64_t>> found;
    store_.read_now([&](sql::Session& session) {
      session.each(sql::Query{"test", "all", "SELECT biz, biz_id, read_count, version FROM interactions"},
                   [&](const sql::Row& row) {
                     found[{row.get<std::string>(0), row.get<Id>(1)}] = {row.get<std::int64_t>(2),
                                                                         row.get<std::int64_t>(3)};
                   });
    });
    return found;
  }

  sql::Database store_{test_store->at()};
  idempotency::Inbox inbox_{{.consumer = "interaction"}};
  Counter reads_{Table{}};
};

TEST(Subject, IsBizAndId) {
  const auto subject = parse_subject("article:42");
  ASSERT_TRUE(subject);
  EXPECT_EQ(subject->biz, "article");
  EXPECT_EQ(subject->biz_id, 42);
  EXPECT_EQ(format_subject("article", 42), "article:42");
  for (const char* bad :
       {"", "article", "article:", ":42", "article:042", "article:-1", "Article:1", "a b:1", "1a:1",
        "article:9223372036854775808", "article:1:2", "abcdefghijklmnopqrstuvwxyzabcdefg:1"})
    EXPECT_FALSE(parse_subject(bad)) << bad;
}

INSTANTIATE_TEST_SUITE_P(Stores, CounterTest, sql::each_store(), sql::name_of_store);

TEST_P(CounterTest, AddsCreatesAndAnswersWithVersions) {
  auto counts = add({{"article", 2, 5}, {"article", 1, 1}, {"article", 2, 2}, {"aaa", 9, 1}});
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[0].biz, "aaa");
  EXPECT_EQ(counts[1].biz_id, 1);
  EXPECT_EQ(counts[2].biz_id, 2);
  EXPECT_EQ(counts[2].count, 7);
  EXPECT_EQ(counts[2].version, 1);
  counts = add({{"article", 2, 3}});
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].count, 10);
  EXPECT_EQ(counts[0].version, 2);
}

TEST_P(CounterTest, NeverGoesBelowZero) {
  add({{"article", 1, 3}});
  auto counts = add({{"article", 1, -2}, {"article", 7, -1}, {"article", 8, 4}, {"article", 9, 0}});
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].count, 1);
  EXPECT_EQ(counts[1].count, 4);
  counts = add({{"article", 1, -5}});
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].count, 0);
  EXPECT_EQ(counts[0].version, 3);
  EXPECT_EQ(all().size(), 2u);
}

TEST_P(CounterTest, AgreesWithAModel) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::map<Id, std::int64_t> model;
  for (int round = 0; round < 30; ++round) {
    std::vector<Delta> deltas;
    const std::size_t size = random.below(700);
    for (std::size_t i = 0; i < size; ++i) {
      const auto id = static_cast<Id>(1 + random.below(500));
      const auto by = static_cast<std::int64_t>(1 + random.below(5));
      model[id] += by;
      deltas.push_back({"article", id, by});
    }
    for (const Count& count : add(std::move(deltas))) EXPECT_EQ(count.count, model[count.biz_id]);
  }
  const auto stored = all();
  ASSERT_EQ(stored.size(), model.size());
  for (const auto& [id, count] : model) EXPECT_EQ(stored.at(std::pair("article", id)).first, count);
}

TEST_P(CounterTest, ABatchCountsOnceHoweverOftenItIsDelivered) {
  std::vector<Message> batch(100);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].topic = "read_events";
    batch[i].key = i % 4 == 0 ? "article:1" : "article:2";
    batch[i].producer = 7;
    batch[i].sequence = i + 1;
    batch[i].appended_at = Clock::system().now();
  }
  EXPECT_EQ(count_batch(store_, inbox_, reads_, std::span(batch).first(60)).size(), 2u);
  EXPECT_EQ(count_batch(store_, inbox_, reads_, batch).size(), 2u);
  EXPECT_TRUE(count_batch(store_, inbox_, reads_, batch).empty());
  EXPECT_EQ(all().at(std::pair("article", 1)).first, 25);
  EXPECT_EQ(all().at(std::pair("article", 2)).first, 75);
}

TEST_P(CounterTest, ABadKeyFailsTheBatchWithoutATrace) {
  std::vector<Message> batch(2);
  batch[0].key = "article:1";
  batch[1].key = "nonsense";
  for (std::size_t i = 0; i < 2; ++i) {
    batch[i].producer = 7;
    batch[i].sequence = i + 1;
    batch[i].appended_at = Clock::system().now();
  }
  EXPECT_THROW(count_batch(store_, inbox_, reads_, batch), Unusable);
  EXPECT_TRUE(all().empty());
  EXPECT_EQ(count_batch(store_, inbox_, reads_, std::span(batch).first(1)).size(), 1u);
}

}  // namespace
}  // namespace weir::counter

// The filter of ids over a real store: which ids it denies, whoever makes the rows and whenever they commit.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "site/article/article_fixture.h"
#include "site/article/article_queries.h"
#include "weir/cache/id_filter.h"
#include "weir/sql/driver.h"
#include "weir/sql/transaction.h"
#include "weir/testing/metrics.h"

namespace weir::site::article {
namespace {

using cache::Membership;
using namespace std::chrono_literals;
using std::chrono::minutes;

constexpr Id kAnn = 1;

class ArticleFilter : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, ArticleFilter, sql::each_store(), sql::name_of_store);

TEST_P(ArticleFilter, DeniesInventedIdsAndNoRealOne) {
  Id draft = 0, published = 0, removed = 0;
  {
    Module module(*test_store);
    draft = module.draft(kAnn);
    published = module.published(kAnn);
    removed = module.draft(kAnn);
    module.io.run(module.service.remove(kAnn, removed));
    published = module.published(kAnn);
  }
  Module module(*test_store);
  module.repository.start();
  while (!module.repository.filter_filled()) std::this_thread::yield();
  EXPECT_GT(statements("filter"), 0);
  EXPECT_NE(module.read(published), nullptr);
  EXPECT_EQ(module.io.run(module.service.own(kAnn, draft)).outcome, Outcome::done);
  const double before = statements("article");
  for (Id id = 1'000'000; id < 1'000'020; ++id) EXPECT_EQ(module.read(id), nullptr);
  EXPECT_EQ(statements("article"), before);
  // What is created from now on is found too.
  const Id later = module.published(kAnn);
  module.clock.advance(minutes(60));
  EXPECT_NE(module.read(later), nullptr);
}

// On MySQL a row has its id before others can see it.

// Makes an article with that id, or with the next one.
Id make(sql::Session& session, std::optional<Id> id = {}) {
  const sql::Query insert{
      "test", "insert",
      "INSERT INTO article_drafts (id, author_id, title, abstract, status, version, updated_at, "
      "content) VALUES (?, 1, 'Title', '', 0, 1, 0, '')"};
  enter_gate(session);
  session.execute(insert, id);
  return id.value_or(session.changes().last_id);
}

// A transaction on another node that has made an article and hasn't committed yet.
class OpenCreation {
 public:
  explicit OpenCreation(const sql::TestStore& store)
      : session_(store.connect(sql::detail::Driver::Role::writer)),
        transaction_(session_),
        id(make(session_)) {}
  void commit() { transaction_.commit(); }

 private:
  sql::Session session_;
  sql::Transaction transaction_;

 public:
  const Id id;
};

class LateArticles : public testing::Test {
 protected:
  LateArticles() { make_one(); }
  ~LateArticles() override { filter.stop(); }

  Id make_one(std::optional<Id> id = {}) {
    return database.write_now([id](sql::Session& session) { return make(session, id); });
  }
  void fill() {
    filter.start();
    ASSERT_TRUE(eventually([&] { return filter.filled(); }));
  }
  // Somebody asks for ids that nobody has made, as somebody always does: the mark follows the looks.
  bool mark_reaches(Id id, std::chrono::milliseconds patience = 10s) {
    return eventually(
        [&] {
          io.run(filter.membership(filter.mark() + 1'000'000'000));
          io.run(filter.membership(id + 1));
          return filter.mark() >= id;
        },
        patience);
  }
  static bool eventually(const std::function<bool()>& check, std::chrono::milliseconds patience = 10s) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!check()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

  sql::MariadbStore test_store;
  sql::Database database{test_store.at({})};
  ArticleStore store{database};
  IoThreads io;
  cache::IdFilter filter{{.name = "test"},
                         {.read_ids = [this](Id after, std::size_t n) { return store.ids_above(after, n); },
                          .highest_id = [this] { return store.highest_id(); },
                          .older_transactions_ended = [this] { return store.creations_ended(); }},
                         io.executor()};
};

TEST_F(LateArticles, WhatAnotherNodeMakesIsFound) {
  fill();
  sql::Database elsewhere(test_store.at({}));
  for (int i = 0; i < 20; ++i) {
    const Id id = elsewhere.write_now([](sql::Session& session) { return make(session); });
    EXPECT_EQ(io.run(filter.membership(id)), Membership::fresh) << "above the mark: looked for";
    EXPECT_EQ(io.run(filter.membership(id + 1)), Membership::absent);
  }
}

TEST_F(LateArticles, ARowThatCommitsAfterAHigherOneIsNeverDenied) {
  fill();
  OpenCreation late(test_store);
  const Id higher = make_one();
  ASSERT_GT(higher, late.id);
  ASSERT_TRUE(mark_reaches(higher));
  EXPECT_EQ(filter.known(late.id), Membership::unknown) << "it may be there any moment";
  late.commit();
  EXPECT_EQ(io.run(filter.membership(late.id)), Membership::unknown);
  EXPECT_TRUE(io.run(store.find_own(late.id)));
}

TEST_F(LateArticles, SoIsOneThatWasOpenWhenTheFilterWasFilled) {
  OpenCreation late(test_store);
  const Id higher = make_one();
  fill();
  EXPECT_GE(filter.mark(), higher);
  EXPECT_EQ(filter.known(late.id), Membership::unknown);
  late.commit();
  EXPECT_EQ(io.run(filter.membership(late.id)), Membership::unknown);
}

TEST_F(LateArticles, AnOpenTransactionHoldsTheMarkBeforeALongGap) {
  fill();
  OpenCreation late(test_store);
  const Id far = make_one(late.id + 20'000);
  EXPECT_FALSE(mark_reaches(late.id, 500ms)) << "what is open may become any of the gap's rows";
  EXPECT_EQ(io.run(filter.membership(late.id)), Membership::fresh);
  EXPECT_EQ(io.run(filter.membership(far)), Membership::fresh) << "meanwhile it is looked for";
  late.commit();
  ASSERT_TRUE(mark_reaches(far));
  EXPECT_EQ(filter.known(late.id), Membership::unknown);
  int denied = 0;
  for (Id id = late.id + 1; id <= late.id + 1'000; ++id)
    denied += filter.known(id) == Membership::absent ? 1 : 0;
  EXPECT_GT(denied, 900) << "nobody can make those any more";
}

TEST_F(LateArticles, WaitingForCreationsEndsWithTheLastThatWasOpen) {
  io.run(store.creations_ended());
  OpenCreation one(test_store);
  auto two = std::make_optional<OpenCreation>(test_store);
  auto ended = io.start(store.creations_ended());
  one.commit();
  EXPECT_EQ(ended.wait_for(200ms), std::future_status::timeout);
  two.reset();  // rolled back
  ended.get();
}

}  // namespace
}  // namespace weir::site::article

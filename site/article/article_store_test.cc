#include "site/article/article_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "site/article/article_fixture.h"
#include "site/article/article_queries.h"
#include "weir/sql/transaction.h"

namespace weir::site::article {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ArticleStoreTest : public sql::OnEachStore {
 protected:
  Module module{*test_store};
};

INSTANTIATE_TEST_SUITE_P(Stores, ArticleStoreTest, sql::each_store(), sql::name_of_store);

// What grows with the data is walked in an index that holds all that is asked.
TEST(ArticlePlans, WalksUseCoveringIndexesOnSqlite) {
  sql::SqliteStore test_store;
  Module module{test_store};
  const auto plan_of = [&](const sql::Query& query, auto... args) {
    return module.database.read_now([&](sql::Session& session) {
      const sql::Query explain{"test", "explain", "EXPLAIN QUERY PLAN " + query.text};
      std::string plan;
      session.each(explain, [&](const sql::Row& row) { plan += row.get<std::string>(3) + "\n"; }, args...);
      return plan;
    });
  };
  const auto places = plan_of(queries::kPlaces, 1, 1, 1, 1, 1);
  EXPECT_THAT(places, HasSubstr("SEARCH article_published USING COVERING INDEX article_published_by_time"));
  EXPECT_THAT(places, Not(HasSubstr("TEMP B-TREE")));
  EXPECT_THAT(plan_of(queries::kNewestFrom, 1, 1),
              HasSubstr("SCAN article_published USING COVERING INDEX article_published_by_time"));
  EXPECT_THAT(plan_of(queries::kOwnFrom, 1, 1, 1),
              HasSubstr("SEARCH article_drafts USING COVERING INDEX article_drafts_by_author"));
  EXPECT_THAT(
      plan_of(queries::kNewestAfter, 1, 1, 1, 1),
      AllOf(HasSubstr("SEARCH p USING INDEX article_published_by_time"), Not(HasSubstr("TEMP B-TREE"))));
  EXPECT_THAT(
      plan_of(queries::kOwnAfter, 1, 1, 1),
      AllOf(HasSubstr("SEARCH d USING INDEX article_drafts_by_author"), Not(HasSubstr("TEMP B-TREE"))));
}

// The same there, over rows enough for the server to care.
TEST(ArticlePlans, WalksUseIndexesOnMariadb) {
  sql::MariadbStore test_store;
  Module module{test_store};
  std::vector<ImportedArticle> articles;
  for (int i = 0; i < 1'000; ++i) articles.push_back({1 + i % 5, "Title", "Words.", from_micros(i), ""});
  for (int i = 0; i < 3; ++i) module.store.insert_published_now(articles);
  const auto plan_of = [&](const sql::Query& query, auto... args) {
    return module.database.read_now([&](sql::Session& session) {
      const sql::Query explain{"test", "explain",
                               "EXPLAIN " + (query.mysql.empty() ? query.text : query.mysql)};
      std::string plan;
      const auto add = [&](const sql::Row& row) {
        for (const int column : {2, 3, 5, 9})  // the table, how, by which index, what else
          plan += row.get<std::optional<std::string>>(column).value_or("-") + ' ';
      };
      session.each(explain, add, args...);
      return plan;
    });
  };
  const auto walks = [](const std::string& plan) {
    return AllOf(HasSubstr(plan), Not(HasSubstr("Using filesort")));
  };
  EXPECT_THAT(plan_of(queries::kPlaces, 500, 500, 1, 1, 100),
              walks("article_published range article_published_by_time Using where; Using index"));
  EXPECT_THAT(plan_of(queries::kNewestFrom, 20, 100),
              HasSubstr("article_published index article_published_by_time Using index"));
  EXPECT_THAT(plan_of(queries::kOwnFrom, 1, 20, 100),
              HasSubstr("article_drafts ref article_drafts_by_author Using where; Using index"));
  EXPECT_THAT(plan_of(queries::kNewestAfter, 500, 500, 1, 20), walks("p range article_published_by_time"));
  EXPECT_THAT(plan_of(queries::kOwnAfter, 1, 100, 20), walks("d range"));
}

TEST_P(ArticleStoreTest, AFailureHalfWayLeavesBothLibrariesAsTheyWere) {
  const Id id = module.published(1, "Before");
  module.io.run(module.service.edit(1, id, "After", "New words."));
  sql::Session(test_store->connect(sql::detail::Driver::Role::migrator))
      .script({"test", "trigger",
               "CREATE TRIGGER stop BEFORE UPDATE ON article_published BEGIN "
               "SELECT RAISE(ABORT, 'stopped'); END;",
               "CREATE TRIGGER stop BEFORE UPDATE ON article_published FOR EACH ROW "
               "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'stopped'"});
  EXPECT_THROW(module.io.run(module.service.publish(1, id)), sql::Error);
  const auto own = module.io.run(module.store.find_own(id));
  EXPECT_EQ(own->version, 3);
  EXPECT_EQ(module.io.run(module.store.find_published(id))->title, "Before");
  EXPECT_EQ(module.published_total(), 1);
}

TEST_P(ArticleStoreTest, IdsAreReadInPages) {
  EXPECT_EQ(module.io.run(module.store.highest_id()), 0);
  const Id one = module.draft(1), two = module.published(1), three = module.draft(2);
  EXPECT_EQ(module.io.run(module.store.highest_id()), three);
  EXPECT_THAT(module.io.run(module.store.ids_above(0, 2)), testing::ElementsAre(one, two));
  EXPECT_THAT(module.io.run(module.store.ids_above(two, 2)), testing::ElementsAre(three));
}

// Somebody has the author's count for longer than a lock is waited for: the function runs again, with all that it had.
TEST(ArticleRunAgainConcurrency, AnInsertIsWhole) {
  sql::MariadbStore test_store;
  Module module{test_store};
  module.draft(1);
  sql::Session other(test_store.connect(sql::detail::Driver::Role::writer));
  auto held = std::make_optional<sql::Transaction>(other);
  other.execute({"test", "hold", "SELECT cnt FROM article_counts WHERE owner = 1 FOR UPDATE"});
  auto made = module.io.start(module.service.create(1, "A title", "Some words."));
  while (module.database.stats().repeats == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  held.reset();
  const OwnArticle article = made.get();
  EXPECT_EQ(article.content, "Some words.");
  const auto kept = module.io.run(module.store.find_own(article.id));
  EXPECT_EQ(kept->title, "A title");
  EXPECT_EQ(kept->content, "Some words.");
  EXPECT_EQ(module.mine(1, {.with_total = true}).total, 2);
  EXPECT_EQ(module.mine(1).items.size(), 2U);
}

}  // namespace
}  // namespace weir::site::article

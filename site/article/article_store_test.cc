#include "site/article/article_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "site/article/article_fixture.h"
#include "site/article/article_queries.h"

namespace weir::site::article {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ArticleStoreTest : public testing::Test {
 protected:
  // How SQLite would run the statement.
  template <class... A>
  std::string plan_of(const sql::Query& query, const A&... args) {
    return module.database.read_now([&](sql::Session& session) {
      const sql::Query explain{"test", "explain", "EXPLAIN QUERY PLAN " + query.text};
      std::string plan;
      session.each(explain, [&](const sql::Row& row) { plan += row.get<std::string>(3) + "\n"; }, args...);
      return plan;
    });
  }

  TempDir directory;
  Module module{directory};
};

// What grows with the data is walked in an index that holds all that is asked.
TEST_F(ArticleStoreTest, WalksUseCoveringIndexes) {
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

TEST_F(ArticleStoreTest, AFailureHalfWayLeavesBothLibrariesAsTheyWere) {
  const Id id = module.published(1, "Before");
  module.io.run(module.service.edit(1, id, "After", "New words."));
  module.database.write_now([](sql::Session& session) {
    session.script({"test", "trigger",
                    "CREATE TRIGGER stop BEFORE UPDATE ON article_published BEGIN "
                    "SELECT RAISE(ABORT, 'stopped'); END;"});
  });
  EXPECT_THROW(module.io.run(module.service.publish(1, id)), sql::Error);
  const auto own = module.io.run(module.store.find_own(id));
  EXPECT_EQ(own->version, 3);
  EXPECT_EQ(module.io.run(module.store.find_published(id))->title, "Before");
  EXPECT_EQ(module.published_total(), 1);
}

TEST_F(ArticleStoreTest, IdsAreReadInPages) {
  EXPECT_EQ(module.io.run(module.store.highest_id()), 0);
  const Id one = module.draft(1), two = module.published(1), three = module.draft(2);
  EXPECT_EQ(module.io.run(module.store.highest_id()), three);
  EXPECT_THAT(module.io.run(module.store.ids_above(0, 2)), testing::ElementsAre(one, two));
  EXPECT_THAT(module.io.run(module.store.ids_above(two, 2)), testing::ElementsAre(three));
}

}  // namespace
}  // namespace weir::site::article

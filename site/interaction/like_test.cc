// Likes, their counts and the cache of counts, through the service over a real store.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <vector>

#include "site/interaction/interaction_fixture.h"
#include "weir/base/random.h"
#include "weir/testing/metrics.h"

namespace weir::site::interaction {
namespace {

class Likes : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, Likes, sql::each_store(), sql::name_of_store);
class LikeCounts : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, LikeCounts, sql::each_store(), sql::name_of_store);
class Recount : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, Recount, sql::each_store(), sql::name_of_store);
class LikesConcurrency : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, LikesConcurrency, sql::each_store(), sql::name_of_store);

TEST_P(Likes, DoingItTwiceIsDoingItOnce) {
  Module m(*test_store);
  EXPECT_EQ(m.like(1, 7), Outcome::done);
  EXPECT_EQ(m.like(1, 7), Outcome::done);
  EXPECT_EQ(m.counts(7).likes, 1);
  EXPECT_EQ(m.like(2, 7), Outcome::done);
  EXPECT_EQ(m.counts(7).likes, 2);
  EXPECT_EQ(m.unlike(1, 7), Outcome::done);
  EXPECT_EQ(m.unlike(1, 7), Outcome::done);
  EXPECT_EQ(m.counts(7).likes, 1);
  EXPECT_FALSE(m.mine(1, 7).liked);
  EXPECT_TRUE(m.mine(2, 7).liked);
}

TEST_P(Likes, TakingBackWhatNeverWasChangesNothing) {
  Module m(*test_store);
  EXPECT_EQ(m.unlike(1, 7), Outcome::done);
  EXPECT_EQ(m.counts(7), Counts{});
}

TEST_P(Likes, OnesOwnNextReadShowsIt) {
  Module m(*test_store);
  // Zeros that are cached before the first like must not hide it.
  EXPECT_EQ(m.counts(7), Counts{});
  for (Id user = 1; user <= 20; ++user) {
    m.like(user, 7);
    EXPECT_EQ(m.counts(7).likes, user);
    EXPECT_EQ(m.service.find("article", 7).value().likes, user) << "from memory too";
  }
}

TEST_P(Likes, ThingsOfOtherKindsDontMix) {
  Module m(*test_store);
  m.like(1, 7);
  m.io.run(m.service.like(1, {"course", 7}));
  m.io.run(m.service.like(2, {"course", 7}));
  EXPECT_EQ(m.counts(7).likes, 1);
  EXPECT_EQ(m.counts(7, "course").likes, 2);
}

TEST_P(Likes, ACountNeverGoesBelowZero) {
  Module m(*test_store);
  m.like(1, 7);
  m.sabotage("UPDATE interactions SET like_count = 0");
  EXPECT_EQ(m.unlike(1, 7), Outcome::done);
  m.clock.advance(InteractionRepository::kTtl * 2);
  EXPECT_EQ(m.counts(7).likes, 0);
}

TEST_P(Likes, WhatIsntThereCantBeLikedButALikeOfItCanBeTakenBack) {
  Module m(*test_store);
  m.like(1, 7);
  m.gone = {7};
  EXPECT_EQ(m.like(2, 7), Outcome::not_found);
  EXPECT_EQ(m.unlike(1, 7), Outcome::done) << "it was liked";
  EXPECT_EQ(m.unlike(1, 7), Outcome::not_found);
  EXPECT_EQ(m.counts(7).likes, 0);
  EXPECT_FALSE(m.io.run(m.service.view({"article", 7}, 1)));
}

TEST_P(Likes, CostAFixedNumberOfStatements) {
  Module m(*test_store);
  const double row = statements("interaction", "like"), count = statements("interaction", "add_like"),
               loads = statements("interaction", "counts");
  for (Id user = 1; user <= 1'000; ++user) m.like(user, 7);
  EXPECT_EQ(statements("interaction", "like") - row, 1'000);
  EXPECT_EQ(statements("interaction", "add_like") - count, 1'000);
  EXPECT_EQ(statements("interaction", "counts") - loads, 0);
  m.like(1, 7);
  EXPECT_EQ(statements("interaction", "add_like") - count, 1'000) << "a repeated like leaves the count alone";
}

TEST_P(LikeCounts, AreReadFromTheStoreOnceAndThenFromMemory) {
  Module m(*test_store);
  m.like(1, 7);
  const double loads = statements("interaction", "counts");
  EXPECT_FALSE(m.service.find("article", 7)) << "nobody has asked yet";
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(m.counts(7).likes, 1);
  EXPECT_EQ(statements("interaction", "counts") - loads, 1);
  m.clock.advance(InteractionRepository::kTtl * 2);
  m.counts(7);
  EXPECT_EQ(statements("interaction", "counts") - loads, 2);
}

TEST_P(LikeCounts, OfManyThingsComeInOrderByOneStatement) {
  Module m(*test_store);
  for (Id article : {3, 5, 9}) m.like(1, article);
  m.like(2, 5);
  const double bulk = statements("interaction", "counts_of");
  const auto views = m.io.run(m.service.views("article", {9, 5, 4, 5, 3}, 2));
  std::vector<std::int64_t> likes;
  std::vector<bool> liked;
  for (const auto& view : views) {
    likes.push_back(view.counts.likes);
    liked.push_back(view.mine.value().liked);
  }
  EXPECT_EQ(likes, (std::vector<std::int64_t>{1, 2, 0, 2, 1}));
  EXPECT_EQ(liked, (std::vector<bool>{false, true, false, true, false}));
  EXPECT_EQ(statements("interaction", "counts_of") - bulk, 1);
  EXPECT_FALSE(m.io.run(m.service.views("article", {9, 5, 4, 3}, std::nullopt)).front().mine);
  EXPECT_EQ(statements("interaction", "counts_of") - bulk, 1) << "what was never seen is cached too";
  m.like(1, 4);
  EXPECT_EQ(m.counts(4).likes, 1);
}

TEST_P(LikeCounts, LikesForTheRankingComeInTheOrderAsked) {
  Module m(*test_store);
  for (Id user = 1; user <= 3; ++user)
    for (Id article = user; article <= 3; ++article) m.like(user, article);
  m.like(1, 1'000'000);
  using Likes = std::vector<std::int64_t>;
  EXPECT_EQ(m.service.like_counts_now("article", std::vector<Id>{3, 2, 1, 4}), (Likes{3, 2, 1, 0}))
      << "a range";
  EXPECT_EQ(m.service.like_counts_now("article", std::vector<Id>{1'000'000, 500, 2, 2}), (Likes{1, 0, 2, 2}))
      << "far apart, and one twice";
  EXPECT_EQ(m.service.like_counts_now("article", std::vector<Id>{2, 2}), (Likes{2, 2}));
  EXPECT_TRUE(m.service.like_counts_now("article", std::vector<Id>{}).empty());
  EXPECT_EQ(m.service.like_counts_now("course", std::vector<Id>{1}), (Likes{0}));
}

TEST_P(LikeCounts, WhatIsLikedMostIsFoundOffItsIndex) {
  Module m(*test_store);
  for (Id article = 1; article <= 5; ++article)
    for (Id user = 1; user <= article; ++user) m.like(user, article);
  m.io.run(m.service.like(1, {"course", 9}));
  auto found = m.service.liked_at_least_now("article", 4, 2).value();
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::pair<Id, std::int64_t>>{{4, 4}, {5, 5}}));
  EXPECT_FALSE(m.service.liked_at_least_now("article", 3, 2)) << "more than two";
  EXPECT_TRUE(m.service.liked_at_least_now("article", 6, 2).value().empty());
  // Among many that are liked once, so that MariaDB cares.
  std::vector<ImportedLikes> once;
  for (Id article = 101; article <= 3'000; ++article) once.push_back({article, 1});
  m.service.import_likes_now("article", once);
  const std::string text =
      "SELECT biz_id, like_count FROM interactions WHERE biz = ? AND like_count >= ? AND like_count > 0 "
      "LIMIT ?";
  const auto plan = m.database.read_now([&](sql::Session& session) {
    const int index_column = on_sqlite() ? 3 : 5;
    return session.all(
        sql::Query{"test", "plan", "EXPLAIN QUERY PLAN " + text, "EXPLAIN " + text},
        [&](const sql::Row& row) { return row.get<std::string>(index_column); }, "article", 4, 10);
  });
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_NE(plan[0].find(on_sqlite() ? "COVERING INDEX interactions_by_likes" : "interactions_by_likes"),
            std::string::npos)
      << plan[0];
}

TEST_P(Recount, PutsRightWhatTheRowsSay) {
  Module m(*test_store);
  for (Id user = 1; user <= 5; ++user) m.like(user, 7);
  m.collect(1, 7);
  m.unlike(5, 7);
  m.like(1, 8);
  m.like(1, 9);
  m.counts(7);
  m.sabotage("UPDATE interactions SET like_count = 77, collect_count = 5 WHERE biz_id = 7");
  m.sabotage("DELETE FROM interactions WHERE biz_id = 8");
  int checks = 0;
  EXPECT_EQ(m.service.recount_now([&] { ++checks; }), 2U) << "the third was right";
  EXPECT_GE(checks, 1);
  EXPECT_EQ(m.counts(7).likes, 4) << "also in memory";
  EXPECT_EQ(m.counts(7).collects, 1);
  EXPECT_EQ(m.counts(8).likes, 1);
  EXPECT_EQ(m.service.recount_now(), 0U);
}

TEST_P(Recount, GoesOverMoreThingsThanOneStepTakes) {
  Module m(*test_store);
  std::vector<Like> likes;
  for (Id article = 1; article <= 1'234; ++article) likes.push_back({1, article, m.clock.now()});
  m.service.like_many_now("article", likes);
  m.sabotage("UPDATE interactions SET like_count = 0");
  EXPECT_EQ(m.service.recount_now(), 1'234U);
  EXPECT_EQ(m.service.like_counts_now("article", std::vector<Id>{1, 617, 1'234}),
            (std::vector<std::int64_t>{1, 1, 1}));
}

TEST_P(Recount, KeepsLikesThatCameFromElsewhere) {
  Module m(*test_store);
  m.like(1, 7);
  m.counts(7);
  m.service.import_likes_now("article", std::vector<ImportedLikes>{{7, 120}});
  EXPECT_EQ(m.counts(7).likes, 121);
  m.service.import_likes_now("article", std::vector<ImportedLikes>{{7, 120}});
  EXPECT_EQ(m.counts(7).likes, 121) << "importing twice adds nothing";
  m.service.import_likes_now("article", std::vector<ImportedLikes>{{7, 130}});
  EXPECT_EQ(m.counts(7).likes, 131);
  EXPECT_EQ(m.service.recount_now(), 0U);
  m.unlike(1, 7);
  EXPECT_EQ(m.counts(7).likes, 130);
}

TEST_P(LikesConcurrency, CountsAgreeWithRowsWhateverHappensAtOnce) {
  Module m(*test_store);
  const std::uint64_t seed = thread_random().next();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr Id kUsers = 5, kArticles = 3;
  std::vector<std::future<void>> crowd;
  for (std::uint64_t n = 0; n < 8; ++n)
    crowd.push_back(std::async(std::launch::async, [&m, random = Random(seed + n)]() mutable {
      for (int i = 0; i < 60; ++i) {
        const Id user = 1 + static_cast<Id>(random.below(kUsers)),
                 article = 1 + static_cast<Id>(random.below(kArticles));
        if (random.chance(0.5)) {
          m.like(user, article);
        } else {
          m.unlike(user, article);
        }
        m.counts(article);
      }
    }));
  for (auto& one : crowd) one.get();
  for (Id article = 1; article <= kArticles; ++article) {
    std::int64_t likes = 0;
    for (Id user = 1; user <= kUsers; ++user) likes += m.mine(user, article).liked ? 1 : 0;
    EXPECT_EQ(m.counts(article).likes, likes) << "what is cached is the newest";
  }
  EXPECT_EQ(m.service.recount_now(), 0U);
}

}  // namespace
}  // namespace weir::site::interaction

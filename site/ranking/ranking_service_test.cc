#include "site/ranking/ranking_service.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <thread>

#include "site/interaction/interaction_fixture.h"
#include "site/ranking/ranking_fixture.h"
#include "site/ranking/ranking_handler.h"
#include "site/ranking/ranking_job.h"
#include "site/user/user_fixture.h"
#include "weir/base/random.h"
#include "weir/testing/io_threads.h"
#include "weir/testing/serve.h"

namespace weir::site::ranking {
namespace {

using namespace std::chrono_literals;
using weir::ranking::HackerNews;

class RankingTest : public sql::OnEachStore {
 protected:
  ~RankingTest() override {
    rankings_.stop();
    database_.stop();
  }

  void add(Id id, std::int64_t likes, std::chrono::microseconds age) {
    world_.articles[id] = {clock_.now() - age, likes};
  }
  RankingService::Shown shown(std::size_t limit = kMaxTop) {
    return io_.run(service_.board(std::string(kHot), limit)).value();
  }
  std::vector<Id> ids(std::size_t limit = kMaxTop) {
    std::vector<Id> ids;
    const auto board = shown(limit);
    for (const auto& row : board.rows) ids.push_back(row.article.id);
    return ids;
  }
  // What it must be: all of them scored and sorted.
  std::vector<Ranked> brute_force() const {
    const HackerNews model;
    std::vector<Ranked> all;
    for (const auto& [id, article] : world_.articles)
      if (article.published_at >= clock_.now() - 7 * 24h)
        all.push_back({id, model.score(article.likes, article.published_at, clock_.now()), article.likes,
                       article.published_at});
    std::ranges::sort(all, Better{});
    if (all.size() > kMaxTop) all.resize(kMaxTop);
    return all;
  }

  ManualClock clock_;
  World world_;
  sql::Database database_{test_store->at()};
  IoThreads io_;
  user::Neighbour people_{database_, io_};
  interaction::Neighbour reactions_{database_, io_};
  user::UserService& users_ = people_.service;
  interaction::InteractionService& interactions_ = reactions_.service;
  RankingStore store_{database_};
  RankingRepository rankings_{store_, world_.sources(), io_.executor(), clock_};
  RankingService service_{rankings_, users_, interactions_, {}, clock_};
};

INSTANTIATE_TEST_SUITE_P(Stores, RankingTest, sql::each_store(), sql::name_of_store);

TEST_P(RankingTest, BeforeTheFirstRunThereIsNothingAndItIsStale) {
  const auto board = shown();
  EXPECT_EQ(board.name, "hot");
  EXPECT_EQ(board.model, "hackernews");
  EXPECT_TRUE(board.rows.empty());
  EXPECT_FALSE(board.computed_at);
  EXPECT_TRUE(board.stale);
}

TEST_P(RankingTest, RanksByScoreAndTiesByTheNewerId) {
  add(1, 80, 30min);
  add(2, 100, 1h);
  add(3, 1000, 7 * 24h);
  add(4, 100, 1h);
  add(5, 1'000'000, 7 * 24h + 1us);
  service_.refresh_hot_now();
  EXPECT_EQ(ids(), (std::vector<Id>{1, 4, 2, 3})) << "the fifth is past the window";
  const auto board = shown();
  EXPECT_NEAR(board.rows[0].score, 19.99, 0.005);
  EXPECT_NEAR(board.rows[1].score, 19.05, 0.005);
  EXPECT_NEAR(board.rows[3].score, 0.45, 0.005);
  EXPECT_EQ(board.rows[3].rank, 4);
  EXPECT_FALSE(board.stale);
  EXPECT_EQ(board.computed_at, clock_.now());
  EXPECT_EQ(ids(2), (std::vector<Id>{1, 4}));
}

TEST_P(RankingTest, AgreesWithSortingAllOfThem) {
  const std::uint64_t seed = thread_random().next();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (int round = 0; round < 6; ++round) {
    world_.articles.clear();
    // Up to three batches, of likes that are spread evenly or by a power law, with the newest in the future.
    const auto count = static_cast<Id>(random.below(3 * RankingService::kBatch));
    const bool power_law = random.chance(0.5);
    for (Id id = 1; id <= count; ++id) {
      const double u = random.unit();
      const auto likes = static_cast<std::int64_t>(power_law ? 1 / (u + 1e-6) : 1000 * u);
      add(id, likes, std::chrono::seconds(random.below(8 * 86'400)) - 1h);
    }
    service_.refresh_hot_now();
    ASSERT_EQ(rankings_.edition().value->items, brute_force());
  }
}

TEST_P(RankingTest, AsksForCountsByBatchesAndStopsWhenNothingCanEnter) {
  // Ten a second: the newest have all the likes.
  for (Id id = 1; id <= 40'000; ++id) add(id, id > 39'000 ? 500 : 3, std::chrono::seconds(40'000 - id) * 10);
  service_.refresh_hot_now();
  EXPECT_EQ(rankings_.edition().value->items, brute_force());
  EXPECT_EQ(world_.batches, 1);
  EXPECT_EQ(world_.count_queries, 1);
  EXPECT_EQ(world_.fetches, 1);
}

TEST_P(RankingTest, AnOldFavouriteIsFoundAmongTheFewThatWereFetched) {
  for (Id id = 1; id <= 40'000; ++id) add(id, id > 39'000 ? 500 : 3, std::chrono::seconds(40'000 - id) * 10);
  add(7, 1'000'000'000, 100h);
  service_.refresh_hot_now();
  EXPECT_EQ(rankings_.edition().value->items, brute_force());
  EXPECT_EQ(rankings_.edition().value->items.front().id, 7);
  EXPECT_EQ(world_.count_queries, 1) << "the batches behind the first needed none";
  EXPECT_EQ(world_.batches, 9);
}

TEST_P(RankingTest, WhatWasShownLastIsShownWhileTheStoreIsAway) {
  for (Id id = 1; id <= 5; ++id) add(id, 100 - id, 30min);
  world_.away = true;
  service_.refresh_hot_now();
  EXPECT_THROW(shown(), Unavailable) << "nothing was ever shown";
  world_.away = false;
  EXPECT_EQ(ids(), (std::vector<Id>{1, 2, 3, 4, 5}));
  clock_.advance(2 * RankingRepository::kSummaryTtl);
  EXPECT_EQ(ids(2), (std::vector<Id>{1, 2})) << "and a short look doesn't shorten what is remembered";
  world_.withdrawn = {3};
  clock_.advance(2 * RankingRepository::kSummaryTtl);
  EXPECT_EQ(ids(), (std::vector<Id>{1, 2, 4, 5}));
  world_.away = true;
  clock_.advance(2 * RankingRepository::kSummaryTtl);
  EXPECT_EQ(ids(), (std::vector<Id>{1, 2, 4, 5}));
  EXPECT_EQ(ids(3), (std::vector<Id>{1, 2, 4}));
  EXPECT_TRUE(shown().stale);
  world_.away = false;
  EXPECT_FALSE(shown().stale);
}

TEST_P(RankingTest, AFailedRefreshKeepsTheLastGoodList) {
  add(1, 80, 30min);
  service_.refresh_hot_now();
  world_.broken = true;
  add(2, 80, 10min);
  EXPECT_THROW(service_.refresh_hot_now(), Unavailable);
  EXPECT_TRUE(shown().stale);
  EXPECT_EQ(ids(), std::vector<Id>{1});
  EXPECT_FALSE(service_.look_now());
  EXPECT_TRUE(shown().stale) << "looking at the same edition doesn't make it fresh";
  world_.broken = false;
  service_.refresh_hot_now();
  EXPECT_FALSE(shown().stale);
  EXPECT_EQ(ids(), (std::vector<Id>{2, 1}));
}

TEST_P(RankingTest, AListThatNobodyRefreshesBecomesStale) {
  add(1, 80, 30min);
  service_.refresh_hot_now();
  clock_.advance(2min);
  EXPECT_FALSE(shown().stale);
  clock_.advance(2min);
  EXPECT_TRUE(shown().stale);
}

TEST_P(RankingTest, TheJobHasATimeBudget) {
  for (Id id = 1; id <= 10'000; ++id) add(id, 3, std::chrono::seconds(id));
  auto job = make_hot_job(service_, clock_);
  EXPECT_EQ(job.name(), "ranking:hot");
  EXPECT_EQ(job.budget(), 30s);
  EXPECT_EQ(job.run().outcome, scheduler::JobOutcome::ok);
  // A store so slow that one batch takes 20 seconds, and likes that let no batch be left out.
  auto slow = world_.sources();
  slow.like_counts = [this](std::span<const Id> ids) {
    clock_.advance(20s);
    return std::vector<std::int64_t>(ids.size(), 1);
  };
  RankingRepository repository(store_, slow, io_.executor(), clock_);
  RankingService service(repository, users_, interactions_, {}, clock_);
  EXPECT_EQ(make_hot_job(service, clock_).run().outcome, scheduler::JobOutcome::timeout);
  EXPECT_TRUE(io_.run(service.board("hot", 1)).value().stale);
  EXPECT_EQ(io_.run(service.board("hot", 1)).value().rows.size(), 1U) << "the first run's list stays";
  repository.stop();
}

TEST_P(RankingTest, AnotherProcessShowsWhatWasSaved) {
  add(1, 80, 30min);
  RankingRepository elsewhere(store_, world_.sources(), io_.executor(), clock_);
  RankingService other(elsewhere, users_, interactions_, {}, clock_);
  EXPECT_FALSE(other.look_now());
  service_.refresh_hot_now();
  EXPECT_TRUE(other.look_now());
  EXPECT_FALSE(other.look_now()) << "nothing new";
  EXPECT_EQ(elsewhere.edition().value->items, rankings_.edition().value->items);
  add(2, 500, 30min);
  service_.refresh_hot_now();
  EXPECT_TRUE(other.look_now());
  EXPECT_EQ(io_.run(other.board("hot", 1)).value().rows.at(0).article.id, 2);
  elsewhere.stop();
}

TEST_P(RankingTest, AProcessThatStartsHasTheLastListAtOnce) {
  add(1, 80, 30min);
  service_.refresh_hot_now();
  RankingRepository again(store_, world_.sources(), io_.executor(), clock_);
  const auto edition = again.edition();
  ASSERT_TRUE(edition.value);
  EXPECT_EQ(*edition.value, *rankings_.edition().value);
  EXPECT_EQ(edition.version, rankings_.edition().version);
  EXPECT_EQ(edition.computed_at, clock_.now());
  again.stop();
}

TEST_P(RankingTest, WhatWasWithdrawnIsLeftOutAndOthersMoveUp) {
  for (Id id = 1; id <= 5; ++id) add(id, 10 * id, 1h);
  service_.refresh_hot_now();
  world_.withdrawn = {5, 3};
  EXPECT_EQ(ids(2), (std::vector<Id>{4, 2}));
  EXPECT_EQ(shown().rows[1].rank, 2);
}

TEST_P(RankingTest, TheTitlesAreAskedForOnceASecond) {
  add(1, 80, 30min);
  service_.refresh_hot_now();
  for (int i = 0; i < 100; ++i) shown();
  EXPECT_EQ(world_.summary_queries, 1);
  world_.withdrawn = {1};
  clock_.advance(RankingRepository::kSummaryTtl * 2);
  EXPECT_TRUE(ids().empty());
  EXPECT_EQ(world_.summary_queries, 2);
}

TEST_P(RankingTest, AuthorsAndCountsArePutBesideAsTheyAreNow) {
  user::NewUser ann;
  ann.email = "ann@example.com";
  ann.nickname = "安";
  ASSERT_EQ(users_.create_many(std::span(&ann, 1)).at(0), 1);
  add(1, 80, 30min);
  service_.refresh_hot_now();
  EXPECT_EQ(shown().rows[0].author->nickname, "安");
  io_.run(users_.change_profile(1, {.nickname = "Ann", .about = {}, .birthday = {}}));
  io_.run(interactions_.like(3, {"article", 1}));
  EXPECT_EQ(shown().rows[0].author->nickname, "Ann");
  EXPECT_EQ(shown().rows[0].counts.likes, 1);
}

TEST_P(RankingTest, TheRouteAnswersAsDocumented) {
  http::Router router;
  add_routes(router, service_);
  const http::Dispatcher dispatcher(std::move(router), [](std::string_view) { return std::nullopt; }, {});
  const auto ask = [&](std::string_view target) {
    http::Request request("GET", target);
    const auto response = io_.run(serve(dispatcher, request));
    return std::pair(response.status, boost::json::parse(response.payload()));
  };
  const auto [status, empty] = ask("/v1/rankings/hot");
  EXPECT_EQ(status, 200U);
  EXPECT_EQ(empty, (boost::json::value{{"name", "hot"},
                                       {"model", "hackernews"},
                                       {"computed_at", nullptr},
                                       {"stale", true},
                                       {"items", boost::json::array{}}}));
  for (Id id = 1; id <= 30; ++id) add(id, 10 * id, 1h);
  service_.refresh_hot_now();
  EXPECT_EQ(ask("/v1/rankings/hot").second.at("items").as_array().size(), 20U);
  const auto answer = ask("/v1/rankings/hot?limit=1").second;
  const auto& row = answer.at("items").at(0).as_object();
  EXPECT_EQ(row.at("rank"), 1);
  EXPECT_EQ(row.at("id"), "30");
  EXPECT_EQ(row.at("title"), "title 30");
  EXPECT_EQ(row.at("author"), (boost::json::value{{"id", "1"}, {"nickname", ""}}));
  EXPECT_NEAR(row.at("score").to_number<double>(), 299 / std::pow(3, 1.5), 1e-9);
  for (const char* key : {"abstract", "like_count", "published_at"}) EXPECT_TRUE(row.contains(key)) << key;
  EXPECT_EQ(ask("/v1/rankings/cold").first, 404U);
  for (const char* bad : {"0", "101", "x", "-1", "1e1", ""})
    EXPECT_EQ(ask("/v1/rankings/hot?limit=" + std::string(bad)).first, 422U) << bad;
}

TEST_P(RankingTest, AWatchShowsNewListsByItself) {
  RankingRepository elsewhere(store_, world_.sources(), io_.executor(), clock_);
  RankingService other(elsewhere, users_, interactions_, {}, clock_);
  add(1, 80, 30min);
  service_.refresh_hot_now();
  BoardWatch watch(other);
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!elsewhere.edition().value && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(elsewhere.edition().value);
  watch.stop();
  elsewhere.stop();
}

class RankingStoreTest : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, RankingStoreTest, sql::each_store(), sql::name_of_store);

TEST_P(RankingStoreTest, KeepsWhatWasSavedToTheLastDigit) {
  sql::Database database(test_store->at());
  RankingStore store(database);
  EXPECT_EQ(store.version_now("hot"), 0U);
  EXPECT_FALSE(store.load_now("hot"));
  const Ranking ranking{
      "hackernews",
      {{std::numeric_limits<Id>::max(), 1.0 / 3, 7, from_micros(1)}, {2, -0.25, 0, from_micros(-5)}}};
  EXPECT_EQ(store.save_now("hot", ranking, from_micros(42)), 1U);
  const auto saved = store.load_now("hot").value();
  EXPECT_EQ(saved.ranking, ranking);
  EXPECT_EQ(saved.computed_at, from_micros(42));
  EXPECT_EQ(store.save_now("hot", {"hackernews", {}}, from_micros(43)), 2U);
  EXPECT_EQ(store.version_now("hot"), 2U);
  EXPECT_TRUE(store.load_now("hot").value().ranking.items.empty());
}

}  // namespace
}  // namespace weir::site::ranking

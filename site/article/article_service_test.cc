#include "site/article/article_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "site/article/article_fixture.h"
#include "weir/testing/metrics.h"

namespace weir::site::article {
namespace {

using std::chrono::minutes;
using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr Id kAnn = 1, kBob = 2;

std::vector<Id> ids(const Listing& listing) {
  std::vector<Id> result;
  result.reserve(listing.items.size());
  for (const auto& item : listing.items) result.push_back(item.id);
  return result;
}

class ArticleServiceTest : public sql::OnEachStore {
 protected:
  Module module{*test_store};
};

INSTANTIATE_TEST_SUITE_P(Stores, ArticleServiceTest, sql::each_store(), sql::name_of_store);

TEST_P(ArticleServiceTest, ADraftIsTheAuthorsAlone) {
  const Id id = module.draft(kAnn, "标题 😀", "**Words**");
  EXPECT_EQ(module.read(id), nullptr);
  EXPECT_FALSE(module.io.run(module.service.exists(id)));
  const auto own = module.io.run(module.service.own(kAnn, id));
  ASSERT_EQ(own.outcome, Outcome::done);
  EXPECT_EQ(own.article->title, "标题 😀");
  EXPECT_EQ(own.article->content, "**Words**");
  EXPECT_EQ(own.article->abstract, "Words");
  EXPECT_EQ(own.article->status, Status::draft);
  EXPECT_EQ(own.article->version, 1);
  EXPECT_FALSE(own.article->published_at);
  EXPECT_EQ(module.io.run(module.service.own(kBob, id)).outcome, Outcome::not_author);
  EXPECT_EQ(module.io.run(module.service.own(kAnn, id + 1)).outcome, Outcome::not_found);
}

TEST_P(ArticleServiceTest, EditingNeverTouchesTheReadersCopy) {
  const Id id = module.published(kAnn, "First", "One");
  const WallTime first = module.clock.now();
  module.clock.advance(minutes(1));
  const auto edited = module.io.run(module.service.edit(kAnn, id, "Second", "Two"));
  EXPECT_EQ(edited.outcome, Outcome::done);
  EXPECT_EQ(edited.article.title, "Second");
  EXPECT_EQ(edited.article.status, Status::published);
  EXPECT_EQ(module.read(id)->title, "First");
  EXPECT_EQ(module.io.run(module.service.own(kAnn, id)).article->content, "Two");

  module.clock.advance(minutes(1));
  const auto again = module.io.run(module.service.publish(kAnn, id));
  EXPECT_EQ(again.article.published_at, first);
  const auto copy = module.read(id);
  EXPECT_EQ(copy->title, "Second");
  EXPECT_EQ(copy->content(), "Two");
  EXPECT_EQ(copy->abstract, "Two");
  EXPECT_EQ(copy->published_at, first);
  EXPECT_EQ(copy->updated_at, module.clock.now());
}

TEST_P(ArticleServiceTest, WithdrawingTakesTheReadersCopyAway) {
  const Id id = module.published(kAnn);
  const WallTime first = module.clock.now();
  module.clock.advance(minutes(1));
  EXPECT_EQ(module.io.run(module.service.withdraw(kAnn, id)).article.status, Status::withdrawn);
  EXPECT_EQ(module.read(id), nullptr);
  EXPECT_TRUE(module.newest().items.empty());
  EXPECT_EQ(module.published_total(), 0);
  // Withdrawing again changes nothing, not even the version.
  const auto version = module.io.run(module.service.own(kAnn, id)).article->version;
  EXPECT_EQ(module.io.run(module.service.withdraw(kAnn, id)).article.version, version);
  EXPECT_EQ(module.published_total(), 0);
  // The first publication is kept over a withdrawal too.
  EXPECT_EQ(module.io.run(module.service.publish(kAnn, id)).article.published_at, first);
  EXPECT_NE(module.read(id), nullptr);
  EXPECT_EQ(module.published_total(), 1);
}

TEST_P(ArticleServiceTest, WithdrawingADraftLeavesItOne) {
  const Id id = module.draft(kAnn);
  const auto changed = module.io.run(module.service.withdraw(kAnn, id));
  EXPECT_EQ(changed.outcome, Outcome::done);
  EXPECT_EQ(changed.article.status, Status::draft);
}

TEST_P(ArticleServiceTest, RemovingTakesBothCopiesAway) {
  const Id id = module.published(kAnn);
  EXPECT_EQ(module.io.run(module.service.remove(kAnn, id)), Outcome::done);
  EXPECT_EQ(module.read(id), nullptr);
  EXPECT_EQ(module.io.run(module.service.own(kAnn, id)).outcome, Outcome::not_found);
  EXPECT_EQ(module.io.run(module.service.remove(kAnn, id)), Outcome::not_found);
  EXPECT_EQ(module.mine(kAnn, {.with_total = true}).total, 0);
  EXPECT_EQ(module.published_total(), 0);
  EXPECT_GT(module.draft(kAnn), id) << "an id is never used again";
}

TEST_P(ArticleServiceTest, OnlyTheAuthorChangesAnArticle) {
  const Id id = module.published(kAnn);
  auto& service = module.service;
  EXPECT_EQ(module.io.run(service.edit(kBob, id, "x", "y")).outcome, Outcome::not_author);
  EXPECT_EQ(module.io.run(service.publish(kBob, id)).outcome, Outcome::not_author);
  EXPECT_EQ(module.io.run(service.withdraw(kBob, id)).outcome, Outcome::not_author);
  EXPECT_EQ(module.io.run(service.remove(kBob, id)), Outcome::not_author);
  EXPECT_EQ(module.io.run(service.edit(kBob, id + 1, "x", "y")).outcome, Outcome::not_found);
  EXPECT_EQ(module.io.run(service.publish(kBob, id + 1)).outcome, Outcome::not_found);
  EXPECT_EQ(module.io.run(service.withdraw(kBob, id + 1)).outcome, Outcome::not_found);
  EXPECT_EQ(module.read(id)->title, "Title");
}

TEST_P(ArticleServiceTest, AnEditMayBeBoundToAVersion) {
  const Id id = module.draft(kAnn);
  auto edit = [&](std::vector<std::int64_t> versions) {
    return module.io.run(module.service.edit(kAnn, id, "t", "c", std::move(versions)));
  };
  EXPECT_EQ(edit({1}).article.version, 2);
  EXPECT_EQ(edit({1}).outcome, Outcome::version_mismatch);
  EXPECT_EQ(edit({}).outcome, Outcome::version_mismatch);
  EXPECT_EQ(edit({1, 2}).article.version, 3);
  // Publishing changes what the author sees, so it is a new version.
  EXPECT_EQ(module.io.run(module.service.publish(kAnn, id)).article.version, 4);
}

TEST_P(ArticleServiceTest, NewestAnswersInAllForms) {
  std::vector<Id> made;
  for (int i = 0; i < 7; ++i) {
    // Two share a time: the id decides.
    if (i % 2 == 0) module.clock.advance(minutes(1));
    made.insert(made.begin(), module.published(kAnn, "Number " + std::to_string(i)));
  }
  module.draft(kAnn);
  const auto all = module.newest({.limit = 10, .with_total = true});
  EXPECT_THAT(ids(all), ElementsAreArray(made));
  EXPECT_EQ(all.total, 7);
  EXPECT_FALSE(all.more);
  EXPECT_FALSE(all.items[0].status);
  EXPECT_THAT(ids(module.newest({.limit = 2, .offset = 3})), ElementsAre(made[3], made[4]));
  EXPECT_TRUE(module.newest({.limit = 2, .offset = 3}).more);
  EXPECT_FALSE(module.newest({.limit = 2, .offset = 5}).more);
  EXPECT_TRUE(module.newest({.limit = 2, .offset = 7}).items.empty());
  const auto far = module.newest({.offset = std::uint64_t{1} << 62, .with_total = true});
  EXPECT_TRUE(far.items.empty());
  EXPECT_FALSE(far.too_deep);
  EXPECT_EQ(far.total, 7);
}

TEST_P(ArticleServiceTest, ACursorNeitherSkipsNorRepeats) {
  for (int i = 0; i < 23; ++i) {
    if (i % 5 == 0) module.clock.advance(minutes(1));
    module.published(kAnn);
  }
  const auto before = ids(module.newest({.limit = 100}));
  std::vector<Id> seen;
  NewestSlice slice{.limit = 4};
  for (bool more = true; more;) {
    const auto page = module.newest(slice);
    for (const auto& item : page.items) seen.push_back(item.id);
    more = page.more;
    slice.after = Place{*page.items.back().published_at, page.items.back().id};
    // The list moves while it is walked.
    module.clock.advance(minutes(1));
    module.published(kAnn);
    module.io.run(module.service.publish(kAnn, before.back()));
  }
  EXPECT_THAT(seen, ElementsAreArray(before));
}

TEST_P(ArticleServiceTest, TheFirstHundredOfAnAuthorAreCutOutOfWhatIsCached) {
  std::vector<Id> made;
  for (int i = 0; i < 105; ++i) made.insert(made.begin(), module.draft(kAnn));
  module.draft(kBob);
  EXPECT_EQ(ids(module.mine(kAnn)).size(), 20u);
  const double before = statements("article");
  const auto page = module.mine(kAnn, {.limit = 10, .offset = 90, .with_total = true});
  EXPECT_THAT(ids(page), ElementsAreArray(made.begin() + 90, made.begin() + 100));
  EXPECT_EQ(page.total, 105);
  EXPECT_TRUE(page.more);
  EXPECT_THAT(ids(module.mine(kAnn, {.limit = 3, .after = made[10]})),
              ElementsAre(made[11], made[12], made[13]));
  EXPECT_EQ(statements("article"), before);
  // What reaches beyond goes to the store.
  EXPECT_THAT(ids(module.mine(kAnn, {.limit = 20, .offset = 90})),
              ElementsAreArray(made.begin() + 90, made.end()));
  EXPECT_THAT(ids(module.mine(kAnn, {.limit = 20, .after = made[95]})),
              ElementsAreArray(made.begin() + 96, made.end()));
  EXPECT_GT(statements("article"), before);
  EXPECT_TRUE(module.mine(kAnn, {.offset = 1000}).items.empty());
  // An unknown place in the list is just a place.
  EXPECT_TRUE(module.mine(kAnn, {.after = 0}).items.empty());
}

TEST_P(ArticleServiceTest, AShortListIsCachedWhole) {
  const Id id = module.draft(kAnn);
  EXPECT_THAT(ids(module.mine(kAnn)), ElementsAre(id));
  const double before = statements("article");
  EXPECT_TRUE(module.mine(kAnn, {.limit = 20, .offset = 5}).items.empty());
  EXPECT_TRUE(module.mine(kAnn, {.limit = 20, .after = id}).items.empty());
  EXPECT_THAT(ids(module.mine(kAnn, {.limit = 100})), ElementsAre(id));
  EXPECT_EQ(statements("article"), before);
}

TEST_P(ArticleServiceTest, EveryWriteClearsTheAuthorsList) {
  auto& service = module.service;
  EXPECT_TRUE(module.mine(kAnn).items.empty());
  const Id id = module.draft(kAnn, "One");
  EXPECT_EQ(module.mine(kAnn).items.at(0).title, "One");
  module.io.run(service.edit(kAnn, id, "Two", ""));
  EXPECT_EQ(module.mine(kAnn).items.at(0).title, "Two");
  module.io.run(service.publish(kAnn, id));
  EXPECT_EQ(module.mine(kAnn).items.at(0).status, Status::published);
  module.io.run(service.withdraw(kAnn, id));
  EXPECT_EQ(module.mine(kAnn).items.at(0).status, Status::withdrawn);
  module.io.run(service.remove(kAnn, id));
  EXPECT_TRUE(module.mine(kAnn).items.empty());
}

TEST_P(ArticleServiceTest, AThousandCachedReadsAskTheStoreNothing) {
  const Id id = module.published(kAnn);
  ASSERT_NE(module.read(id), nullptr);
  const double before = statements("article");
  for (int i = 0; i < 1000; ++i) {
    const auto known = module.service.find(id);
    ASSERT_TRUE(known && *known);
  }
  EXPECT_EQ(statements("article"), before);
}

TEST_P(ArticleServiceTest, PublishingPutsTheCopyAheadOfItsReaders) {
  const Id id = module.published(kAnn, "Ahead");
  auto known = module.service.find(id);
  ASSERT_TRUE(known && *known);
  EXPECT_EQ((*known)->title, "Ahead");
  module.clock.advance(minutes(12));
  EXPECT_FALSE(module.service.find(id)) << "kept for ten minutes and no longer";
}

TEST_P(ArticleServiceTest, AnAbsenceIsKeptUntilTheArticleIsThere) {
  const Id id = module.draft(kAnn);
  // Absences are kept once the filter vouches for them: what is newer than its mark may be about to appear.
  module.repository.start();
  while (!module.repository.filter_filled()) std::this_thread::yield();
  EXPECT_EQ(module.read(id), nullptr);
  const double before = statements("article");
  EXPECT_EQ(module.read(id), nullptr);
  EXPECT_EQ(statements("article"), before);
  module.io.run(module.service.publish(kAnn, id));
  EXPECT_NE(module.read(id), nullptr);
}

TEST_P(ArticleServiceTest, AnArticleOverAMebibyteIsServedNotCached) {
  const std::string most(1 << 20, '\n'), more((1 << 20) + 1, 'x');
  const Id cached = module.published(kAnn, "t", most), served = module.published(kAnn, "t", more);
  EXPECT_TRUE(module.service.find(cached));
  EXPECT_FALSE(module.service.find(served));
  EXPECT_EQ(module.read(served)->content_bytes(), more.size());
  EXPECT_FALSE(module.service.find(served));
}

TEST_P(ArticleServiceTest, APreloadIsKeptForAMinute) {
  const Id id = module.published(kAnn);
  module.clock.advance(minutes(20));
  ASSERT_FALSE(module.service.find(id));
  module.io.run(module.service.preload(id));
  EXPECT_TRUE(module.service.find(id));
  module.clock.advance(std::chrono::seconds(70));
  EXPECT_FALSE(module.service.find(id));
  module.io.run(module.service.preload_own(id));
  const double before = statements("article");
  EXPECT_EQ(module.io.run(module.service.own(kAnn, id)).outcome, Outcome::done);
  EXPECT_EQ(statements("article"), before);
}

TEST_P(ArticleServiceTest, PlacesAreWalkedInBatches) {
  std::vector<Place> expected;
  for (int i = 0; i < 30; ++i) {
    if (i % 3 == 0) module.clock.advance(minutes(1));
    expected.insert(expected.begin(), Place{module.clock.now(), module.published(kAnn)});
  }
  const WallTime window = expected[20].published_at;
  while (expected.back().published_at < window) expected.pop_back();
  std::vector<Place> walked;
  std::optional<Place> after;
  for (;;) {
    const auto batch = module.service.published_since_now(after, 4, window);
    if (batch.empty()) break;
    EXPECT_LE(batch.size(), 4u);
    walked.insert(walked.end(), batch.begin(), batch.end());
    after = batch.back();
  }
  EXPECT_EQ(walked, expected);
}

TEST_P(ArticleServiceTest, SummariesComeInTheOrderAsked) {
  const Id one = module.published(kAnn, "One"), two = module.published(kBob, "Two"),
           draft = module.draft(kAnn);
  const auto found = module.io.run(module.service.summaries({two, draft, one, 999}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].title, "Two");
  EXPECT_EQ(found[0].author_id, kBob);
  EXPECT_EQ(found[1].title, "One");
  EXPECT_TRUE(module.io.run(module.service.summaries({})).empty());
}

TEST_P(ArticleServiceTest, ImportedArticlesArePublishedOnce) {
  std::vector<ImportedArticle> batch;
  batch.reserve(2'500);
  for (int i = 0; i < 2'500; ++i) {
    batch.push_back({.author_id = 1 + i % 3,
                     .title = "Number " + std::to_string(i),
                     .content = "Some *words*",
                     .published_at = module.clock.now() - std::chrono::seconds(i),
                     .external_id = i % 2 == 0 ? "hn:" + std::to_string(i) : ""});
  }
  const auto made = module.service.create_published_many(batch);
  ASSERT_EQ(made.size(), batch.size());
  EXPECT_EQ(module.published_total(), 2'500);
  EXPECT_EQ(module.mine(2, {.limit = 1, .with_total = true}).total, 833);
  const auto copy = module.read(made[7].id);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->title, "Number 7");
  EXPECT_EQ(copy->abstract, "Some words");
  EXPECT_EQ(copy->published_at, batch[7].published_at);
  EXPECT_THAT(ids(module.newest({.limit = 2})), ElementsAre(made[0].id, made[1].id));

  // Those with an external id are known now.
  const auto again = module.service.create_published_many(std::span(batch).first(4));
  EXPECT_FALSE(again[0].inserted);
  EXPECT_EQ(again[0].id, made[0].id);
  EXPECT_TRUE(again[1].inserted);
  EXPECT_EQ(module.published_total(), 2'502);
}

class ArticlePublishAhead : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, ArticlePublishAhead, sql::each_store(), sql::name_of_store);

TEST_P(ArticlePublishAhead, IsKeptForLongerWhenTheAuthorIsReadALot) {
  std::int64_t reads = 999;
  std::vector<Id> asked;
  Module module(*test_store, [&](std::vector<Id> articles) -> boost::asio::awaitable<std::int64_t> {
    asked = articles;
    co_return reads;
  });
  const Id id = module.published(kAnn);
  EXPECT_THAT(asked, ElementsAre(id));
  module.clock.advance(minutes(12));
  EXPECT_FALSE(module.service.find(id));
  reads = 1'000;
  module.io.run(module.service.publish(kAnn, id));
  module.clock.advance(minutes(50));
  EXPECT_TRUE(module.service.find(id));
  module.clock.advance(minutes(20));
  EXPECT_FALSE(module.service.find(id));
}

TEST_P(ArticlePublishAhead, AFailureIsCountedAndDoesNotFailThePublication) {
  Module module(*test_store, [](std::vector<Id>) -> boost::asio::awaitable<std::int64_t> {
    throw Unavailable("no counts today");
    co_return 0;
  });
  auto failures =
      telemetry::counter("weir_swallowed_errors_total", "Failures that were logged and lived with",
                         {{"where", "reads_of_author"}});
  const double before = failures.value();
  const Id id = module.published(kAnn);
  EXPECT_TRUE(module.service.find(id));
  EXPECT_EQ(failures.value(), before + 1);
}

class ArticleConcurrency : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, ArticleConcurrency, sql::each_store(), sql::name_of_store);

TEST_P(ArticleConcurrency, ReadersNeverSeeWhatWasWithdrawnAndCountsAgree) {
  Module module(*test_store);
  std::vector<Id> articles;
  articles.reserve(4);
  for (int i = 0; i < 4; ++i) articles.push_back(module.draft(kAnn));
  const auto write = [&](Id id) -> boost::asio::awaitable<void> {
    for (int round = 0; round < 40; ++round) {
      const auto title = "Round " + std::to_string(round);
      co_await module.service.edit(kAnn, id, title, "words");
      co_await module.service.publish(kAnn, id);
      const auto copy = co_await module.service.read(id);
      EXPECT_TRUE(copy && copy->title == title) << "one's own publication shows at once";
      co_await module.service.withdraw(kAnn, id);
      EXPECT_EQ(co_await module.service.read(id), nullptr) << "and so does one's own withdrawal";
    }
    co_await module.service.publish(kAnn, id);
  };
  std::atomic<bool> done{false};
  const auto read = [&]() -> boost::asio::awaitable<void> {
    while (!done) {
      for (const Id id : articles) co_await module.service.read(id);
      co_await module.service.mine(kAnn, {.with_total = true});
    }
  };
  auto reading = module.io.start(read());
  std::vector<std::future<void>> writing;
  writing.reserve(articles.size());
  for (const Id id : articles) writing.push_back(module.io.start(write(id)));
  for (auto& one : writing) one.get();
  done = true;
  reading.get();
  EXPECT_EQ(module.published_total(), 4);
  EXPECT_EQ(module.mine(kAnn, {.with_total = true}).total, 4);
  EXPECT_EQ(module.newest().items.size(), 4u);
}

// The deadline of a request may pass while its write waits for its turn: the write stands, and what
// follows it is done all the same: forgetting what is stale, putting the copy ahead.
TEST_P(ArticleConcurrency, AWriteThatOutlivesItsRequestIsFinished) {
  namespace asio = boost::asio;
  Module module(*test_store, [](std::vector<Id>) -> asio::awaitable<std::int64_t> { co_return 0; });
  const Id id = module.draft(kAnn);
  ASSERT_EQ(module.mine(kAnn).items.at(0).status, Status::draft);

  // On SQLite the publication waits for the one writer, on MySQL for the row.
  const sql::Query hold{"test", "hold", "UPDATE article_drafts SET version = version WHERE id = ?"};
  std::promise<void> holds, go_on;
  std::thread holding([&] {
    module.database.write_now([&](sql::Session& session) {
      session.execute(hold, id);
      holds.set_value();
      go_on.get_future().wait();
    });
  });
  holds.get_future().wait();
  const auto strand = asio::make_strand(module.io.executor());
  asio::cancellation_signal deadline;
  auto publication = asio::co_spawn(strand, module.service.publish(kAnn, id),
                                    asio::bind_cancellation_slot(deadline.slot(), asio::use_future));
  for (int i = 0; i < 100 && module.database.stats().waiting_writes == 0; ++i)
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // then it is under way, or waits for its session
  std::promise<void> passed;
  asio::post(strand, [&] {
    deadline.emit(asio::cancellation_type::terminal);
    passed.set_value();
  });
  passed.get_future().wait();
  go_on.set_value();
  holding.join();
  EXPECT_EQ(publication.get().outcome, Outcome::done);
  EXPECT_EQ(module.mine(kAnn).items.at(0).status, Status::published);
  EXPECT_TRUE(module.service.find(id));
}

TEST_P(ArticleConcurrency, OfManyEditsOfOneVersionOneWins) {
  Module module(*test_store);
  const Id id = module.draft(kAnn);
  std::vector<std::future<Changed>> edits;
  edits.reserve(20);
  for (int i = 0; i < 20; ++i)
    edits.push_back(module.io.start(module.service.edit(kAnn, id, "t", "c", std::vector<std::int64_t>{1})));
  int won = 0;
  for (auto& edit : edits) won += edit.get().outcome == Outcome::done ? 1 : 0;
  EXPECT_EQ(won, 1);
}

}  // namespace
}  // namespace weir::site::article

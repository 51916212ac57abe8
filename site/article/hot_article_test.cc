// Many at once at the rows that all articles share, from two nodes on one store: all make progress.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "site/article/article_fixture.h"
#include "weir/sql/crowd_fixture.h"

namespace weir::site::article {
namespace {

using sql::kCrowd;

class HotArticlesConcurrency : public sql::OnEachStore {
 protected:
  double repeated(const char* what, const std::function<void(ArticleStore&, Id)>& work) {
    return sql::crowd(what, {&one, &two},
                      [&](std::size_t node, Id number) { work(node == 0 ? stores[0] : stores[1], number); });
  }
  Id insert(ArticleStore& store, Id author) {
    OwnArticle article;
    article.author_id = author;
    article.title = "Title";
    return io.run(store.insert(article)).id;
  }
  Listing newest() { return io.run(stores[0].newest({.limit = 1, .with_total = true})); }
  Listing own(Id author) { return io.run(stores[0].list_own(author, {.limit = 1'000, .with_total = true})); }

  IoThreads io;
  sql::Database one{test_store->at({})}, two{test_store->at({})};
  ArticleStore stores[2]{ArticleStore(one), ArticleStore(two)};
};
INSTANTIATE_TEST_SUITE_P(Stores, HotArticlesConcurrency, sql::each_store(), sql::name_of_store);

TEST_P(HotArticlesConcurrency, FromTheFirstWordToTheEnd) {
  EXPECT_LT(repeated("drafts, published",
                     [&](ArticleStore& store, Id author) {
                       io.run(store.publish(author, insert(store, author), from_micros(author)));
                     }),
            sql::kFew);
  EXPECT_EQ(newest().total, kCrowd);
  EXPECT_LT(repeated("withdrawn, published again, removed",
                     [&](ArticleStore& store, Id author) {
                       const Id article = own(author).items.at(0).id;
                       io.run(store.withdraw(author, article, from_micros(1)));
                       io.run(store.publish(author, article, from_micros(2)));
                       if (author % 2 == 0) io.run(store.remove(author, article));
                     }),
            sql::kFew);
  EXPECT_EQ(newest().total, kCrowd / 2);
  EXPECT_EQ(own(1).total, 1);
  EXPECT_EQ(own(2).total, 0);
}

TEST_P(HotArticlesConcurrency, OneArticleAndItsAuthor) {
  const Id article = insert(stores[0], 1);
  EXPECT_LT(repeated("edits and publications of one article",
                     [&](ArticleStore& store, Id number) {
                       if (number % 2 == 0) {
                         io.run(store.edit(
                             {1, article, std::to_string(number), "", "", std::nullopt, from_micros(1)}));
                       } else {
                         io.run(store.publish(1, article, from_micros(number)));
                       }
                     }),
            sql::kFew);
  EXPECT_EQ(newest().total, 1);
  EXPECT_EQ(io.run(stores[0].find_own(article))->version, 1 + kCrowd);
  EXPECT_LT(repeated("drafts of one author", [&](ArticleStore& store, Id) { insert(store, 1); }), sql::kFew);
  EXPECT_EQ(own(1).total, 1 + kCrowd);
}

// The same file imported by two at once.
TEST_P(HotArticlesConcurrency, ImportsOfTheSame) {
  repeated("imports of the same", [&](ArticleStore& store, Id number) {
    std::vector<ImportedArticle> batch;
    for (Id i = 0; i < 5; ++i)
      batch.push_back({1 + i, "Title", "Words.", from_micros(i), "hn:" + std::to_string(number / 2 + i)});
    store.insert_published_now(batch);
  });
  EXPECT_EQ(newest().total, kCrowd / 2 + 5);
  std::int64_t sum = 0;
  for (Id author = 1; author <= 5; ++author) sum += own(author).total.value();
  EXPECT_EQ(sum, kCrowd / 2 + 5);
}

}  // namespace
}  // namespace weir::site::article

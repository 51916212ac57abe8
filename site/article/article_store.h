// ArticleStore: articles in SQL. The author's library is article_drafts, the readers' article_published; an
// article has the same id in both, and article_counts keeps how long the lists are, in the transactions that
// change them.
//
// Rows are read by covering indexes up to the rows that are answered; the content is the last column, so that
// a list never reads it. Thread-safe. Throws sql::Error when the store fails.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "site/article/article.h"
#include "weir/sql/database.h"

namespace weir::site::article {

// What every transaction that makes articles does first, so that creations_ended can wait for it.
void enter_gate(sql::Session& session);

class ArticleStore {
 public:
  template <class T>
  using awaitable = boost::asio::awaitable<T>;

  // One statement asks for at most so many articles, and one transaction writes at most so many in bulk.
  static constexpr std::size_t kMaxBatch = 1'000;

  // Brings the tables up to date; blocks. The database must outlive the store.
  explicit ArticleStore(sql::Database& database);

  // The article with its new id.
  awaitable<OwnArticle> insert(OwnArticle article);

  struct Edit {
    Id author = 0, article = 0;
    std::string title, abstract, content;
    std::optional<std::vector<std::int64_t>> versions;  // it must have one of them
    WallTime now{};
  };
  awaitable<Changed> edit(Edit edit);

  struct Published {
    Changed changed;
    std::optional<PublishedArticle> copy;  // when it was done
  };
  awaitable<Published> publish(Id author, Id article, WallTime now);
  awaitable<Changed> withdraw(Id author, Id article, WallTime now);
  awaitable<Outcome> remove(Id author, Id article);

  awaitable<std::optional<OwnArticle>> find_own(Id article);
  awaitable<std::optional<PublishedArticle>> find_published(Id article);

  awaitable<Listing> newest(NewestSlice slice);
  awaitable<Listing> list_own(Id author, OwnSlice slice);
  // Those that are published, in any order; articles.size() <= kMaxBatch.
  awaitable<std::vector<Summary>> summaries(std::vector<Id> articles);

  // What the filter of ids asks.
  awaitable<std::vector<Id>> ids_above(Id after, std::size_t count);
  awaitable<Id> highest_id();
  // Returns when every transaction that was making articles at the call has ended, so that the ids below the
  // highest which have no row then never will. On SQLite rows become visible in the order of their ids.
  awaitable<void> creations_ended();

  // These block; not for I/O threads.
  std::vector<Place> places_now(std::optional<Place> after, std::size_t count, WallTime not_before);
  // In one transaction; articles.size() <= kMaxBatch. What is there already is looked for before it.
  std::vector<Imported> insert_published_now(std::span<const ImportedArticle> articles);

 private:
  sql::Database& database_;
};

}  // namespace weir::site::article

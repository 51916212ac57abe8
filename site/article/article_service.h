// ArticleService: writing, publishing and reading articles.
//
// It promises: editing never touches what readers see; the readers' copy and the author's status change in
// one transaction; the author of an existing article is the only one who changes it; a reader of a cached
// article waits for nothing. What helps later readers (clearing a list, filling a cache ahead) is logged and
// counted when it fails, and never fails the write that it follows.
//
// Thread-safe. Faults of the store are exceptions (weir::Unavailable); everything else is a value.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "site/article/article.h"
#include "weir/base/clock.h"

namespace weir::site::article {

class ArticleRepository;

class ArticleService {
 public:
  static constexpr std::int64_t kReadALot = 1'000;

  // How often the articles were read, all together: what decides whether an author is read a lot. Empty: no
  // author is.
  using ReadsOf = std::function<boost::asio::awaitable<std::int64_t>(std::vector<Id> articles)>;

  // What it is given must outlive it.
  explicit ArticleService(ArticleRepository& articles, ReadsOf reads_of = {},
                          const Clock& clock = Clock::system());
  ArticleService(const ArticleService&) = delete;
  ArticleService& operator=(const ArticleService&) = delete;

  // The author's side. Title and content are as title_fault and content_fault allow.
  boost::asio::awaitable<OwnArticle> create(Id author, std::string title, std::string content);
  // Changes the author's copy only. With `versions`, only while the copy has one of them.
  boost::asio::awaitable<Changed> edit(Id author, Id article, std::string title, std::string content,
                                       std::optional<std::vector<std::int64_t>> versions = {});
  // Copies the author's copy to the readers, in one transaction. Publishing again replaces their copy and
  // keeps the time of the first publication.
  boost::asio::awaitable<Changed> publish(Id author, Id article);
  // Takes the readers' copy away. An article that isn't published stays as it is.
  boost::asio::awaitable<Changed> withdraw(Id author, Id article);
  boost::asio::awaitable<Outcome> remove(Id author, Id article);
  // The author's copy, or why not (not_found, not_author).
  struct Own {
    Outcome outcome = Outcome::done;
    std::shared_ptr<const OwnArticle> article;
  };
  boost::asio::awaitable<Own> own(Id author, Id article);
  // The author's articles, newest first. Within the first 100 it is cut out of what is cached.
  boost::asio::awaitable<Listing> mine(Id author, OwnSlice slice);

  // The readers' side.
  // From memory, at once: nothing when it isn't known here, a null pointer when there certainly is none.
  std::optional<ReaderCopyPtr> find(Id article);
  // The same, asking the store when it isn't known here. Null when there is none.
  boost::asio::awaitable<ReaderCopyPtr> read(Id article);
  // Whether readers see such an article.
  boost::asio::awaitable<bool> exists(Id article);
  // Published articles, newest first.
  boost::asio::awaitable<Listing> newest(NewestSlice slice);
  // Summaries of published articles in the order asked; those that aren't there (any more) are left out.
  boost::asio::awaitable<std::vector<Summary>> summaries(std::vector<Id> articles);

  // Loads the article for the reader who will probably open it next, kept for a minute. Never throws. The
  // caller decides whether to await it or to give it to its BackgroundTasks.
  boost::asio::awaitable<void> preload(Id article);
  boost::asio::awaitable<void> preload_own(Id article);

  // For the ranking: up to `count` places behind `after` (from the newest when empty) that are not older than
  // `not_before`, newest first, off a covering index: O(count), however deep. Blocks: for a job's own thread.
  std::vector<Place> published_since_now(std::optional<Place> after, std::size_t count, WallTime not_before);

  // For seeding and import: inserts published articles, in commits of at most 1,000 rows, and returns their
  // ids in order. Blocks: for commands, not for I/O threads.
  std::vector<Imported> create_published_many(std::span<const ImportedArticle> articles);

 private:
  boost::asio::awaitable<bool> is_read_a_lot(Id author);

  ArticleRepository& articles_;
  const ReadsOf reads_of_;
  const Clock& clock_;
};

}  // namespace weir::site::article

// ArticleRepository: where articles come from: the caches first, the store second. It alone knows how long a
// copy is kept and how heavy it is.
//
// Three caches. "article": the readers' copies, behind the filter of all ids that were ever created, shared by the
// nodes if they have a remote level. A copy
// whose content is over 1 MiB is served, not kept. "author_list": an author's first 100 summaries, and
// nothing else of a list. "author_article": an author's own copy, for a minute, for who opens what the list
// just showed. Every write drops what it made stale after its commit, even when the request that asked for it
// was cancelled meanwhile.
//
// Thread-safe. Throws weir::Unavailable when the store fails.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "site/article/article.h"
#include "site/article/article_store.h"
#include "weir/base/clock.h"
#include "weir/cache/id_filter.h"
#include "weir/cache/read_through.h"

namespace weir::cache {
class RemoteLevels;
}

namespace weir::site::article {

class ArticleRepository {
 public:
  template <class T>
  using awaitable = boost::asio::awaitable<T>;
  using Articles = cache::ReadThrough<Id, ReaderCopy>;
  using Edit = ArticleStore::Edit;

  // How long a readers' copy is kept; put ahead for an author who is read a lot; loaded after a list.
  static constexpr std::chrono::minutes kTtl{10};
  static constexpr std::chrono::minutes kLongTtl{60};
  static constexpr std::chrono::minutes kPreloadTtl{1};
  // Contents above it are served, not cached.
  static constexpr std::size_t kMaxCachedContent = std::size_t{1} << 20;
  // What is cached of an author's list.
  static constexpr std::size_t kCachedSummaries = 100;

  struct Options {
    std::size_t article_bytes = std::size_t{64} << 20;        // of the cache "article"
    std::size_t author_list_bytes = std::size_t{8} << 20;     // of "author_list"
    std::size_t author_article_bytes = std::size_t{8} << 20;  // of "author_article"
    std::uint64_t expected_articles = 1'000'000;              // for the filter; more is fine
    const Clock* clock = &Clock::system();
    const cache::RemoteLevels* remote = nullptr;  // none: this process alone
  };

  // `loads` runs the loads, see ReadThrough. What it is given must outlive it.
  ArticleRepository(ArticleStore& store, Options options, boost::asio::any_io_executor loads);
  ~ArticleRepository();
  ArticleRepository(const ArticleRepository&) = delete;
  ArticleRepository& operator=(const ArticleRepository&) = delete;

  // Begins to fill the filter in the background. Until it is filled it denies nothing.
  void start();
  // Ends every wait with Unavailable. Before the executors of the waiters end.
  void stop();

  // The readers' side: as ArticleService tells.
  std::optional<ReaderCopyPtr> find(Id article);
  awaitable<ReaderCopyPtr> read(Id article);
  awaitable<Listing> newest(NewestSlice slice);
  awaitable<std::vector<Summary>> summaries(std::vector<Id> articles);
  // Loads into the cache for kPreloadTtl, unless it is there.
  awaitable<void> preload(Id article);
  awaitable<void> preload_own(Id article);

  // The author's side.
  awaitable<OwnArticle> insert(OwnArticle article);
  awaitable<Changed> edit(Edit edit);
  // What publishing leaves to be put into the cache: the copy, and the write that is refused when another comes
  // between.
  struct Ahead {
    ReaderCopyPtr copy;
    Articles::Write write;
  };
  struct Published {
    Changed changed;
    std::optional<Ahead> ahead;  // when it was done
  };
  awaitable<Published> publish(Id author, Id article, WallTime now);
  awaitable<void> fill(Ahead ahead, std::chrono::minutes ttl);
  awaitable<Changed> withdraw(Id author, Id article, WallTime now);
  awaitable<Outcome> remove(Id author, Id article);
  awaitable<std::shared_ptr<const OwnArticle>> own(Id article);
  awaitable<Listing> list_own(Id author, OwnSlice slice);

  // These block; not for I/O threads.
  std::vector<Place> places_now(std::optional<Place> after, std::size_t count, WallTime not_before);
  std::vector<Imported> insert_published_now(std::span<const ImportedArticle> articles);

  bool filter_filled() const { return filter_.filled(); }

 private:
  // An author's first summaries; `more` and `total` tell about those behind.
  using AuthorList = Listing;

  // After the commit of writes to the authors' copies.
  awaitable<void> forget_own(std::vector<Id> authors, std::vector<Id> articles);
  // The same and the readers' copies, for who may block.
  void forget_now(std::vector<Id> authors, std::vector<Id> articles);

  ArticleStore& store_;
  const boost::asio::any_io_executor loads_;
  cache::IdFilter filter_;
  Articles articles_;
  cache::ReadThrough<Id, AuthorList> lists_;
  cache::ReadThrough<Id, OwnArticle> own_;
};

}  // namespace weir::site::article

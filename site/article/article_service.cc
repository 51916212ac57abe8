#include "site/article/article_service.h"

#include <unordered_map>
#include <utility>

#include "site/article/article_repository.h"
#include "weir/telemetry/metrics.h"

namespace weir::site::article {
namespace {

template <class T>
using awaitable = boost::asio::awaitable<T>;

// The summaries in the order of the ids; ids without one are left out.
std::vector<Summary> in_order(std::span<const Id> ids, std::vector<Summary> found) {
  std::unordered_map<Id, Summary*> by_id;
  for (Summary& summary : found) by_id.emplace(summary.id, &summary);
  std::vector<Summary> result;
  result.reserve(found.size());
  for (const Id id : ids)
    if (const auto at = by_id.find(id); at != by_id.end()) result.push_back(*at->second);
  return result;
}

}  // namespace

ArticleService::ArticleService(ArticleRepository& articles, ReadsOf reads_of, const Clock& clock)
    : articles_(articles), reads_of_(std::move(reads_of)), clock_(clock) {}

awaitable<OwnArticle> ArticleService::create(Id author, std::string title, std::string content) {
  OwnArticle article;
  article.author_id = author;
  article.abstract = abstract_of(content);
  article.title = std::move(title);
  article.content = std::move(content);
  article.updated_at = clock_.now();
  co_return co_await articles_.insert(std::move(article));
}

awaitable<Changed> ArticleService::edit(Id author, Id article, std::string title, std::string content,
                                        std::optional<std::vector<std::int64_t>> versions) {
  ArticleRepository::Edit edit{
      author,      article, std::move(title), abstract_of(content), std::move(content), std::move(versions),
      clock_.now()};
  co_return co_await articles_.edit(std::move(edit));
}

awaitable<Changed> ArticleService::publish(Id author, Id article) {
  auto published = co_await articles_.publish(author, article, clock_.now());
  if (published.ahead) {
    try {
      const bool a_lot = co_await is_read_a_lot(author);
      co_await articles_.fill(*std::move(published.ahead),
                              a_lot ? ArticleRepository::kLongTtl : ArticleRepository::kTtl);
    } catch (const std::exception& error) {
      telemetry::swallowed("publish_ahead", error);
    }
  }
  co_return std::move(published.changed);
}

awaitable<bool> ArticleService::is_read_a_lot(Id author) {
  if (!reads_of_) co_return false;
  try {
    const Listing list = co_await articles_.list_own(author, {.limit = ArticleRepository::kCachedSummaries});
    std::vector<Id> published;
    for (const Summary& item : list.items)
      if (item.status == Status::published) published.push_back(item.id);
    const std::int64_t reads = co_await reads_of_(std::move(published));
    co_return reads >= kReadALot;
  } catch (const std::exception& error) {
    // Then the copy is kept as long as any other.
    telemetry::swallowed("reads_of_author", error);
  }
  co_return false;
}

awaitable<Changed> ArticleService::withdraw(Id author, Id article) {
  co_return co_await articles_.withdraw(author, article, clock_.now());
}

awaitable<Outcome> ArticleService::remove(Id author, Id article) {
  co_return co_await articles_.remove(author, article);
}

awaitable<ArticleService::Own> ArticleService::own(Id author, Id article) {
  auto found = co_await articles_.own(article);
  if (!found) co_return Own{Outcome::not_found, nullptr};
  if (found->author_id != author) co_return Own{Outcome::not_author, nullptr};
  co_return Own{Outcome::done, std::move(found)};
}

awaitable<Listing> ArticleService::mine(Id author, OwnSlice slice) {
  co_return co_await articles_.list_own(author, slice);
}

std::optional<ReaderCopyPtr> ArticleService::find(Id article) {
  return articles_.find(article);
}

awaitable<ReaderCopyPtr> ArticleService::read(Id article) {
  co_return co_await articles_.read(article);
}

awaitable<bool> ArticleService::exists(Id article) {
  if (const auto known = articles_.find(article)) co_return *known != nullptr;
  co_return (co_await articles_.read(article)) != nullptr;
}

awaitable<Listing> ArticleService::newest(NewestSlice slice) {
  co_return co_await articles_.newest(slice);
}

awaitable<std::vector<Summary>> ArticleService::summaries(std::vector<Id> articles) {
  auto found = co_await articles_.summaries(articles);
  co_return in_order(articles, std::move(found));
}

awaitable<void> ArticleService::preload(Id article) {
  try {
    co_await articles_.preload(article);
  } catch (const std::exception& error) {
    telemetry::swallowed("preload", error);
  }
}

awaitable<void> ArticleService::preload_own(Id article) {
  try {
    co_await articles_.preload_own(article);
  } catch (const std::exception& error) {
    telemetry::swallowed("preload", error);
  }
}

std::vector<Place> ArticleService::published_since_now(std::optional<Place> after, std::size_t count,
                                                       WallTime not_before) {
  return articles_.places_now(after, count, not_before);
}

std::vector<Imported> ArticleService::create_published_many(std::span<const ImportedArticle> articles) {
  return articles_.insert_published_now(articles);
}

}  // namespace weir::site::article

#include "site/article/article_repository.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <iterator>
#include <utility>

#include "site/article/article_codec.h"
#include "weir/base/fault.h"
#include "weir/base/offload.h"
#include "weir/cache/remote_levels.h"
#include "weir/telemetry/metrics.h"

namespace weir::site::article {
namespace {

template <class T>
using awaitable = boost::asio::awaitable<T>;

// The caches' own bound on one entry: above what the heaviest may weigh (1 MiB of control characters is 6 MiB
// of JSON; a hundred of the longest titles are 4 MB), below what the weighers call too heavy.
constexpr std::size_t kMaxEntryWeight = std::size_t{16} << 20;
constexpr std::size_t kTooHeavy = kMaxEntryWeight + 1;

std::size_t weigh_copy(const Id&, const ReaderCopy& copy) {
  return copy.content_bytes() > ArticleRepository::kMaxCachedContent ? kTooHeavy : copy.weight();
}

std::size_t weigh_own(const Id&, const OwnArticle& article) {
  if (article.content.size() > ArticleRepository::kMaxCachedContent) return kTooHeavy;
  return sizeof(OwnArticle) + article.title.capacity() + article.abstract.capacity() +
         article.content.capacity();
}

std::size_t weigh_list(const Id&, const Listing& list) {
  std::size_t bytes = sizeof(Listing) + list.items.capacity() * sizeof(Summary);
  for (const Summary& item : list.items) bytes += item.title.capacity() + item.abstract.capacity();
  return bytes;
}

// What the slice asks for out of the list's beginning, if it lies within.
std::optional<Listing> cut_out(const Listing& list, const OwnSlice& slice) {
  const auto& items = list.items;
  std::size_t begin = 0;
  if (slice.after) {
    const auto at = std::ranges::find(items, *slice.after, &Summary::id);
    if (at == items.end()) return std::nullopt;
    begin = static_cast<std::size_t>(at - items.begin()) + 1;
  } else {
    begin = std::min<std::uint64_t>(slice.offset, items.size());
    if (list.more && slice.offset > items.size()) return std::nullopt;
  }
  const std::size_t end = std::min(items.size(), begin + slice.limit);
  if (list.more && end - begin < slice.limit) return std::nullopt;
  Listing part;
  part.items.assign(items.begin() + static_cast<std::ptrdiff_t>(begin),
                    items.begin() + static_cast<std::ptrdiff_t>(end));
  part.more = list.more || end < items.size();
  if (slice.with_total) part.total = list.total;
  return part;
}

cache::IdFilter::Options filter_options(const ArticleRepository::Options& options) {
  cache::IdFilter::Options filter;
  filter.name = "article";
  filter.expected = options.expected_articles;
  filter.clock = options.clock;
  return filter;
}

template <class V>
typename cache::ReadThrough<Id, V>::Options cache_options(
    std::string name, std::size_t capacity, std::chrono::minutes ttl, const Clock* clock,
    std::function<std::size_t(const Id&, const V&)> weigher, cache::IdFilter* filter) {
  typename cache::ReadThrough<Id, V>::Options options;
  options.name = std::move(name);
  options.capacity = capacity;
  options.ttl = ttl;
  options.max_entry_weight = kMaxEntryWeight;
  options.weigher = std::move(weigher);
  options.clock = clock;
  if (filter) {
    options.membership = [filter](const Id& id) { return filter->membership(id); };
    options.membership_at_once = [filter](const Id& id) { return filter->known(id); };
  }
  return options;
}

// The readers' copies are what nodes share. An author's own list and articles are read by one person, so each node
// keeps its own; but all are told of writes.
ArticleRepository::Articles::Options shared(ArticleRepository::Articles::Options options,
                                            const cache::RemoteLevels* levels) {
  // What a copy has beside its content: at most a title and an abstract, and some escapes.
  constexpr std::size_t kBeside = std::size_t{128} << 10;
  if (levels != nullptr)
    levels->give(options, reader_copy_codec(),
                 {.version = kReaderCopyFormat, .max_bytes = ArticleRepository::kMaxCachedContent + kBeside});
  return options;
}
template <class Options>
Options told(Options options, const cache::RemoteLevels* levels) {
  if (levels != nullptr) levels->give_feed(options);
  return options;
}

}  // namespace

ArticleRepository::ArticleRepository(ArticleStore& store, Options options, boost::asio::any_io_executor loads)
    : store_(store),
      loads_(loads),
      filter_(filter_options(options),
              {.read_ids = [&store](Id after, std::size_t limit) { return store.ids_above(after, limit); },
               .highest_id = [&store] { return store.highest_id(); },
               .older_transactions_ended = [&store] { return store.creations_ended(); }},
              loads),
      articles_(
          shared(cache_options<ReaderCopy>("article", options.article_bytes, kTtl, options.clock, weigh_copy,
                                           &filter_),
                 options.remote),
          [&store](Id id) -> awaitable<std::optional<ReaderCopy>> {
            const auto copy = co_await store.find_published(id);
            if (!copy) co_return std::nullopt;
            co_return ReaderCopy(*copy);
          },
          loads),
      lists_(
          told(cache_options<AuthorList>("author_list", options.author_list_bytes, kTtl, options.clock,
                                         weigh_list, nullptr),
               options.remote),
          [&store](Id author) -> awaitable<std::optional<AuthorList>> {
            co_return co_await store.list_own(author, {.limit = kCachedSummaries, .with_total = true});
          },
          loads),
      own_(
          told(cache_options<OwnArticle>("author_article", options.author_article_bytes, kPreloadTtl,
                                         options.clock, weigh_own, &filter_),
               options.remote),
          [&store](Id id) { return store.find_own(id); }, loads) {}

ArticleRepository::~ArticleRepository() {
  stop();
}

void ArticleRepository::start() {
  filter_.start();
}

void ArticleRepository::stop() {
  filter_.stop();
  articles_.stop();
  lists_.stop();
  own_.stop();
}

std::optional<ReaderCopyPtr> ArticleRepository::find(Id article) {
  auto found = articles_.find(article);
  if (!found) return std::nullopt;
  return std::move(found->value);
}

awaitable<ReaderCopyPtr> ArticleRepository::read(Id article) {
  auto found = co_await articles_.get(article);
  co_return std::move(found.value);
}

awaitable<Listing> ArticleRepository::newest(NewestSlice slice) {
  co_return co_await store_.newest(slice);
}

awaitable<std::vector<Summary>> ArticleRepository::summaries(std::vector<Id> articles) {
  std::vector<Summary> result;
  for (std::size_t begin = 0; begin < articles.size(); begin += ArticleStore::kMaxBatch) {
    const std::size_t end = std::min(articles.size(), begin + ArticleStore::kMaxBatch);
    std::vector<Id> part(articles.begin() + static_cast<std::ptrdiff_t>(begin),
                         articles.begin() + static_cast<std::ptrdiff_t>(end));
    auto found = co_await store_.summaries(std::move(part));
    std::ranges::move(found, std::back_inserter(result));
  }
  co_return result;
}

awaitable<void> ArticleRepository::preload(Id article) {
  if (!articles_.find(article)) co_await articles_.get(article, kPreloadTtl);
}

awaitable<void> ArticleRepository::preload_own(Id article) {
  if (!own_.find(article)) co_await own_.get(article);
}

awaitable<void> ArticleRepository::forget_own(std::vector<Id> authors, std::vector<Id> articles) {
  co_await lists_.invalidate_all(std::move(authors));
  co_await own_.invalidate_all(std::move(articles));
}

awaitable<OwnArticle> ArticleRepository::insert(OwnArticle article) {
  co_await without_cancellation();
  OwnArticle inserted = co_await store_.insert(std::move(article));
  filter_.created(inserted.id);
  // Somebody may have asked for the id before there was one.
  co_await articles_.invalidate_all({inserted.id});
  co_await forget_own({inserted.author_id}, {inserted.id});
  co_return inserted;
}

awaitable<Changed> ArticleRepository::edit(Edit edit) {
  co_await without_cancellation();
  const Id author = edit.author, article = edit.article;
  Changed changed = co_await store_.edit(std::move(edit));
  if (changed.outcome == Outcome::done) co_await forget_own({author}, {article});
  co_return changed;
}

awaitable<ArticleRepository::Published> ArticleRepository::publish(Id author, Id article, WallTime now) {
  co_await without_cancellation();
  // Who isn't the author changes nothing, and mustn't take the lease of a load that others wait for.
  const auto known = co_await own_.get(article);
  Articles::Write write;
  const bool ahead = known && known->author_id == author;
  if (ahead) write = co_await articles_.begin_write(article);
  auto published = co_await store_.publish(author, article, now);
  Published result{std::move(published.changed), std::nullopt};
  if (result.changed.outcome != Outcome::done) {
    if (ahead) write.abandon();
    co_return result;
  }
  if (ahead) {
    co_await write.invalidate();
  } else {
    co_await articles_.invalidate_all({article});
  }
  co_await forget_own({author}, {article});
  if (ahead && published.copy)
    result.ahead.emplace(std::make_shared<const ReaderCopy>(*published.copy), std::move(write));
  co_return result;
}

awaitable<void> ArticleRepository::fill(Ahead ahead, std::chrono::minutes ttl) {
  co_await ahead.write.publish(std::move(ahead.copy), ttl);
}

awaitable<Changed> ArticleRepository::withdraw(Id author, Id article, WallTime now) {
  co_await without_cancellation();
  Changed changed = co_await store_.withdraw(author, article, now);
  if (changed.outcome == Outcome::done) {
    co_await articles_.invalidate_all({article});
    co_await forget_own({author}, {article});
  }
  co_return changed;
}

awaitable<Outcome> ArticleRepository::remove(Id author, Id article) {
  co_await without_cancellation();
  const Outcome outcome = co_await store_.remove(author, article);
  if (outcome == Outcome::done) {
    co_await articles_.invalidate_all({article});
    co_await forget_own({author}, {article});
  }
  co_return outcome;
}

awaitable<std::shared_ptr<const OwnArticle>> ArticleRepository::own(Id article) {
  auto found = co_await own_.get(article);
  co_return std::move(found.value);
}

awaitable<Listing> ArticleRepository::list_own(Id author, OwnSlice slice) {
  if (slice.after || slice.offset + slice.limit <= kCachedSummaries) {
    try {
      const auto list = co_await lists_.get(author);
      if (list)
        if (auto part = cut_out(*list, slice)) co_return *std::move(part);
    } catch (const Unavailable& error) {
      telemetry::swallowed("author_list", error);
    }
  }
  co_return co_await store_.list_own(author, slice);
}

std::vector<Place> ArticleRepository::places_now(std::optional<Place> after, std::size_t count,
                                                 WallTime not_before) {
  return store_.places_now(after, count, not_before);
}

void ArticleRepository::forget_now(std::vector<Id> authors, std::vector<Id> articles) {
  boost::asio::co_spawn(loads_, articles_.invalidate_all(articles), boost::asio::use_future).get();
  boost::asio::co_spawn(loads_, forget_own(std::move(authors), std::move(articles)), boost::asio::use_future)
      .get();
}

std::vector<Imported> ArticleRepository::insert_published_now(std::span<const ImportedArticle> articles) {
  std::vector<Imported> result;
  result.reserve(articles.size());
  while (!articles.empty()) {
    const auto part = articles.first(std::min(articles.size(), ArticleStore::kMaxBatch));
    const auto inserted = store_.insert_published_now(part);
    std::vector<Id> authors, fresh;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!inserted[i].inserted) continue;
      filter_.created(inserted[i].id);
      authors.push_back(part[i].author_id);
      fresh.push_back(inserted[i].id);
    }
    if (!fresh.empty()) forget_now(std::move(authors), std::move(fresh));
    std::ranges::copy(inserted, std::back_inserter(result));
    articles = articles.subspan(part.size());
  }
  return result;
}

}  // namespace weir::site::article

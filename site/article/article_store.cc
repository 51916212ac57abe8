#include "site/article/article_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "site/article/article_queries.h"
#include "weir/sql/placeholders.h"
#include "weir/sql/transaction.h"

namespace weir::site::article {
namespace {

using sql::Row;
using sql::Session;

Summary read_summary(const Row& row) {
  Summary summary;
  summary.id = row.get<Id>(0);
  summary.author_id = row.get<Id>(1);
  summary.title = row.get<std::string>(2);
  summary.abstract = row.get<std::string>(3);
  summary.published_at = row.get<std::optional<WallTime>>(4);
  summary.updated_at = row.get<WallTime>(5);
  summary.version = row.get<std::int64_t>(6);
  return summary;
}

Summary read_own_summary(const Row& row) {
  Summary summary = read_summary(row);
  summary.status = static_cast<Status>(row.get<int>(7));
  return summary;
}

OwnArticle read_own(const Row& row) {
  Summary summary = read_own_summary(row);
  OwnArticle article;
  article.id = summary.id;
  article.author_id = summary.author_id;
  article.title = std::move(summary.title);
  article.abstract = std::move(summary.abstract);
  article.status = *summary.status;
  article.version = summary.version;
  article.published_at = summary.published_at;
  article.updated_at = summary.updated_at;
  article.content = row.get<std::string>(8);
  return article;
}

PublishedArticle read_published(const Row& row) {
  Summary summary = read_summary(row);
  PublishedArticle article;
  article.id = summary.id;
  article.author_id = summary.author_id;
  article.title = std::move(summary.title);
  article.abstract = std::move(summary.abstract);
  article.version = summary.version;
  article.published_at = *summary.published_at;
  article.updated_at = summary.updated_at;
  article.content = row.get<std::string>(7);
  return article;
}

// The author's copy, if `author` may change it.
Changed state_for(Session& session, Id author, Id article) {
  auto state = session.one(queries::kSummaryOfOwn, read_own_summary, article);
  if (!state) return {Outcome::not_found, {}};
  if (state->author_id != author) return {Outcome::not_author, {}};
  return {Outcome::done, std::move(*state)};
}

// The copy as the statement that followed state_for left it.
Changed changed_to(Session& session, Id article) {
  return {Outcome::done, session.one(queries::kSummaryOfOwn, read_own_summary, article).value()};
}

std::int64_t total_of(Session& session, std::string_view list, Id owner) {
  return session.one(queries::kTotal, sql::first<std::int64_t>, list, owner).value_or(0);
}

Changed edit_in(Session& session, const ArticleStore::Edit& edit) {
  Changed state = state_for(session, edit.author, edit.article);
  if (state.outcome != Outcome::done) return state;
  const auto& wanted = edit.versions;
  if (wanted && std::ranges::find(*wanted, state.article.version) == wanted->end())
    return {Outcome::version_mismatch, {}};
  session.execute(queries::kEdit, edit.title, edit.abstract, edit.content, edit.now, edit.article);
  return changed_to(session, edit.article);
}

ArticleStore::Published publish_in(Session& session, Id author, Id article, WallTime now) {
  Changed state = state_for(session, author, article);
  if (state.outcome != Outcome::done) return {std::move(state), std::nullopt};
  const WallTime first = state.article.published_at.value_or(now);
  session.execute(queries::kSetStatus, static_cast<int>(Status::published), first, now, article);
  session.execute(queries::kCopyToReaders, article);
  if (state.article.status != Status::published)
    session.execute(queries::kCountUp, queries::kPublishedList, 0, 1);
  return {changed_to(session, article), session.one(queries::kFindPublished, read_published, article)};
}

Changed withdraw_in(Session& session, Id author, Id article, WallTime now) {
  Changed state = state_for(session, author, article);
  if (state.outcome != Outcome::done || state.article.status != Status::published) return state;
  session.execute(queries::kTakeFromReaders, article);
  session.execute(queries::kSetStatus, static_cast<int>(Status::withdrawn), state.article.published_at, now,
                  article);
  session.execute(queries::kCountDown, queries::kPublishedList, 0);
  return changed_to(session, article);
}

Outcome remove_in(Session& session, Id author, Id article) {
  const Changed state = state_for(session, author, article);
  if (state.outcome != Outcome::done) return state.outcome;
  if (state.article.status == Status::published) {
    session.execute(queries::kTakeFromReaders, article);
  }
  session.execute(queries::kRemove, article);
  // In the order of their keys, as everybody takes them; last, because all who publish take the second.
  session.execute(queries::kCountDown, queries::kOwnList, author);
  if (state.article.status == Status::published)
    session.execute(queries::kCountDown, queries::kPublishedList, 0);
  return Outcome::done;
}

// Whether there is nothing to read at this offset, which the count tells without walking there.
bool ends_before(Session& session, std::string_view list, Id owner, std::uint64_t offset, Listing& listing) {
  if (!listing.total && offset == 0) return false;
  const std::int64_t total = listing.total.value_or(total_of(session, list, owner));
  if (offset >= static_cast<std::uint64_t>(total)) return true;
  listing.too_deep = offset > kMaxDepth;
  return listing.too_deep;
}

// Asked for was one row more than wanted: whether it came tells whether there are more.
void cut(Listing& listing, std::size_t limit) {
  listing.more = listing.items.size() > limit;
  if (listing.more) listing.items.resize(limit);
}

Listing newest_in(Session& session, const NewestSlice& slice) {
  const sql::Transaction snapshot(session);  // the total and the rows are of one moment
  Listing listing;
  if (slice.with_total) listing.total = total_of(session, queries::kPublishedList, 0);
  const std::size_t wanted = slice.limit + 1;
  if (slice.after) {
    listing.items = session.all(queries::kNewestAfter, read_summary, slice.after->published_at,
                                slice.after->published_at, slice.after->id, wanted);
  } else if (!ends_before(session, queries::kPublishedList, 0, slice.offset, listing)) {
    listing.items = session.all(queries::kNewestFrom, read_summary, wanted, slice.offset);
  }
  cut(listing, slice.limit);
  return listing;
}

Listing list_own_in(Session& session, Id author, const OwnSlice& slice) {
  const sql::Transaction snapshot(session);
  Listing listing;
  if (slice.with_total) listing.total = total_of(session, queries::kOwnList, author);
  const std::size_t wanted = slice.limit + 1;
  if (slice.after) {
    listing.items = session.all(queries::kOwnAfter, read_own_summary, author, *slice.after, wanted);
  } else if (!ends_before(session, queries::kOwnList, author, slice.offset, listing)) {
    listing.items = session.all(queries::kOwnFrom, read_own_summary, author, wanted, slice.offset);
  }
  cut(listing, slice.limit);
  return listing;
}

std::vector<Summary> summaries_in(Session& session, std::span<const Id> articles) {
  if (articles.empty()) return {};
  const sql::Query query{"article", "summaries",
                         queries::kSummaries + sql::placeholders(articles.size()) + ")"};
  return session.all_of(query, std::vector<sql::Value>(articles.begin(), articles.end()), read_summary);
}

}  // namespace

void enter_gate(Session& session) {
  if (session.dialect() == sql::Dialect::mysql) session.execute(queries::kEnterGate);
}

template <class T>
using awaitable = boost::asio::awaitable<T>;

ArticleStore::ArticleStore(sql::Database& database) : database_(database) {
  database_.migrate("article", queries::kMigrations);
}

awaitable<OwnArticle> ArticleStore::insert(OwnArticle article) {
  co_return co_await database_.write([article = std::move(article)](Session& session) {
    enter_gate(session);
    OwnArticle made = article;
    made.id = session
                  .execute(queries::kInsert, article.author_id, article.title, article.abstract,
                           static_cast<int>(article.status), article.version, article.published_at,
                           article.updated_at, std::optional<std::string>(), article.content)
                  .last_id;
    session.execute(queries::kCountUp, queries::kOwnList, article.author_id, 1);
    return made;
  });
}

awaitable<Changed> ArticleStore::edit(Edit edit) {
  co_return co_await database_.write(
      [edit = std::move(edit)](Session& session) { return edit_in(session, edit); });
}

awaitable<ArticleStore::Published> ArticleStore::publish(Id author, Id article, WallTime now) {
  co_return co_await database_.write(
      [=](Session& session) { return publish_in(session, author, article, now); });
}

awaitable<Changed> ArticleStore::withdraw(Id author, Id article, WallTime now) {
  co_return co_await database_.write(
      [=](Session& session) { return withdraw_in(session, author, article, now); });
}

awaitable<Outcome> ArticleStore::remove(Id author, Id article) {
  co_return co_await database_.write([=](Session& session) { return remove_in(session, author, article); });
}

awaitable<std::optional<OwnArticle>> ArticleStore::find_own(Id article) {
  co_return co_await database_.read(
      [article](Session& session) { return session.one(queries::kFindOwn, read_own, article); });
}

awaitable<std::optional<PublishedArticle>> ArticleStore::find_published(Id article) {
  co_return co_await database_.read(
      [article](Session& session) { return session.one(queries::kFindPublished, read_published, article); });
}

awaitable<Listing> ArticleStore::newest(NewestSlice slice) {
  co_return co_await database_.read([slice](Session& session) { return newest_in(session, slice); });
}

awaitable<Listing> ArticleStore::list_own(Id author, OwnSlice slice) {
  co_return co_await database_.read(
      [author, slice](Session& session) { return list_own_in(session, author, slice); });
}

awaitable<std::vector<Summary>> ArticleStore::summaries(std::vector<Id> articles) {
  co_return co_await database_.read(
      [articles = std::move(articles)](Session& session) { return summaries_in(session, articles); });
}

awaitable<std::vector<Id>> ArticleStore::ids_above(Id after, std::size_t count) {
  co_return co_await database_.read(
      [=](Session& session) { return session.all(queries::kIdsAbove, sql::first<Id>, after, count); });
}

awaitable<Id> ArticleStore::highest_id() {
  co_return co_await database_.read([](Session& session) {
    const auto highest = session.one(queries::kHighestId, sql::first<std::optional<Id>>);
    return highest.value_or(std::nullopt).value_or(0);
  });
}

awaitable<void> ArticleStore::creations_ended() {
  const auto dialect = co_await database_.read([](Session& session) { return session.dialect(); });
  if (dialect == sql::Dialect::mysql)
    co_await database_.write([](Session& session) { session.execute(queries::kCloseGate); });
}

std::vector<Place> ArticleStore::places_now(std::optional<Place> after, std::size_t count,
                                            WallTime not_before) {
  const Place from = after.value_or(Place{WallTime::max(), std::numeric_limits<Id>::max()});
  const auto read = [](const Row& row) { return Place{row.get<WallTime>(0), row.get<Id>(1)}; };
  return database_.read_now([&](Session& session) {
    return session.all(queries::kPlaces, read, from.published_at, from.published_at, from.id, not_before,
                       count);
  });
}

}  // namespace weir::site::article

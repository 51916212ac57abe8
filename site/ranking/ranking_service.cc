#include "site/ranking/ranking_service.h"

#include <algorithm>
#include <utility>

#include "site/ranking/batch_likes.h"
#include "site/ranking/ranking_repository.h"
#include "weir/base/fault.h"
#include "weir/ranking/top_k.h"
#include "weir/telemetry/metrics.h"

namespace weir::site::ranking {
namespace {

// A list that is so many intervals old should have been replaced, and is stale.
constexpr int kStaleAfter = 3;
// As long as an article that was withdrawn may still be listed.
constexpr auto kRememberEvery = RankingRepository::kSummaryTtl;

}  // namespace

RankingService::RankingService(RankingRepository& rankings, user::UserService& users,
                               interaction::InteractionService& interactions, Options options,
                               const Clock& clock)
    : rankings_(rankings), users_(users), interactions_(interactions), options_(options), clock_(clock) {}

boost::asio::awaitable<std::optional<RankingService::Shown>> RankingService::board(std::string name,
                                                                                   std::size_t limit) {
  if (name != kHot) co_return std::nullopt;
  const auto edition = rankings_.edition();
  Shown shown;
  shown.name = std::move(name);
  shown.model = edition.value ? edition.value->model : std::string(weir::ranking::HackerNews::kName);
  shown.computed_at = edition.computed_at;
  shown.stale = edition.stale || clock_.now() - *edition.computed_at > kStaleAfter * options_.every;
  if (!edition.value || edition.value->items.empty()) co_return shown;
  try {
    shown.rows = co_await rows_of(edition.version, limit);
  } catch (const Unavailable& error) {
    telemetry::swallowed("ranking.board", error);
    const std::lock_guard lock(mutex_);
    if (last_.rows.empty()) throw;
    shown.rows.assign(last_.rows.begin(),
                      last_.rows.begin() + static_cast<std::ptrdiff_t>(std::min(limit, last_.rows.size())));
    shown.stale = true;
  }
  co_return shown;
}

boost::asio::awaitable<std::vector<RankingService::Row>> RankingService::rows_of(std::uint64_t version,
                                                                                 std::size_t limit) {
  const auto listed = co_await rankings_.listed(version);
  const std::span<const Listed> some(listed->data(), std::min(limit, listed->size()));
  std::vector<Id> ids, authors;
  for (const Listed& item : some) {
    ids.push_back(item.article.id);
    authors.push_back(item.article.author_id);
  }
  const auto counts = co_await interactions_.counts_of(std::string(article::kBiz), std::move(ids));
  const auto people = co_await users_.get_all(authors);
  std::vector<Row> rows;
  rows.reserve(some.size());
  for (std::size_t i = 0; i < some.size(); ++i)
    rows.push_back({static_cast<int>(i) + 1, some[i].ranked.score, some[i].article, people[i], counts[i]});
  remember(rows, some.size() == listed->size());
  co_return rows;
}

// The longest of late, and not each of them: copying costs more than what is shown lives.
void RankingService::remember(std::span<const Row> rows, bool all) {
  const WallTime now = clock_.now();
  const std::lock_guard lock(mutex_);
  const bool longer = rows.size() > last_.rows.size();
  if (!longer && (!all && rows.size() < last_.rows.size())) return;
  if (!longer && now - last_.at < kRememberEvery) return;
  last_ = {now, {rows.begin(), rows.end()}};
}

Ranking RankingService::compute(WallTime now, const std::function<void()>& check) const {
  weir::ranking::TopK<Ranked, Better> top(std::min(options_.top, kMaxTop));
  const WallTime not_before = now - options_.window;
  BatchLikes likes_of(rankings_);
  std::optional<Candidate> after;
  for (;;) {
    check();
    const auto batch = rankings_.next_batch_now(after, kBatch, not_before);
    const auto& likes = likes_of.of(batch);
    for (std::size_t i = 0; i < batch.size(); ++i)
      top.offer(
          {batch[i].id, model_.score(likes[i], batch[i].published_at, now), likes[i], batch[i].published_at});
    if (batch.size() < kBatch) break;
    after = batch.back();
    if (top.full() && !likes_of.narrow(model_.likes_needed(top.worst()->score, now - after->published_at)))
      break;
  }
  return {std::string(weir::ranking::HackerNews::kName), top.take()};
}

void RankingService::refresh_hot_now(const std::function<void()>& check) {
  try {
    const WallTime now = clock_.now();
    rankings_.publish_now(compute(now, check), now);
  } catch (...) {
    rankings_.mark_stale();
    throw;
  }
}

bool RankingService::look_now() {
  return rankings_.look_now();
}

}  // namespace weir::site::ranking

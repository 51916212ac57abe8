#include "site/ranking/ranking_service.h"

#include <algorithm>
#include <utility>

#include "site/ranking/batch_likes.h"
#include "site/ranking/ranking_repository.h"
#include "weir/ranking/top_k.h"

namespace weir::site::ranking {
namespace {

// A list that is so many intervals old should have been replaced, and is stale.
constexpr int kStaleAfter = 3;

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

  const auto listed = co_await rankings_.listed(edition.version);
  const std::span<const Listed> some(listed->data(), std::min(limit, listed->size()));
  std::vector<Id> ids, authors;
  for (const Listed& item : some) {
    ids.push_back(item.article.id);
    authors.push_back(item.article.author_id);
  }
  const auto counts = co_await interactions_.counts_of(std::string(article::kBiz), std::move(ids));
  const auto people = co_await users_.get_all(authors);
  for (std::size_t i = 0; i < some.size(); ++i)
    shown.rows.push_back(
        {static_cast<int>(i) + 1, some[i].ranked.score, some[i].article, people[i], counts[i]});
  co_return shown;
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

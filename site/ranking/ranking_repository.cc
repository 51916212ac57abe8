#include "site/ranking/ranking_repository.h"

#include <unordered_map>
#include <utility>

namespace weir::site::ranking {

Sources sources_of(article::ArticleService& articles, interaction::InteractionService& interactions) {
  Sources sources;
  sources.next_batch = [&articles](std::optional<Candidate> after, std::size_t count, WallTime not_before) {
    std::optional<article::Place> place;
    if (after) place = article::Place{after->published_at, after->id};
    std::vector<Candidate> batch;
    batch.reserve(count);
    for (const auto& found : articles.published_since_now(place, count, not_before))
      batch.push_back({found.id, found.published_at});
    return batch;
  };
  sources.like_counts = [&interactions](std::span<const Id> ids) {
    return interactions.like_counts_now(article::kBiz, ids);
  };
  sources.liked_at_least = [&interactions](std::int64_t likes, std::size_t limit) {
    return interactions.liked_at_least_now(article::kBiz, likes, limit);
  };
  sources.summaries = [&articles](std::vector<Id> ids) { return articles.summaries(std::move(ids)); };
  return sources;
}

RankingRepository::RankingRepository(RankingStore& store, Sources sources, boost::asio::any_io_executor loads,
                                     const Clock& clock)
    : store_(store),
      sources_(std::move(sources)),
      listings_(
          {.name = "ranking",
           // A list of long titles; more than one edition is hardly ever there.
           .capacity = std::size_t{4} << 20,
           .ttl = kSummaryTtl,
           .jitter = 0,
           .weigher =
               [](std::uint64_t, const Listing& listing) {
                 std::size_t bytes = sizeof(Listing);
                 for (const Listed& item : listing)
                   bytes += sizeof item + item.article.title.capacity() + item.article.abstract.capacity();
                 return bytes;
               },
           .clock = &clock},
          [this](std::uint64_t) { return load_listing(); }, std::move(loads)) {
  look_now();
}

boost::asio::awaitable<std::optional<RankingRepository::Listing>> RankingRepository::load_listing() {
  const auto edition = board_.read();
  Listing listing;
  if (!edition.value || edition.value->items.empty()) co_return listing;
  std::unordered_map<Id, const Ranked*> ranked;
  std::vector<Id> ids;
  for (const Ranked& item : edition.value->items) {
    ids.push_back(item.id);
    ranked.emplace(item.id, &item);
  }
  for (auto& article : co_await sources_.summaries(std::move(ids)))
    if (const auto found = ranked.find(article.id); found != ranked.end())
      listing.push_back({*found->second, std::move(article)});
  co_return listing;
}

boost::asio::awaitable<std::shared_ptr<const std::vector<Listed>>> RankingRepository::listed(
    std::uint64_t version) {
  const auto found = co_await listings_.get(version);
  co_return found.value ? found.value : std::make_shared<const Listing>();
}

void RankingRepository::publish_now(Ranking ranking, WallTime computed_at) {
  const auto version = store_.save_now(kHot, ranking, computed_at);
  board_.publish(version, computed_at, std::make_shared<const Ranking>(std::move(ranking)));
}

// Only another version is taken: the one that is shown may have been marked stale, and stays so.
bool RankingRepository::look_now() {
  if (store_.version_now(kHot) == board_.read().version) return false;
  auto saved = store_.load_now(kHot);
  if (!saved) return false;
  return board_.publish(saved->version, saved->computed_at,
                        std::make_shared<const Ranking>(std::move(saved->ranking)));
}

}  // namespace weir::site::ranking

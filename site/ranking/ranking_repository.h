// RankingRepository: where rankings and what they are made of come from. The edition that readers see is in
// memory, read without a lock; the store has the last good one.
//
// Thread-safe. What blocks ends in _now and is for jobs, never for I/O threads.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "site/article/article_service.h"
#include "site/interaction/interaction_service.h"
#include "site/ranking/ranking.h"
#include "site/ranking/ranking_store.h"
#include "weir/cache/read_through.h"
#include "weir/ranking/board.h"

namespace weir::site::ranking {

// What a ranking is made of.
struct Sources {
  // Up to `count` candidates behind `after` (from the newest when empty) that are not older than
  // `not_before`, newest first. Blocks.
  std::function<std::vector<Candidate>(std::optional<Candidate> after, std::size_t count,
                                       WallTime not_before)>
      next_batch;
  // How much each is liked, in their order, by one query. Blocks.
  std::function<std::vector<std::int64_t>(std::span<const Id>)> like_counts;
  // All that are liked at least so often, in no order; nothing when they are more than `limit`. Blocks.
  std::function<std::optional<std::vector<std::pair<Id, std::int64_t>>>(std::int64_t likes,
                                                                        std::size_t limit)>
      liked_at_least;
  // What readers see of each, in the order asked; those that aren't there any more are left out.
  std::function<boost::asio::awaitable<std::vector<article::Summary>>(std::vector<Id>)> summaries;
};
Sources sources_of(article::ArticleService& articles, interaction::InteractionService& interactions);

struct Listed {
  Ranked ranked;
  article::Summary article;
};

class RankingRepository {
 public:
  using Board = weir::ranking::Board<Ranking>;

  // How long a front page may still show what was withdrawn or renamed. It spares the store: however many ask
  // for the hot list, it is asked for the titles once in this time.
  static constexpr std::chrono::milliseconds kSummaryTtl{1'000};

  // Loads the last saved edition; blocks. Loads run on `loads`. The store must outlive the repository; the
  // sources are not called before the first use.
  RankingRepository(RankingStore& store, Sources sources, boost::asio::any_io_executor loads,
                    const Clock& clock = Clock::system());

  Board::Edition edition() const { return board_.read(); }
  // The items of that edition that readers can still see, best first. When another edition has come meanwhile
  // it may be that one's.
  boost::asio::awaitable<std::shared_ptr<const std::vector<Listed>>> listed(std::uint64_t version);

  std::vector<Candidate> next_batch_now(std::optional<Candidate> after, std::size_t count,
                                        WallTime not_before) const {
    return sources_.next_batch(after, count, not_before);
  }
  std::vector<std::int64_t> like_counts_now(std::span<const Id> ids) const {
    return sources_.like_counts(ids);
  }

  std::optional<std::vector<std::pair<Id, std::int64_t>>> liked_at_least_now(std::int64_t likes,
                                                                             std::size_t limit) const {
    return sources_.liked_at_least(likes, limit);
  }

  // Saves the ranking, then shows it.
  void publish_now(Ranking ranking, WallTime computed_at);
  // A refresh failed: readers keep what they have, and are told.
  void mark_stale() { board_.mark_stale(); }
  // Shows what another process has saved meanwhile; says whether there was something.
  bool look_now();

  // Ends the waits for summaries; see cache::ReadThrough::stop.
  void stop() { listings_.stop(); }

 private:
  using Listing = std::vector<Listed>;

  boost::asio::awaitable<std::optional<Listing>> load_listing();

  RankingStore& store_;
  const Sources sources_;
  Board board_;
  cache::ReadThrough<std::uint64_t, Listing> listings_;  // by the edition's version
};

}  // namespace weir::site::ranking

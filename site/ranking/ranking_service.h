// RankingService: the hot list, computed by a job and shown to everybody.
//
// It promises: a reader never waits for a computation, takes no lock and gets no error because one failed;
// the last good list stays, marked stale. Computing asks for counts by batches, never one by one
// (see batch_likes.h), and keeps memory for one batch and the best hundred, however many articles there are.
//
// Thread-safe. Faults of the store are exceptions (weir::Unavailable).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "site/article/article_service.h"
#include "site/interaction/interaction_service.h"
#include "site/ranking/ranking.h"
#include "site/user/user_service.h"
#include "weir/ranking/model.h"

namespace weir::site::ranking {

class RankingRepository;

class RankingService {
 public:
  // Articles of one batch: large enough that a batch's two queries cost little beside their rows, small
  // enough that it needs well under a megabyte.
  static constexpr std::size_t kBatch = 5'000;

  struct Options {
    std::size_t top = kMaxTop;
    std::chrono::milliseconds window = std::chrono::hours(7 * 24);  // older articles aren't ranked
    // How often it is computed. A list three times as old is stale, whichever process should have refreshed
    // it.
    std::chrono::milliseconds every = std::chrono::minutes(1);
  };

  RankingService(RankingRepository& rankings, user::UserService& users,
                 interaction::InteractionService& interactions, Options options,
                 const Clock& clock = Clock::system());
  RankingService(const RankingService&) = delete;
  RankingService& operator=(const RankingService&) = delete;

  struct Row {
    int rank = 0;  // from 1
    double score = 0;
    article::Summary article;
    user::UserPtr author;        // null when there is no such user any more
    interaction::Counts counts;  // as they are now
  };
  struct Shown {
    std::string name, model;
    std::optional<WallTime> computed_at;  // nothing before the first run
    bool stale = true;
    std::vector<Row> rows;
  };
  // The first `limit` places, with what is beside them. Articles that aren't there any more are left out, and
  // those behind move up. Nothing when there is no ranking of that name. While the store is away: what was shown
  // last, marked stale; throws Unavailable only if nothing ever was.
  boost::asio::awaitable<std::optional<Shown>> board(std::string name, std::size_t limit);

  // --- These block: for jobs, never an I/O thread ---

  // Walks the published articles from new to old, keeps the best, saves them and shows them. Calls `check`,
  // which may throw, before each batch. When anything fails the list that is shown stays, marked stale, and
  // the error goes on to the caller.
  void refresh_hot_now(const std::function<void()>& check = [] {});
  // Shows what another process has saved meanwhile; says whether there was something.
  bool look_now();

 private:
  // What to show while the store is away.
  struct LastShown {
    WallTime at{};
    std::vector<Row> rows;
  };

  Ranking compute(WallTime now, const std::function<void()>& check) const;
  boost::asio::awaitable<std::vector<Row>> rows_of(std::uint64_t version, std::size_t limit);
  void remember(std::span<const Row> rows, bool all);

  RankingRepository& rankings_;
  user::UserService& users_;
  interaction::InteractionService& interactions_;
  const Options options_;
  const Clock& clock_;
  const weir::ranking::HackerNews model_;
  std::mutex mutex_;
  LastShown last_;
};

}  // namespace weir::site::ranking

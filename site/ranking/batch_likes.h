// BatchLikes: how much the articles of one batch after another are liked, asked for as seldom as possible.
//
// A walk from new to old needs ever more likes to matter: what is older than the last batch enters the best
// hundred only with so many. As soon as few articles have that many, they are fetched once, and the batches
// that follow are looked up among them without a query; when there is none, the walk is over. So the result
// is the same as if every count had been asked for, and a window of a million articles costs little more than
// its first hours (this is how Fagin, Lotem and Naor's threshold algorithm stops: "Optimal Aggregation
// Algorithms for Middleware", 2001). Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "site/ranking/ranking_repository.h"

namespace weir::site::ranking {

class BatchLikes {
 public:
  // Articles that are worth being fetched at once: about a megabyte.
  static constexpr std::size_t kMaxFetched = 20'000;

  explicit BatchLikes(const RankingRepository& rankings) : rankings_(rankings) {}

  // In the batch's order, valid until the next call; what has fewer likes than matter may be told to have
  // none.
  const std::vector<std::int64_t>& of(std::span<const Candidate> batch);

  // From here on only what is liked at least so often matters. False when there is nothing like that.
  bool narrow(std::int64_t needed);

 private:
  const RankingRepository& rankings_;
  std::optional<std::unordered_map<Id, std::int64_t>> fetched_;
  std::int64_t tried_ = 1;  // with so many likes there were too many to fetch
  std::vector<Id> ids_;
  std::vector<std::int64_t> likes_;
};

}  // namespace weir::site::ranking

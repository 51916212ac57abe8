#include "site/ranking/batch_likes.h"

namespace weir::site::ranking {

const std::vector<std::int64_t>& BatchLikes::of(std::span<const Candidate> batch) {
  if (fetched_) {
    likes_.clear();
    for (const Candidate& candidate : batch) {
      const auto found = fetched_->find(candidate.id);
      likes_.push_back(found == fetched_->end() ? 0 : found->second);
    }
  } else {
    ids_.clear();
    for (const Candidate& candidate : batch) ids_.push_back(candidate.id);
    likes_ = rankings_.like_counts_now(ids_);
  }
  return likes_;
}

bool BatchLikes::narrow(std::int64_t needed) {
  // Asking again for hardly fewer would cost more than it saves.
  if (!fetched_ && needed / 2 >= tried_) {
    tried_ = needed;
    if (const auto found = rankings_.liked_at_least_now(needed, kMaxFetched))
      fetched_.emplace(found->begin(), found->end());
  }
  return !fetched_ || !fetched_->empty();
}

}  // namespace weir::site::ranking

// Score models: how hot something is, from how much it is liked and how old it is.
//
// A model is a plain value with a name and a pure function; thread-safe. A score is always a finite number,
// whatever comes in, because a single NaN would take the order of a whole ranking with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "weir/base/clock.h"

namespace weir::ranking {

// The formula that Hacker News made known: (likes - 1) / (hours + 2)^gravity. The author's own vote doesn't
// count (-1), the +2 keeps the first minutes from being infinitely hot, and gravity tells how fast the top
// sinks. (P. Graham, "news.arc"; described in A. Salihefendic, "How Hacker News ranking algorithm works",
// 2010.)
class HackerNews {
 public:
  static constexpr std::string_view kName = "hackernews";
  static constexpr double kDefaultGravity = 1.5;
  static constexpr double kMaxGravity = 10;

  // Throws Unusable when gravity isn't within 0 .. kMaxGravity.
  explicit HackerNews(double gravity = kDefaultGravity);

  // What is not published yet (a clock that was set back) counts as just published: age is clamped at zero.
  // About 3 ns with the default gravity, 20 ns with another.
  double score(std::int64_t likes, std::chrono::microseconds age) const;
  double score(std::int64_t likes, WallTime published_at, WallTime now) const;

  // How many likes something of that age needs at least to reach a positive score; never told too high, so
  // whatever has fewer certainly stays below. The older it is, the more it needs.
  std::int64_t likes_needed(double score, std::chrono::microseconds age) const;

  double gravity() const { return gravity_; }

 private:
  double decay(std::chrono::microseconds age) const;

  double gravity_;
};

}  // namespace weir::ranking

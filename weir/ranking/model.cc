#include "weir/ranking/model.h"

#include <algorithm>
#include <cmath>

#include "weir/base/fault.h"

namespace weir::ranking {

HackerNews::HackerNews(double gravity) : gravity_(gravity) {
  // Written so that a NaN is refused too.
  if (!(gravity >= 0 && gravity <= kMaxGravity)) throw Unusable("gravity must be within 0 and 10");
}

double HackerNews::decay(std::chrono::microseconds age) const {
  using Hours = std::chrono::duration<double, std::ratio<3600>>;
  const double base = std::max(Hours(age).count(), 0.0) + 2;
  // The common case needs a square root only, which is several times cheaper than a power.
  return gravity_ == kDefaultGravity ? base * std::sqrt(base) : std::pow(base, gravity_);
}

double HackerNews::score(std::int64_t likes, std::chrono::microseconds age) const {
  // In double before the subtraction, so that the smallest integer doesn't overflow.
  return (static_cast<double>(likes) - 1) / decay(age);
}

std::int64_t HackerNews::likes_needed(double score, std::chrono::microseconds age) const {
  if (!(score > 0)) return 0;
  // Rounded down, and a little more for the last digits of the multiplication.
  const double likes = score * decay(age) * (1 - 1e-9) + 1;
  constexpr double kLargest = 9.2e18;  // just below 2^63, which doesn't fit
  return static_cast<std::int64_t>(std::min(likes, kLargest));
}

double HackerNews::score(std::int64_t likes, WallTime published_at, WallTime now) const {
  // Compared before they are subtracted: the difference of two extreme times doesn't fit in 64 bits.
  if (published_at >= now) return score(likes, std::chrono::microseconds::zero());
  const auto later = static_cast<std::uint64_t>(to_micros(now));
  const auto earlier = static_cast<std::uint64_t>(to_micros(published_at));
  const std::uint64_t longest = static_cast<std::uint64_t>(std::chrono::microseconds::max().count());
  return score(likes, std::chrono::microseconds(std::min(later - earlier, longest)));
}

}  // namespace weir::ranking

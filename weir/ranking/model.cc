#include "weir/ranking/model.h"

#include <algorithm>
#include <cmath>

#include "weir/base/fault.h"

namespace weir::ranking {

HackerNews::HackerNews(double gravity) : gravity_(gravity) {
  // Written so that a NaN is refused too.
  if (!(gravity >= 0 && gravity <= kMaxGravity)) throw Unusable("gravity must be within 0 and 10");
}

double HackerNews::score(std::int64_t likes, std::chrono::microseconds age) const {
  using Hours = std::chrono::duration<double, std::ratio<3600>>;
  const double base = std::max(Hours(age).count(), 0.0) + 2;
  // In double before the subtraction, so that the smallest integer doesn't overflow.
  const double points = static_cast<double>(likes) - 1;
  // The common case needs a square root only, which is several times cheaper than a power.
  const double decay = gravity_ == kDefaultGravity ? base * std::sqrt(base) : std::pow(base, gravity_);
  return points / decay;
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

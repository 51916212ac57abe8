#include "weir/cache/ttl.h"

#include <algorithm>
#include <cmath>

namespace weir::cache {

Duration jittered(Duration ttl, double jitter, Random& random) {
  constexpr Duration kLeast = std::chrono::milliseconds(1);
  if (ttl == kNever) return ttl;
  // Longer ones are as good as this, and can't overflow.
  constexpr Duration kLongest = std::chrono::hours(24) * 365 * 50;
  const Duration base = std::clamp(ttl, kLeast, kLongest);
  const double factor = 1 + std::clamp(jitter, 0.0, 0.99) * (2 * random.unit() - 1);
  return std::max(kLeast, Duration(static_cast<Duration::rep>(static_cast<double>(base.count()) * factor)));
}

Duration early_refresh(Duration ttl, Duration took, double beta, Random& random) {
  constexpr Duration kLeast = std::chrono::milliseconds(1);
  if (!(beta > 0) || ttl == kNever || took <= Duration::zero()) return kNever;
  const double early = static_cast<double>(took.count()) * beta * -std::log1p(-random.unit());
  if (!(early < static_cast<double>(ttl.count()))) return kLeast;  // a load as long as the TTL
  return std::max(kLeast, ttl - Duration(static_cast<Duration::rep>(early)));
}

}  // namespace weir::cache

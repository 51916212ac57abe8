// Times to live, and the chance in them.
#pragma once

#include <chrono>

#include "weir/base/random.h"

namespace weir::cache {

using Duration = std::chrono::nanoseconds;

// Never: an entry without an end, or without a time to refresh.
inline constexpr Duration kNever = Duration::max();

// The TTL plus or minus up to `jitter` of it (0.1 is ten percent), so that what was filled together doesn't
// expire together. Jitter is clamped to 0 .. 0.99 and may be zero; the result is at least a millisecond,
// whatever is asked: a computed TTL must neither mean "forever" nor "dead on arrival". kNever stays kNever.
Duration jittered(Duration ttl, double jitter, Random& random);

}  // namespace weir::cache

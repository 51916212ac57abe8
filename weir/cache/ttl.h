// Times to live, and the chance in them.
#pragma once

#include <chrono>

#include "weir/base/random.h"

namespace weir::cache {

using Duration = std::chrono::nanoseconds;

// Never: an entry without an end, or without a time to refresh.
inline constexpr Duration kNever = Duration::max();

// Milliseconds that would overflow are never.
inline Duration as_duration(std::chrono::milliseconds time) {
  constexpr auto kMost = std::chrono::duration_cast<std::chrono::milliseconds>(kNever);
  return time >= kMost ? kNever : time <= -kMost ? -kNever : Duration(time);
}

// The TTL plus or minus up to `jitter` of it (0.1 is ten percent), so that what was filled together doesn't
// expire together. Jitter is clamped to 0 .. 0.99 and may be zero; the result is at least a millisecond,
// whatever is asked: a computed TTL must neither mean "forever" nor "dead on arrival". kNever stays kNever.
Duration jittered(Duration ttl, double jitter, Random& random);

// How long after its fill an entry is to be refreshed, so that it seldom expires under its readers: XFetch of
// Vattani, Chierichetti, Lowenstein, "Optimal Probabilistic Cache Stampede Prevention" (VLDB 2015). `took`: what
// the load took; `beta`: 1 as in the paper, more is earlier, 0 is never (then the answer is kNever).
//
// The paper draws at each read and refreshes when now + took * beta * E >= expiry, with E exponential of mean 1.
// We draw once, at the fill, so that a look-up stays a comparison with a time that is there anyway. The
// difference: by the paper a hotter key is refreshed earlier (the largest of many draws counts); here the time
// before the expiry is took * beta * E whoever reads, and the refresh has ended by the expiry with the
// probability exp(-1 / beta): 37 % at 1, 72 % at 3. Nodes draw each for itself, so the earliest of them counts.
Duration early_refresh(Duration ttl, Duration took, double beta, Random& random);

}  // namespace weir::cache

#include "weir/cache/local_cache.h"

#include <algorithm>
#include <bit>

#include "weir/base/hash.h"
#include "weir/base/random.h"

namespace weir::cache {

const char* name_of(Removal why) {
  switch (why) {
    case Removal::erased:
      return "erased";
    case Removal::replaced:
      return "replaced";
    case Removal::expired:
      return "expired";
    case Removal::evicted:
      return "evicted";
  }
  return "?";
}

namespace detail {

unsigned shards_for(const LocalCacheOptions& options) {
  constexpr unsigned kMost = 256, kMostByItself = 64;
  // A shard that holds little knows its own keys badly, so a small cache has few. 256 entries cost nothing,
  // 128 a tenth of a percent of hits.
  constexpr std::size_t kLeastEntries = 256, kLeastBytes = std::size_t{1} << 20;
  if (options.shards != 0) return std::bit_ceil(std::min(options.shards, kMost));
  const std::size_t least = options.bound == Bound::bytes ? kLeastBytes : kLeastEntries;
  const std::size_t by_size = std::max<std::size_t>(1, options.capacity / least);
  return static_cast<unsigned>(std::bit_floor(std::min<std::size_t>(by_size, kMostByItself)));
}

std::uint64_t seed_for(const LocalCacheOptions& options) {
  // Mixed, since people give small numbers, and the hash wants a factor with bits everywhere.
  return mix64(options.seed != 0 ? options.seed : secure_random64());
}

Nanos to_nanos(SteadyTime time) {
  if (time == SteadyTime::max()) return kNoTime;
  const Nanos nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return nanos == kNoTime ? 1 : nanos;
}

Nanos after(SteadyTime now, Duration wait) {
  // Also what is long past stays a time that can be subtracted from.
  constexpr Duration kLongest = std::chrono::hours(24 * 365 * 100);
  return wait >= SteadyTime::max() - now ? kNoTime : to_nanos(now + std::max(wait, -kLongest));
}

}  // namespace detail
}  // namespace weir::cache

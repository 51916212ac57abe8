#include "weir/cache/local_cache.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "weir/base/random.h"

namespace weir::cache::detail {

unsigned shards_for(const LocalCacheOptions& options) {
  constexpr unsigned kMost = 256;
  // A shard that holds little evicts badly, so a small cache has few.
  constexpr std::size_t kLeastBytes = std::size_t{128} << 10;
  if (options.shards != 0) return std::bit_ceil(std::min(options.shards, kMost));
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t by_size = std::max<std::size_t>(1, options.capacity / kLeastBytes);
  return static_cast<unsigned>(
      std::bit_floor(std::min<std::size_t>({by_size, std::size_t{8} * processors, kMost})));
}

std::uint64_t seed_for(const LocalCacheOptions& options) {
  return options.seed != 0 ? options.seed : secure_random64();
}

SteadyTime after(SteadyTime now, Duration wait) {
  return wait >= SteadyTime::max() - now ? SteadyTime::max() : now + wait;
}

}  // namespace weir::cache::detail

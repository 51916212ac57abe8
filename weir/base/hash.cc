#include "weir/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace weir {

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace weir

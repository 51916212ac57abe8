#include "weir/queue/partition.h"

#include <bit>
#include <cstring>

namespace weir::queue {

static_assert(std::endian::native == std::endian::little, "murmur2 reads the key's words as they lie");

std::uint32_t murmur2(std::string_view bytes) {
  constexpr std::uint32_t kSeed = 0x9747b28c;
  constexpr std::uint32_t kMix = 0x5bd1e995;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint32_t hash = kSeed ^ static_cast<std::uint32_t>(left);
  for (; left >= 4; at += 4, left -= 4) {
    std::uint32_t word;
    std::memcpy(&word, at, 4);
    word *= kMix;
    word ^= word >> 24;
    word *= kMix;
    hash = hash * kMix ^ word;
  }
  std::uint32_t tail = 0;
  for (std::size_t i = 0; i < left; ++i)
    tail |= static_cast<std::uint32_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  if (left != 0) hash = (hash ^ tail) * kMix;
  hash ^= hash >> 13;
  hash *= kMix;
  return hash ^ (hash >> 15);
}

std::uint32_t partition_of(std::string_view key, std::uint32_t partitions) {
  return (murmur2(key) & 0x7fffffff) % partitions;
}

}  // namespace weir::queue

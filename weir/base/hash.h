// Hashing: XXH3 for tables, checksums and ETags. Not for secrets.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

// 64 bits of XXH3 over the bytes; about 10 ns for a short key, over 10 GB/s for long ones. Thread-safe.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);

// Mixes an integer key well enough for power-of-two tables and Bloom filters (the finalizer of MurmurHash3).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

}  // namespace weir

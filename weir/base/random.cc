#include "weir/base/random.h"

#include <sys/random.h>

#include <bit>

#include "weir/base/fault.h"

namespace weir {
namespace {

// SplitMix64 spreads a seed over the state, as xoshiro's authors advise.
std::uint64_t splitmix(std::uint64_t& x) {
  x += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed) : state_{} {
  for (auto& word : state_) word = splitmix(seed);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

// Lemire's multiply-and-shift; its bias is below bound / 2^64.
std::uint64_t Random::below(std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
}

double Random::unit() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

Random& thread_random() {
  thread_local Random random(secure_random64());
  return random;
}

void secure_random(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = getrandom(out.data(), out.size(), 0);
    if (n < 0) throw Unavailable(errno_text("getrandom"));
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

std::uint64_t secure_random64() {
  std::uint64_t value = 0;
  secure_random(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace weir

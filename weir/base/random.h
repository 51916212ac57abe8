// Random: a seeded generator (xoshiro256**, Blackman and Vigna 2018), so that a test can repeat what chance
// did.
//
// Not for secrets: those come from `secure_random`. A Random is not thread-safe; `thread_random()` gives each
// thread its own.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

namespace weir {

class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t seed);

  std::uint64_t next();
  // Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1).
  double unit();
  // True with the probability p.
  bool chance(double p) { return unit() < p; }

  // The shape that <random> and std::shuffle ask for.
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() { return next(); }

 private:
  std::array<std::uint64_t, 4> state_;
};

// This thread's generator, seeded by the operating system.
Random& thread_random();

// Fills the bytes from the operating system's generator, fit for keys and tokens.
void secure_random(std::span<std::byte> out);
std::uint64_t secure_random64();

}  // namespace weir

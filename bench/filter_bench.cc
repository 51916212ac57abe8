// The filter's speed and its rate of false positives.
//
// usage: filter_bench speed KEYS BITS [portable]   {"insert", "present", "absent", "in turn", "many", "one miss"}:
//                                     nanoseconds each, the best of some passes; bench/peers/filters does the same
//        filter_bench rates KEYS      rows: measured against the formula at 8, 12 and 16 bits a key
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "bench/rows.h"
#include "weir/base/hash.h"
#include "weir/filter/bloom_filter.h"

namespace {

using weir::mix64;
using weir::filter::BloomFilter;

constexpr int kPasses = 3;
constexpr std::uint64_t kProbes = 10'000'000;  // strangers that a rate is measured by
constexpr double kMostAboveFormula = 1.15;

std::uint64_t member(std::uint64_t i) {
  return mix64(2 * i + 1);
}
std::uint64_t stranger(std::uint64_t i) {
  return mix64(2 * i);
}

// The compiler must believe that somebody needs it.
void use(std::uint64_t value) {
  asm volatile("" : : "r"(value) : "memory");
}

template <class Pass>
double best(int passes, std::uint64_t keys, Pass pass) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < passes; ++i) {
    const auto began = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    least = std::min(least, took.count() / static_cast<double>(keys));
  }
  return least;
}

template <class Hash>
double looks(const BloomFilter& filter, std::uint64_t keys, Hash hash) {
  return best(kPasses, keys, [&] {
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < keys; ++i) found += filter.may_contain(hash(i)) ? 1 : 0;
    use(found);
  });
}

// Each look-up waits for the one before: its whole latency shows.
double in_turn(const BloomFilter& filter, std::uint64_t keys) {
  return best(kPasses, keys, [&] {
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < keys; ++i) last = filter.may_contain(mix64(2 * i + 1 - last)) ? 1 : 0;
    use(last);
  });
}

double many(const BloomFilter& filter, std::uint64_t keys) {
  constexpr std::size_t kAtATime = 100;
  return best(kPasses, keys, [&] {
    std::array<std::uint64_t, kAtATime> hashes;
    std::array<bool, kAtATime> answers;
    for (std::uint64_t i = 0; i < keys; i += kAtATime) {
      for (std::uint64_t k = 0; k < kAtATime; ++k) hashes[k] = member(i + k);
      filter.may_contain(hashes, answers);
      use(answers[0] ? 1 : 0);
    }
  });
}

// What the same loop costs that reads a word of the same memory, and does nothing else.
double one_miss(std::uint64_t bytes, std::uint64_t keys) {
  const weir::filter::ZeroedMemory memory(bytes);
  auto* const words = static_cast<std::uint64_t*>(memory.data());
  const std::uint64_t count = bytes / sizeof(std::uint64_t);
  for (std::uint64_t i = 0; i < count; ++i) words[i] = i & 1;
  return best(kPasses, keys, [&] {
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
      __extension__ using Wide = unsigned __int128;
      const auto at = static_cast<std::uint64_t>((static_cast<Wide>(mix64(2 * i + 1 - last)) * count) >> 64);
      last = words[at] & 1;
    }
    use(last);
  });
}

void speed(std::uint64_t keys, double bits, bool portable) {
  BloomFilter filter = BloomFilter::with_bits_per_key(keys, bits);
  if (portable) filter.use(weir::filter::Path::portable);
  const double insert = best(1, keys, [&] {
    for (std::uint64_t i = 0; i < keys; ++i) filter.insert(member(i));
  });
  std::printf(R"({"insert": %f, "present": %f, "absent": %f, "in turn": %f, "many": %f, "one miss": %f})"
              "\n",
              insert, looks(filter, keys, member), looks(filter, keys, stranger), in_turn(filter, keys),
              many(filter, keys), one_miss(filter.bytes(), keys));
}

void rates(std::uint64_t keys) {
  std::vector<weir::bench::Row> rows;
  for (const double bits : {8.0, 12.0, 16.0}) {
    BloomFilter filter = BloomFilter::with_bits_per_key(keys, bits);
    for (std::uint64_t i = 0; i < keys; ++i) filter.insert(member(i));
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < kProbes; ++i) wrong += filter.may_contain(stranger(i)) ? 1 : 0;
    const double measured = static_cast<double>(wrong) / kProbes;
    const double formula = BloomFilter::false_positive_rate(keys, filter.blocks());
    rows.push_back({"false positives, " + std::to_string(keys / 1'000'000) + " million keys, " +
                        std::to_string(static_cast<int>(bits)) + " bits a key",
                    "", measured, "the formula", formula, measured / formula, kMostAboveFormula,
                    measured / formula <= kMostAboveFormula});
  }
  weir::bench::print(rows);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 2 ? arguments[1] : "";
  const std::uint64_t keys = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 0;
  if (what == "speed" && keys > 0 && count > 3) {
    speed(keys, std::strtod(arguments[3], nullptr),
          count > 4 && std::string_view(arguments[4]) == "portable");
    return 0;
  }
  if (what == "rates" && keys > 0) {
    rates(keys);
    return 0;
  }
  std::fputs("usage: filter_bench speed KEYS BITS [portable] | rates KEYS\n", stderr);
  return 2;
}

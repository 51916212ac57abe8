// The filter's speed beside crates for Rust and beside a bare cache miss, and its rate of false positives.
//
// usage: filter_bench speed KEYS BITS [PEERS]   PEERS: the library of bench/peers/filters; without it, no peer
//        filter_bench rates KEYS                 measured against the formula at 8, 12 and 16 bits a key
//
// Speeds are of whole passes over all keys. Ours and theirs run in turn in this process, so that whatever else
// the machine does hits both; a ratio is the median of the rounds' ratios.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/rows.h"
#include "weir/base/hash.h"
#include "weir/filter/bloom_filter.h"

namespace {

using weir::mix64;
using weir::bench::Row;
using weir::filter::BloomFilter;

constexpr int kRounds = 7;
constexpr std::uint64_t kProbes = 10'000'000;  // strangers that a rate is measured by
constexpr double kMostAboveFormula = 1.15;
constexpr double kMostMisses = 1.5;  // "about one": the noise of shared machines is as large

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

// What bench/peers/filters offers, which see.
class Peers {
 public:
  struct Filter;
  enum Kind : std::uint32_t { sbbf_rs, fastbloom };

  explicit Peers(const char* file) : library_(::dlopen(file, RTLD_NOW)) {
    if (library_ == nullptr) throw std::runtime_error(::dlerror());
    find("peer_new", make);
    find("peer_free", free);
    find("peer_insert_pass", insert_pass);
    find("peer_look_pass", look_pass);
  }

  Filter* (*make)(std::uint32_t kind, std::uint64_t keys, std::uint64_t bits) = nullptr;
  void (*free)(Filter* filter) = nullptr;
  void (*insert_pass)(Filter* filter, std::uint64_t keys) = nullptr;
  std::uint64_t (*look_pass)(const Filter* filter, std::uint64_t keys, std::uint64_t odd) = nullptr;

 private:
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(::dlerror());
  }

  void* library_;
};

template <class Pass>
double nanoseconds(std::uint64_t keys, Pass pass) {
  const auto began = std::chrono::steady_clock::now();
  pass();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  return took.count() / static_cast<double>(keys);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Ours and theirs in turn; the ratio is ours over theirs: below 1 we are faster.
template <class Ours, class Theirs>
Row compare(std::string name, std::string peer, std::uint64_t keys, Ours ours, Theirs theirs,
            std::optional<double> bar) {
  std::vector<double> our_times, their_times, ratios;
  for (int round = 0; round < kRounds; ++round) {
    our_times.push_back(nanoseconds(keys, ours));
    their_times.push_back(nanoseconds(keys, theirs));
    ratios.push_back(our_times.back() / their_times.back());
  }
  const double ratio = median(ratios);
  return {std::move(name), "ns", median(our_times),    std::move(peer), median(their_times),
          ratio,           bar,  !bar || ratio <= *bar};
}

template <class Hash>
void look_pass(const BloomFilter& filter, std::uint64_t keys, Hash hash) {
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < keys; ++i) found += filter.may_contain(hash(i)) ? 1 : 0;
  use(found);
}

void look_at_many_pass(const BloomFilter& filter, std::uint64_t keys) {
  constexpr std::size_t kAtATime = 100;
  std::array<std::uint64_t, kAtATime> hashes;
  std::array<bool, kAtATime> answers;
  for (std::uint64_t i = 0; i < keys; i += kAtATime) {
    for (std::uint64_t k = 0; k < kAtATime; ++k) hashes[k] = member(i + k);
    filter.may_contain(hashes, answers);
    use(answers[0] ? 1 : 0);
  }
}

void insert_many_pass(BloomFilter& filter, std::uint64_t keys) {
  constexpr std::size_t kAtATime = 100;
  std::array<std::uint64_t, kAtATime> hashes;
  for (std::uint64_t i = 0; i < keys; i += kAtATime) {
    for (std::uint64_t k = 0; k < kAtATime; ++k) hashes[k] = member(i + k);
    filter.insert(hashes);
  }
}

// Each look-up waits for the answer of the one before: its whole latency shows.
void look_in_turn_pass(const BloomFilter& filter, std::uint64_t keys) {
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < keys; ++i) last = filter.may_contain(mix64(2 * i + 1 - last)) ? 1 : 0;
  use(last);
}

// The same for reading one word of as much memory: a cache miss and nothing else.
void miss_in_turn_pass(const weir::filter::ZeroedMemory& memory, std::uint64_t keys) {
  const auto* words = static_cast<const std::uint64_t*>(memory.data());
  const std::uint64_t count = memory.bytes() / sizeof(std::uint64_t);
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < keys; ++i)
    last = words[weir::filter::split_block::multiply_high(mix64(2 * i + 1 - last), count)];
  use(last);
}

// A copy that works without vector instructions.
BloomFilter portable(const BloomFilter& filter) {
  BloomFilter copy = BloomFilter::decode(filter.encode());
  copy.use(weir::filter::Path::portable);
  return copy;
}

std::vector<Row> own_rows(const BloomFilter& filter, std::uint64_t keys, const std::string& of) {
  std::vector<Row> rows;
  {
    const weir::filter::ZeroedMemory memory(filter.bytes());
    auto* words = static_cast<std::uint64_t*>(memory.data());
    for (std::uint64_t i = 0; i < memory.bytes() / sizeof(*words); ++i) words[i] = i & 1;
    rows.push_back(compare(
        "a look-up that waits for the last" + of, "one cache miss", keys,
        [&] { look_in_turn_pass(filter, keys); }, [&] { miss_in_turn_pass(memory, keys); }, kMostMisses));
  }
  const BloomFilter slow = portable(filter);
  rows.push_back(compare(
      "a look-up" + of, "without AVX2", keys, [&] { look_pass(filter, keys, member); },
      [&] { look_pass(slow, keys, member); }, {}));
  rows.push_back(compare(
      "a look-up, 100 at a time" + of, "one at a time", keys, [&] { look_at_many_pass(filter, keys); },
      [&] { look_pass(filter, keys, member); }, {}));
  return rows;
}

std::vector<Row> peer_rows(const BloomFilter& filter, std::uint64_t keys, double bits, const std::string& of,
                           const Peers& peers) {
  std::vector<Row> rows;
  for (const auto kind : {Peers::sbbf_rs, Peers::fastbloom}) {
    // sbbf-rs has our layout; fastbloom isn't blocked and stands here for comparison.
    const std::string name = kind == Peers::sbbf_rs ? "sbbf-rs" : "fastbloom (not blocked)";
    const std::optional<double> bar = kind == Peers::sbbf_rs ? std::optional(1.0) : std::nullopt;
    Peers::Filter* theirs = peers.make(kind, keys, static_cast<std::uint64_t>(bits));
    BloomFilter fresh = BloomFilter::with_bits_per_key(keys, bits);
    const double ours_filled = nanoseconds(keys, [&] { insert_many_pass(fresh, keys); });
    const double theirs_filled = nanoseconds(keys, [&] { peers.insert_pass(theirs, keys); });
    rows.push_back(compare(
        "a look-up of a key that is there" + of, name, keys, [&] { look_pass(filter, keys, member); },
        [&] { use(peers.look_pass(theirs, keys, 1)); }, bar));
    rows.push_back(compare(
        "a look-up of a key that isn't" + of, name, keys, [&] { look_pass(filter, keys, stranger); },
        [&] { use(peers.look_pass(theirs, keys, 0)); }, bar));
    // Ours is atomic, for many threads at once; theirs is for one.
    rows.push_back({"an insert, 100 at a time" + of,
                    "ns",
                    ours_filled,
                    name,
                    theirs_filled,
                    ours_filled / theirs_filled,
                    {},
                    true});
    peers.free(theirs);
  }
  return rows;
}

void speed(std::uint64_t keys, double bits, const char* peers) {
  BloomFilter filter = BloomFilter::with_bits_per_key(keys, bits);
  insert_many_pass(filter, keys);
  const std::string of = ", " + std::to_string(keys / 1'000'000) + " million keys of " +
                         std::to_string(static_cast<int>(bits)) + " bits";
  std::vector<Row> rows = own_rows(filter, keys, of);
  if (peers != nullptr)
    for (Row& row : peer_rows(filter, keys, bits, of, Peers(peers))) rows.push_back(std::move(row));
  weir::bench::print(rows);
}

void rates(std::uint64_t keys) {
  std::vector<Row> rows;
  for (const double bits : {8.0, 12.0, 16.0}) {
    BloomFilter filter = BloomFilter::with_bits_per_key(keys, bits);
    insert_many_pass(filter, keys);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < kProbes; ++i) wrong += filter.may_contain(stranger(i)) ? 1 : 0;
    const double measured = static_cast<double>(wrong) / kProbes;
    const double formula = BloomFilter::false_positive_rate(keys, filter.blocks());
    rows.push_back({"false positives, " + std::to_string(keys / 1'000'000) + " million keys of " +
                        std::to_string(static_cast<int>(bits)) + " bits",
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
    speed(keys, std::strtod(arguments[3], nullptr), count > 4 ? arguments[4] : nullptr);
    return 0;
  }
  if (what == "rates" && keys > 0) {
    rates(keys);
    return 0;
  }
  std::fputs("usage: filter_bench speed KEYS BITS [PEERS] | rates KEYS\n", stderr);
  return 2;
}

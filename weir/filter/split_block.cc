#include "weir/filter/split_block.h"

#include <algorithm>
#include <atomic>
#include <bit>

#ifdef WEIR_FILTER_AVX2
#define WEIR_TARGET_AVX2 __attribute__((target("avx2")))
#include <immintrin.h>
#endif

namespace weir::filter {
namespace split_block {
namespace {

constexpr int kShift = 27;  // leaves the upper five bits: one of a word's 32

// So many blocks are on their way at once: about what a core's line fill buffers hold.
constexpr std::size_t kAhead = 12;

std::uint64_t load(const Block& block, int cell) {
  // atomic_ref takes no const before C++26; nothing is written.
  auto& word = const_cast<std::uint64_t&>(block.cells[static_cast<std::size_t>(cell)]);
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_relaxed);
}

std::uint64_t mask_of(std::uint32_t key, int cell) {
  const std::size_t at = 2 * static_cast<std::size_t>(cell);
  return std::uint64_t{1} << ((key * kSalts[at]) >> kShift) |
         std::uint64_t{1} << (32 + ((key * kSalts[at + 1]) >> kShift));
}

bool add(Block& block, const std::array<std::uint64_t, kCells>& mask) {
  std::uint64_t added = 0;
  for (std::size_t cell = 0; cell < kCells; ++cell) {
    std::atomic_ref<std::uint64_t> word(block.cells[cell]);
    // A plain read first: bits that are set already need no exclusive cache line.
    const std::uint64_t before = word.load(std::memory_order_relaxed);
    if ((~before & mask[cell]) != 0)
      added |= ~word.fetch_or(mask[cell], std::memory_order_relaxed) & mask[cell];
  }
  return added != 0;
}

// It will be written to, or only read.
void prefetch_to_write(const Block& block) {
#ifdef __GNUC__
  __builtin_prefetch(&block, 1);
#else
  static_cast<void>(block);
#endif
}

void prefetch(const Block& block) {
#ifdef __GNUC__
  __builtin_prefetch(&block);
#else
  static_cast<void>(block);
#endif
}

#ifdef WEIR_FILTER_AVX2

WEIR_TARGET_AVX2 inline __m256i vector_mask(std::uint32_t key) {
  const __m256i salts = _mm256_load_si256(reinterpret_cast<const __m256i*>(kSalts.data()));
  const __m256i mixed = _mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(key)), salts);
  return _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(mixed, kShift));
}

// As an instruction, because others may be setting bits meanwhile: a plain vector load would be a data race.
WEIR_TARGET_AVX2 inline __m256i vector_load(const Block& block) {
  __m256i bits;
  asm volatile("vmovdqa {%1, %0|%0, %1}" : "=x"(bits) : "m"(block));
  return bits;
}

#endif

}  // namespace

bool contains_portable(const Block& block, std::uint32_t key) {
  std::uint64_t missing = 0;
  for (int cell = 0; cell < kCells; ++cell) missing |= ~load(block, cell) & mask_of(key, cell);
  return missing == 0;
}

bool insert_portable(Block& block, std::uint32_t key) {
  return add(block, {mask_of(key, 0), mask_of(key, 1), mask_of(key, 2), mask_of(key, 3)});
}

#ifdef WEIR_FILTER_AVX2

WEIR_TARGET_AVX2 bool insert_avx2(Block& block, std::uint32_t key) {
  const __m256i mask = vector_mask(key);
  if (_mm256_testc_si256(vector_load(block), mask) != 0) return false;
  alignas(32) std::array<std::uint64_t, kCells> cells;
  _mm256_store_si256(reinterpret_cast<__m256i*>(cells.data()), mask);
  return add(block, cells);
}

#endif

void contains(const Table& table, std::span<const std::uint64_t> hashes, std::span<bool> out) {
  for (std::size_t at = 0; at < hashes.size(); at += kAhead) {
    const std::size_t end = std::min(at + kAhead, hashes.size());
    for (std::size_t i = at; i < end; ++i) prefetch(block_of(table, hashes[i]));
    for (std::size_t i = at; i < end; ++i) out[i] = contains(table, hashes[i]);
  }
}

void insert(const Table& table, std::span<const std::uint64_t> hashes) {
  for (std::size_t at = 0; at < hashes.size(); at += kAhead) {
    const auto few = hashes.subspan(at, std::min(kAhead, hashes.size() - at));
    for (const std::uint64_t hash : few) prefetch_to_write(block_of(table, hash));
    for (const std::uint64_t hash : few) insert(table, hash);
  }
}

double pass_rate(const Block& block) {
  double rate = 1;
  for (int cell = 0; cell < kCells; ++cell) {
    const std::uint64_t bits = load(block, cell);
    rate *= std::popcount(bits & 0xffffffffU) / double{kWordBits};
    rate *= std::popcount(bits >> 32) / double{kWordBits};
  }
  return rate;
}

int bits_set(const Block& block) {
  int sum = 0;
  for (int cell = 0; cell < kCells; ++cell) sum += std::popcount(load(block, cell));
  return sum;
}

}  // namespace split_block

Path best_path() {
#ifdef WEIR_FILTER_AVX2
  __builtin_cpu_init();  // filters may be made before main
  // Asks the system, too: whether it saves the wide registers.
  return __builtin_cpu_supports("avx2") != 0 ? Path::avx2 : Path::portable;
#else
  return Path::portable;
#endif
}

}  // namespace weir::filter

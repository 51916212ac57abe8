// The split block: 256 bits, of which a key sets eight, one in each of eight words of 32 bits.
//
// Blocked filters are Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007);
// the split into words, and how a key's bits come from eight odd multipliers, is what Apache Impala and
// Parquet do. A block never straddles a cache line. In memory it is four cells of 64 bits, the lower half
// being the word with the lower number, so that a block is filled by four atomic operations and not by eight.
//
// Each operation exists twice: portable, and in the vector instructions of AVX2. Both give the same bits;
// which one runs is decided when the program runs. This header is the filter's own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// The vector path needs a compiler that builds single functions for a better processor than the rest.
#if defined(__x86_64__) && defined(__GNUC__)
#define WEIR_FILTER_AVX2 1
#endif

namespace weir::filter {

// How a filter works on its blocks; `best_path` is what the machine can do. The bits are the same.
enum class Path : std::uint8_t { portable, avx2 };
Path best_path();

namespace split_block {

inline constexpr int kWords = 8;
inline constexpr int kWordBits = 32;
inline constexpr int kCells = kWords / 2;

struct alignas(32) Block {
  // Through std::atomic_ref, or what amounts to it, while anybody else may write.
  std::array<std::uint64_t, kCells> cells;
};
inline constexpr std::uint64_t kBlockBits = 8 * sizeof(Block);

// The upper half of a * b: maps a hash onto [0, b) without a division (Lemire 2016).
inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#ifdef __SIZEOF_INT128__
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
#else
  const std::uint64_t a_low = a & 0xffffffffU, a_high = a >> 32;
  const std::uint64_t b_low = b & 0xffffffffU, b_high = b >> 32;
  const std::uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const std::uint64_t carried = a_low * b_high + (middle & 0xffffffffU);
  return a_high * b_high + (middle >> 32) + (carried >> 32);
#endif
}

// Where blocks are, and by which path.
struct Table {
  Block* blocks;
  std::uint64_t count;
  Path path;
};

// Parquet's multipliers; odd, so that each is a bijection of the key.
alignas(32) inline constexpr std::array<std::uint32_t, kWords> kSalts{
    0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU, 0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};
alignas(32) inline constexpr std::array<std::uint32_t, kWords> kOnes{1, 1, 1, 1, 1, 1, 1, 1};

// Of one block and the bits' half of the hash.
bool contains_portable(const Block& block, std::uint32_t key);
bool insert_portable(Block& block, std::uint32_t key);

#ifdef WEIR_FILTER_AVX2
bool insert_avx2(Block& block, std::uint32_t key);

// A processor keeps as many cache misses under way as look-ups fit into its window of instructions, so that
// each instruction counts, though none of them waits: inline, a look-up takes four fifths of the time of one
// that is called. Compilers don't inline a function for a better processor into one for any, so that its
// instructions are written out. That also makes a relaxed atomic load of the block of four cells that others
// may be setting bits of (an aligned vector load reads each of them whole), which C++ has no words for.
inline bool contains_avx2(const Block& block, std::uint32_t key) {
  bool all = false;
  asm volatile(
      "vmovd {%k[key], %%xmm0|xmm0, %k[key]}\n\t"
      "vmovdqa {%[block], %%ymm1|ymm1, %[block]}\n\t"
      "vpbroadcastd {%%xmm0, %%ymm0|ymm0, xmm0}\n\t"
      "vpmulld {%[salts], %%ymm0, %%ymm0|ymm0, ymm0, %[salts]}\n\t"
      "vpsrld {$27, %%ymm0, %%ymm0|ymm0, ymm0, 27}\n\t"
      "vmovdqa {%[ones], %%ymm2|ymm2, %[ones]}\n\t"
      "vpsllvd {%%ymm0, %%ymm2, %%ymm0|ymm0, ymm2, ymm0}\n\t"
      "vptest {%%ymm0, %%ymm1|ymm1, ymm0}\n\t"  // the carry: no bit of the key is missing
      "vzeroupper"                              // or old vector instructions are slow afterwards
      : "=@ccc"(all)
      : [key] "r"(key), [block] "m"(block), [salts] "m"(kSalts), [ones] "m"(kOnes)
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15");
  return all;
}
#endif

// The block comes from the hash's upper bits (Lemire's multiplication, over all 64: any count of blocks), the
// bits in it from the lower 32. (They would meet at more than 2^32 blocks, 128 GiB; at 2^36 blocks the bits
// of two keys of a block are the same for one pair in 2^28.)
inline Block& block_of(const Table& table, std::uint64_t hash) {
  return table.blocks[multiply_high(hash, table.count)];
}

inline bool contains(const Table& table, std::uint64_t hash) {
  const Block& block = block_of(table, hash);
#ifdef WEIR_FILTER_AVX2
  if (table.path == Path::avx2) [[likely]]
    return contains_avx2(block, static_cast<std::uint32_t>(hash));
#endif
  return contains_portable(block, static_cast<std::uint32_t>(hash));
}

// Whether a bit was set that wasn't: then the key certainly was not there.
inline bool insert(const Table& table, std::uint64_t hash) {
  Block& block = block_of(table, hash);
#ifdef WEIR_FILTER_AVX2
  if (table.path == Path::avx2) [[likely]]
    return insert_avx2(block, static_cast<std::uint32_t>(hash));
#endif
  return insert_portable(block, static_cast<std::uint32_t>(hash));
}

// Of many, with the blocks fetched ahead. The spans are equally long.
void contains(const Table& table, std::span<const std::uint64_t> hashes, std::span<bool> out);
void insert(const Table& table, std::span<const std::uint64_t> hashes);

// The share of the strangers that this block would let in: each of their bits is one of a word's 32.
double pass_rate(const Block& block);
// Bits that are set.
int bits_set(const Block& block);

}  // namespace split_block
}  // namespace weir::filter

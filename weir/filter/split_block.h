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

// Where blocks are, and by which path.
struct Table {
  Block* blocks;
  std::uint64_t count;
  Path path;
};

// The block comes from the hash's upper bits (Lemire's multiplication, over all 64: any count of blocks), the
// bits in it from the lower 32. (They would meet at more than 2^32 blocks, 128 GiB, where at 2^36 the bits of
// two keys of a block still differ but for one pair in 2^28.)
bool contains(const Table& table, std::uint64_t hash);
// Whether a bit was set that wasn't: then the key certainly was not there.
bool insert(const Table& table, std::uint64_t hash);
// Of many, with the blocks fetched ahead. The spans are equally long.
void contains(const Table& table, std::span<const std::uint64_t> hashes, std::span<bool> out);
void insert(const Table& table, std::span<const std::uint64_t> hashes);

// The share of the strangers that this block would let in: each of their bits is one of a word's 32.
double pass_rate(const Block& block);
// Bits that are set.
int bits_set(const Block& block);

}  // namespace split_block
}  // namespace weir::filter

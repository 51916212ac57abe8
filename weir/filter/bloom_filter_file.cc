// BloomFilter's saved form, version 1; all numbers are little-endian and 64 bits wide:
//
//     "weirblom" | version | layout | blocks | expected | hashing | XXH3 of these 48 bytes
//     blocks x 32 bytes: the four cells of each block
//     checksum of the blocks: XXH3 of each 64 KiB (the last may be shorter), seeded with the one before, 0 first
//
// The checksum of the blocks follows them, because they may change until they are written.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include "weir/base/fault.h"
#include "weir/base/hash.h"
#include "weir/base/saved_file.h"
#include "weir/filter/bloom_filter.h"

namespace weir::filter {

using split_block::Block;

namespace {

constexpr std::string_view kMagic = "weirblom";
constexpr std::uint64_t kVersion = 1;
// Split blocks of 8 x 32 bits with the multipliers of Parquet and the block by multiplication over 64 bits.
constexpr std::uint64_t kLayout = 1;
constexpr std::size_t kChunkBlocks = (64U << 10) / sizeof(Block);
constexpr std::uint64_t kChecksumBytes = 8;

using Chunk = std::array<Block, kChunkBlocks>;

std::string_view bytes_of(const Chunk& chunk, std::size_t blocks) {
  return {reinterpret_cast<const char*>(chunk.data()), blocks * sizeof(Block)};
}

// From this machine's order of bytes into the file's, and back.
std::uint64_t little_endian(std::uint64_t cell) {
  if constexpr (std::endian::native == std::endian::little) return cell;
  std::uint64_t turned = 0;
  for (int i = 0; i < 8; ++i) turned |= (cell >> (8 * i) & 0xff) << (56 - 8 * i);
  return turned;
}

void convert(Chunk& chunk, std::size_t blocks) {
  if constexpr (std::endian::native == std::endian::little) return;
  for (std::size_t i = 0; i < blocks; ++i)
    for (auto& cell : chunk[i].cells) cell = little_endian(cell);
}

}  // namespace

void BloomFilter::write(Sink& sink) const {
  const std::array<std::uint64_t, 4> header{kLayout, blocks(), expected_, hashing_};
  write_header(sink, kMagic, kVersion, header);
  const auto chunk = std::make_unique<Chunk>();
  std::uint64_t checksum = 0;
  for (std::uint64_t at = 0; at < blocks(); at += kChunkBlocks) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBlocks, blocks() - at));
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t cell = 0; cell < split_block::kCells; ++cell)
        (*chunk)[i].cells[cell] =
            std::atomic_ref(table_.blocks[at + i].cells[cell]).load(std::memory_order_relaxed);
    convert(*chunk, size);
    checksum = hash64(bytes_of(*chunk, size), checksum);
    sink.write(bytes_of(*chunk, size));
  }
  std::string end;
  append_number(end, checksum);
  sink.write(end);
}

BloomFilter BloomFilter::read(Source& source) {
  std::array<std::uint64_t, 4> header{};
  read_header(source, kMagic, kVersion, header);
  const auto [layout, blocks, expected, hashing] = header;
  if (layout != kLayout)
    throw Unusable("layout " + std::to_string(layout) + ", but this program knows layout " +
                   std::to_string(kLayout));
  if (blocks == 0 || expected == 0) throw Unusable("the header is damaged: a filter of nothing");
  // Before memory is taken for them.
  if (source.left() < kChecksumBytes || blocks > (source.left() - kChecksumBytes) / sizeof(Block))
    throw Unusable("it is cut off: " + std::to_string(blocks) + " blocks should follow, but only " +
                   std::to_string(source.left()) + " bytes do");
  BloomFilter filter(Shape{expected, blocks, hashing});
  const auto chunk = std::make_unique<Chunk>();
  std::uint64_t checksum = 0;
  for (std::uint64_t at = 0; at < blocks; at += kChunkBlocks) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBlocks, blocks - at));
    source.read({reinterpret_cast<char*>(chunk->data()), size * sizeof(Block)});
    checksum = hash64(bytes_of(*chunk, size), checksum);
    convert(*chunk, size);
    std::copy_n(chunk->data(), size, filter.table_.blocks + at);
  }
  std::array<char, kChecksumBytes> end{};
  source.read(end);
  if (number_at({end.data(), end.size()}, 0) != checksum)
    throw Unusable("the filter is damaged: the checksum of its blocks is wrong");
  return filter;
}

std::string BloomFilter::encode() const {
  std::string bytes;
  bytes.reserve(this->bytes() + 128);  // and the numbers around the blocks
  MemorySink sink(bytes);
  write(sink);
  return bytes;
}

BloomFilter BloomFilter::decode(std::string_view bytes) {
  MemorySource source(bytes);
  BloomFilter filter = read(source);
  if (source.left() > 0) throw Unusable("something follows it");
  return filter;
}

void BloomFilter::save(const std::filesystem::path& file) const {
  replace_file(file, [this](Sink& sink) { write(sink); });
}

BloomFilter BloomFilter::load(const std::filesystem::path& file) {
  std::optional<BloomFilter> filter;
  read_file(file, [&](Source& source) { filter.emplace(read(source)); });
  return std::move(*filter);
}

}  // namespace weir::filter

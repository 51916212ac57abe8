// A saved cache, version 1; all numbers are little-endian and 64 bits wide:
//
//     "weircach" | version | format | saved at, microseconds since 1970 | XXH3 of these 32 bytes
//     blocks: entries | bytes of them | XXH3 of the bytes, seeded with the one before (0 first) | the entries
//     the end: 0 | entries in all | XXH3 of that number, seeded with the last block's
//
//     an entry: bytes of key | 1 + bytes of value, or 0: absent | weight | left | fresh | key | value
//     left, fresh: nanoseconds of TTL and until a refresh, from the save on; kNone: without
#include "weir/cache/cache_file.h"

#include <algorithm>
#include <array>
#include <limits>

#include "weir/base/hash.h"

namespace weir::cache::detail {
namespace {

constexpr std::string_view kMagic = "weircach";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kBlockBytes = std::size_t{64} << 10;  // from here on a block is written
constexpr std::size_t kNumber = 8, kEntryNumbers = 5;
constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
// Longer than that is never, and can be added to and subtracted from.
constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max() / 4;
// A clock that is set right by a little hasn't gone backwards.
constexpr std::chrono::seconds kSetRight{1};

void append_time(std::string& out, std::optional<std::int64_t> time) {
  append_number(out, static_cast<std::uint64_t>(time.value_or(kNone)));
}
std::optional<std::int64_t> time_at(std::string_view bytes, std::size_t at) {
  const auto time = static_cast<std::int64_t>(number_at(bytes, at));
  if (time == kNone) return std::nullopt;
  return std::clamp(time, -kLongest, kLongest);
}

std::array<std::uint64_t, 3> read_numbers(Source& source) {
  std::array<char, 3 * kNumber> bytes{};
  source.read(bytes);
  const std::string_view view(bytes.data(), bytes.size());
  return {number_at(view, 0), number_at(view, kNumber), number_at(view, 2 * kNumber)};
}

std::string number_bytes(std::uint64_t number) {
  std::string bytes;
  append_number(bytes, number);
  return bytes;
}

}  // namespace

CacheFileWriter::CacheFileWriter(Sink& sink, std::uint64_t format, WallTime now) : sink_(sink) {
  const std::array<std::uint64_t, 2> numbers{format, static_cast<std::uint64_t>(to_micros(now))};
  write_header(sink, kMagic, kVersion, numbers);
}

void CacheFileWriter::add(const CacheRecord& record) {
  append_number(block_, record.key.size());
  append_number(block_, record.value ? 1 + record.value->size() : 0);
  append_number(block_, record.weight);
  append_time(block_, record.left);
  append_time(block_, record.fresh);
  block_ += record.key;
  if (record.value) block_ += *record.value;
  ++in_block_;
  ++entries_;
  if (block_.size() >= kBlockBytes) flush();
}

void CacheFileWriter::flush() {
  if (in_block_ == 0) return;
  checksum_ = hash64(block_, checksum_);
  std::string head = number_bytes(in_block_);
  append_number(head, block_.size());
  append_number(head, checksum_);
  sink_.write(head);
  sink_.write(block_);
  block_.clear();
  in_block_ = 0;
}

void CacheFileWriter::finish() {
  flush();
  std::string end = number_bytes(0);
  append_number(end, entries_);
  append_number(end, hash64(number_bytes(entries_), checksum_));
  sink_.write(end);
}

CacheFileReader::CacheFileReader(Source& source, std::uint64_t format) : source_(source) {
  std::array<std::uint64_t, 2> numbers{};
  read_header(source, kMagic, kVersion, numbers);
  if (numbers[0] != format)
    throw Unusable("its keys and values are of format " + std::to_string(numbers[0]) + ", not " +
                   std::to_string(format));
  if (numbers[1] > static_cast<std::uint64_t>(kLongest))
    throw Unusable("it was saved in no year that there is");
  saved_at_ = from_micros(static_cast<std::int64_t>(numbers[1]));
}

CacheFileReader open_cache_file(Source& source, const std::filesystem::path& file, std::uint64_t format) {
  try {
    return {source, format};
  } catch (const Unusable& error) {
    throw Unusable(file.string() + ": " + error.what());
  }
}

std::optional<CacheRecord> CacheFileReader::next() {
  if (ended_) return std::nullopt;
  try {
    while (left_in_block_ == 0)
      if (!read_block()) {
        ended_ = true;
        return std::nullopt;
      }
  } catch (const Unusable&) {  // cut off
    ended_ = true;
    return std::nullopt;
  }
  // The checksum was right, so these numbers are those that were written, or somebody made them on purpose.
  const std::string_view rest = std::string_view(block_).substr(at_);
  const std::uint64_t head = kEntryNumbers * kNumber;
  const std::uint64_t key = rest.size() < head ? 0 : number_at(rest, 0);
  const std::uint64_t value = rest.size() < head ? 0 : number_at(rest, kNumber);
  const std::uint64_t value_bytes = value == 0 ? 0 : value - 1;
  if (rest.size() < head || key > rest.size() - head || value_bytes > rest.size() - head - key) {
    ended_ = true;
    return std::nullopt;
  }
  CacheRecord record{.key = std::string(rest.substr(head, key)),
                     .weight = number_at(rest, 2 * kNumber),
                     .left = time_at(rest, 3 * kNumber),
                     .fresh = time_at(rest, 4 * kNumber)};
  if (value != 0) record.value = rest.substr(head + key, value_bytes);
  at_ += head + key + value_bytes;
  --left_in_block_;
  ++entries_;
  return record;
}

// False at the end, and where the file is damaged.
bool CacheFileReader::read_block() {
  if (at_ != block_.size()) return false;
  const auto [entries, bytes, checksum] = read_numbers(source_);
  if (entries == 0) {
    whole_ = bytes == entries_ && checksum == hash64(number_bytes(bytes), checksum_) && source_.left() == 0;
    return false;
  }
  if (bytes > source_.left()) return false;  // before memory is taken for it
  block_.resize(static_cast<std::size_t>(bytes));
  source_.read(block_);
  at_ = 0;
  checksum_ = hash64(block_, checksum_);
  if (checksum_ != checksum) return false;
  left_in_block_ = entries;
  return true;
}

std::optional<std::int64_t> nanos_of(std::optional<Duration> time) {
  if (!time) return std::nullopt;
  return time->count();
}

Lain lain(WallTime saved_at, WallTime now) {
  const bool backwards = now < saved_at && saved_at - now > kSetRight;
  const auto time =
      std::clamp(now - saved_at, WallTime::duration::zero(), WallTime::duration(kLongest / 1000));
  return {std::chrono::duration_cast<Duration>(time), backwards};
}

}  // namespace weir::cache::detail

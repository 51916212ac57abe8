// How the journal's file looks: a page of its own header, then segments. A detail of journal.cc.
//
// A segment is 64 bytes of header and then records, one after another, each a multiple of 8 bytes. Whatever
// may be half written when a process is killed is one aligned 8-byte store, which is whole or not there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "weir/base/hash.h"
#include "weir/queue/event.h"

namespace weir::queue::detail {

inline constexpr std::size_t kFileHeaderBytes = 4096;
inline constexpr std::uint64_t kFileMagic = 0x316c6e726a726577;  // "werjrnl1"
inline constexpr std::uint32_t kSegmentStart = 64;               // where a segment's records begin

struct FileHeader {
  std::uint64_t magic;
  std::uint64_t segment_size;  // a checked word
};

// A 32-bit value that vouches for itself by its complement beside it.
constexpr std::uint64_t checked_word(std::uint32_t value) {
  return (static_cast<std::uint64_t>(~value) << 32) | value;
}
constexpr std::optional<std::uint32_t> value_of(std::uint64_t word) {
  const auto value = static_cast<std::uint32_t>(word);
  if (static_cast<std::uint32_t>(word >> 32) != static_cast<std::uint32_t>(~value)) return std::nullopt;
  return value;
}

// All three are checked words.
struct SegmentHeader {
  std::uint64_t generation;  // grows with each use of a segment; 0: never used
  std::uint64_t written;     // where the next record would begin
  std::uint64_t released;  // the queue has what is before; the segment's size: all of it, the segment is free
};

inline void store(std::uint64_t& where, std::uint64_t value) {
  std::atomic_ref(where).store(value, std::memory_order_release);
}

struct RecordHeader {
  std::uint64_t checksum;  // of all that follows, written last
  std::uint32_t generation;
  std::uint32_t length;  // of the whole record, padded to 8
  std::uint64_t producer;
  std::uint64_t sequence;
  std::int64_t appended_at;
  std::uint32_t lane;
  std::uint32_t payload_bytes;
  std::uint16_t key_bytes;
  std::uint8_t topic_bytes;
  std::uint8_t event_id_bytes;
  std::uint32_t unused;
};
static_assert(std::is_trivially_copyable_v<RecordHeader> && sizeof(RecordHeader) == 56);

inline std::size_t unpadded_length(const RecordHeader& header) {
  return sizeof(RecordHeader) + header.topic_bytes + header.key_bytes + header.event_id_bytes +
         header.payload_bytes;
}
constexpr std::size_t padded(std::size_t length) {
  return (length + 7) & ~std::size_t{7};
}

inline std::uint64_t checksum_of(const std::byte* record, std::size_t unpadded) {
  return hash64(
      {reinterpret_cast<const char*>(record) + sizeof(std::uint64_t), unpadded - sizeof(std::uint64_t)});
}

// Writes the record, the checksum last. The header's lengths and ids are filled by the caller.
inline void write_record(std::byte* at, const RecordHeader& header, const Event& event) {
  std::memcpy(at + sizeof(std::uint64_t), reinterpret_cast<const std::byte*>(&header) + sizeof(std::uint64_t),
              sizeof header - sizeof(std::uint64_t));
  std::byte* to = at + sizeof header;
  for (const std::string_view part : {event.topic, event.key, event.event_id, event.payload}) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  store(*reinterpret_cast<std::uint64_t*>(at), checksum_of(at, unpadded_length(header)));
}

// Reads the record at `at` if it is a whole one of this generation that ends within `room` bytes; answers its
// length, 0 when there is none.
inline std::uint32_t read_record(const std::byte* at, std::size_t room, std::uint32_t generation,
                                 Record& record) {
  RecordHeader header;
  if (room < sizeof header) return 0;
  std::memcpy(&header, at, sizeof header);
  if (header.generation != generation || header.length > room) return 0;
  const std::size_t unpadded = unpadded_length(header);
  if (padded(unpadded) != header.length || checksum_of(at, unpadded) != header.checksum) return 0;
  const char* text = reinterpret_cast<const char*>(at + sizeof header);
  auto part = [&text](std::size_t size) {
    const std::string_view found(text, size);
    text += size;
    return found;
  };
  record.topic = part(header.topic_bytes);
  record.key = part(header.key_bytes);
  record.event_id = part(header.event_id_bytes);
  record.payload = part(header.payload_bytes);
  record.producer = header.producer;
  record.lane = header.lane;
  record.sequence = header.sequence;
  record.appended_at = from_micros(header.appended_at);
  return header.length;
}

}  // namespace weir::queue::detail

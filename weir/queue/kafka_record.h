// How a record travels through Kafka, and how other clients read and write it.
//
//   topic, key   the record's
//   value        the payload
//   timestamp    when the event was appended, in milliseconds; in topics that Weir makes, when Kafka got it (LogAppendTime)
//   header weir      29 bytes, little endian: version (1 byte, 1), producer (8), lane (4), sequence (8), when it was
//                appended in microseconds since 1970 (8, signed). Python: struct.unpack("<BQIQq", value)
//   header event_id  the id that a client chose, as text; left out when there is none
//   partition    of the key, as Java's default partitioner chooses it
//
// A message without the header weir comes from another client ("foreign"). It is delivered with producer 0, lane 0
// and sequence 0, the time of Kafka's timestamp, and its event_id if it has one: only that tells whether it was there
// already. So are messages whose header weir is damaged or of a later version, which is counted; the consumer goes on.
// A null key is an empty key, a null value an empty payload. Foreign keys, ids and payloads may be beyond the limits of
// event.h: handlers park what they can't use. Keys and payloads above kMaxForeignKeyBytes and kMaxForeignPayloadBytes
// are cut there, so that a dead letter can hold them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "weir/queue/event.h"

namespace weir::queue::detail {

inline constexpr const char* kIdentityHeader = "weir";
inline constexpr const char* kEventIdHeader = "event_id";
inline constexpr std::size_t kIdentityBytes = 29;
inline constexpr std::size_t kMaxForeignKeyBytes = 32 * 1024;
inline constexpr std::size_t kMaxForeignPayloadBytes = 768 * 1024;

// The header weir of a record.
std::array<char, kIdentityBytes> encode_identity(const Record& record);

// Sets producer, lane, sequence and appended_at from the header. False for bytes that encode_identity doesn't
// write; the record is as it was then.
bool decode_identity(std::string_view bytes, Record& record);

}  // namespace weir::queue::detail

// What travels through a queue: the event that a handler publishes, and the message that a consumer gets.
//
// Everything here is a view: the bytes belong to the caller (Event), the journal (Record) or the fetched
// batch (Message), and live as long as those say.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/clock.h"

namespace weir::queue {

// When a published event counts as published.
enum class Acks {
  none,    // handed over: it is in this process's journal and survives the process, not the machine
  leader,  // the queue has committed it, without waiting for the disk
  all,     // it is on the disk (or on all in-sync replicas)
};

// "0", "1", "all" and "-1", as Kafka's users write it.
std::optional<Acks> parse_acks(std::string_view text);

// Limits of one event, in bytes.
inline constexpr std::size_t kMaxTopicBytes = 255;
inline constexpr std::size_t kMaxKeyBytes = 1024;
inline constexpr std::size_t kMaxEventIdBytes = 128;
inline constexpr std::size_t kMaxPayloadBytes = 48 * 1024;

struct Event {
  std::string_view topic;
  std::string_view key;  // events of one key stay in order, e.g. "article:42"
  std::string_view payload = {};
  // An id that the client chose, or empty. The same id for the same topic and key counts once, however often
  // it is published.
  std::string_view event_id = {};
};

// The producer of a message that another client has written to a broker: it has no identity but its event_id.
inline constexpr std::uint64_t kNoProducer = 0;

// An event with its identity: (producer, topic, lane, sequence).
//
// A producer is 64 random bits, new at each start of a process. The lane is the key's partition when the
// event was appended and stays part of the id, whichever partition delivers it. Sequences start at 1 and are
// dense for each topic and lane of a producer, so that a consumer group, which reads one topic, remembers
// them as a few intervals. An id is never an offset.
struct Record {
  std::string_view topic, key, payload, event_id;
  std::uint64_t producer = kNoProducer;
  std::uint32_t lane = 0;
  std::uint64_t sequence = 0;
  WallTime appended_at{};
};

// A record and where the queue keeps it.
struct Message : Record {
  std::uint32_t partition = 0;
  std::int64_t offset = 0;
};

}  // namespace weir::queue

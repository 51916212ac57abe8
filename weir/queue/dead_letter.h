// Dead letters: messages that a group could not process, kept in a topic of their own until somebody looks.
//
// A dead letter keeps the message's id, key and time of appending; its payload is the original one behind a
// header that tells why and where it came from. Sent again, it is the same event: what was counted isn't
// counted twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/queue/event.h"

namespace weir::queue {

struct DeadLetter {
  std::string reason;
  std::string topic, group;
  std::uint32_t partition = 0;
  std::int64_t offset = 0;
  std::string payload;  // the original's
};

// "read_events.interaction.dead"
std::string dead_letter_topic(std::string_view topic, std::string_view group);

// The group that a topic of dead letters has, so that none is lost before somebody looks.
inline constexpr std::string_view kParkedGroup = "parked";

// The payload of a dead letter. Reasons are cut at 1,000 bytes.
std::string encode_dead_letter(const Message& message, std::string_view group, std::string_view reason);
// Nothing for bytes that are none.
std::optional<DeadLetter> decode_dead_letter(std::string_view payload);

}  // namespace weir::queue

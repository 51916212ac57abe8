// Slot: which of a Redis Cluster's 16384 parts a key belongs to ("Redis cluster specification", Key distribution model).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/redis/command.h"

namespace weir::redis {

inline constexpr std::size_t kSlots = 16'384;
using Slot = std::uint16_t;

// CRC16/XMODEM: polynomial 0x1021, from 0, not reflected.
std::uint16_t crc16(std::string_view bytes);

// Of the key, or of what is between its first { and the next }, if that isn't empty: the hash tag.
Slot slot_of(std::string_view key);

// The slot that all of the command's keys share; nothing: it has no key, and any node may do it (PING, ECHO, PUBLISH,
// TIME). Throws std::invalid_argument when its keys have different slots, and for commands that are about one node
// (FLUSHALL, SCAN, CONFIG ..) or whose keys aren't where this looks for them (XREAD, MIGRATE ..). What isn't known has
// its key in front, as most have. O(bytes of the command).
std::optional<Slot> slot_of_command(const Command& command);

// The same of these keys; `what` begins the text.
std::optional<Slot> common_slot(std::span<const std::string_view> keys, std::string_view what);

}  // namespace weir::redis

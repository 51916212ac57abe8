// Durations and sizes as people write them in settings: "90s", "10m", "7d"; "64KiB", "2MiB".
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

// A whole number and one of ms, s, m, h, d. Nothing when it isn't that, or doesn't fit in milliseconds.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
// A whole number and one of B, KiB, MiB, GiB, TiB. Nothing when it isn't that, or outgrows 63 bits.
std::optional<std::uint64_t> parse_size(std::string_view text);

// The shortest text that parses to the same value.
std::string format_duration(std::chrono::milliseconds value);
std::string format_size(std::uint64_t bytes);

}  // namespace weir

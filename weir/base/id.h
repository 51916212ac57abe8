// Ids: positive 64-bit integers, decimal strings on the wire (they outgrow JavaScript's 2^53).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir {

using Id = std::int64_t;

// The id that the text spells in its one canonical form: digits only, no leading zero, 1 .. 2^63 - 1.
// "007", "+1", "1e3", "0", "-1" and "9223372036854775808" are none.
std::optional<Id> parse_id(std::string_view text);

// A plain decimal number without sign or leading zeros (but "0" is one), at most `max`.
std::optional<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t max);

}  // namespace weir

// Times as text: RFC 3339 in UTC, as the API shows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/base/clock.h"

namespace weir {

// "2026-11-30T10:46:12.345Z": milliseconds, always UTC. Years 0000 to 9999.
std::string to_rfc3339(WallTime t);

// Reads a date and time with "Z" or an offset, with up to nine digits of fraction (cut to microseconds).
std::optional<WallTime> parse_rfc3339(std::string_view text);

// "YYYY-MM-DD", and a day that exists.
bool is_calendar_date(std::string_view text);

}  // namespace weir

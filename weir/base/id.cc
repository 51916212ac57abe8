#include "weir/base/id.h"

#include <charconv>
#include <limits>

namespace weir {

std::optional<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t max) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

std::optional<Id> parse_id(std::string_view text) {
  const auto value = parse_decimal(text, static_cast<std::uint64_t>(std::numeric_limits<Id>::max()));
  if (!value || *value == 0) return std::nullopt;
  return static_cast<Id>(*value);
}

}  // namespace weir

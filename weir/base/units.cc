#include "weir/base/units.h"

#include <array>
#include <limits>

#include "weir/base/id.h"

namespace weir {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// From large to small: format takes the first that divides.
constexpr std::array kDurations{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000},
                                Unit{"s", 1000}, Unit{"ms", 1}};
constexpr std::array kSizes{Unit{"TiB", 1ULL << 40}, Unit{"GiB", 1ULL << 30}, Unit{"MiB", 1ULL << 20},
                            Unit{"KiB", 1ULL << 10}, Unit{"B", 1}};
constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

template <std::size_t N>
std::optional<std::uint64_t> parse(std::string_view text, const std::array<Unit, N>& units) {
  const std::size_t split = text.find_first_not_of("0123456789");
  if (split == std::string_view::npos) return std::nullopt;
  for (const Unit& unit : units) {
    if (text.substr(split) != unit.name) continue;
    const auto number = parse_decimal(text.substr(0, split), kMax / unit.factor);
    return number ? std::optional(*number * unit.factor) : std::nullopt;
  }
  return std::nullopt;
}

template <std::size_t N>
std::string format(std::uint64_t value, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0)
      return std::to_string(value / unit.factor) + std::string(unit.name);
  }
  return std::string("0").append(units.back().name);
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto value = parse(text, kDurations);
  return value ? std::optional(std::chrono::milliseconds(*value)) : std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  return parse(text, kSizes);
}

std::string format_duration(std::chrono::milliseconds value) {
  return format(static_cast<std::uint64_t>(value.count()), kDurations);
}
std::string format_size(std::uint64_t bytes) {
  return format(bytes, kSizes);
}

}  // namespace weir

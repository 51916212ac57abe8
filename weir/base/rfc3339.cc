#include "weir/base/rfc3339.h"

#include <cstdio>

namespace weir {
namespace {

using std::chrono::microseconds;

// Reads exactly `width` digits at `at` and moves past them.
std::optional<int> digits(std::string_view text, std::size_t& at, std::size_t width) {
  if (at + width > text.size()) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const char c = text[at + i];
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  at += width;
  return value;
}

bool literal(std::string_view text, std::size_t& at, std::string_view allowed) {
  if (at >= text.size() || allowed.find(text[at]) == std::string_view::npos) return false;
  ++at;
  return true;
}

std::optional<std::chrono::sys_days> date(std::string_view text, std::size_t& at) {
  const auto year = digits(text, at, 4);
  if (!year || !literal(text, at, "-")) return std::nullopt;
  const auto month = digits(text, at, 2);
  if (!month || !literal(text, at, "-")) return std::nullopt;
  const auto day = digits(text, at, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day ymd{std::chrono::year(*year),
                                        std::chrono::month(static_cast<unsigned>(*month)),
                                        std::chrono::day(static_cast<unsigned>(*day))};
  if (!ymd.ok()) return std::nullopt;
  return std::chrono::sys_days(ymd);
}

std::optional<microseconds> time_of_day(std::string_view text, std::size_t& at) {
  const auto hour = digits(text, at, 2);
  if (!hour || !literal(text, at, ":")) return std::nullopt;
  const auto minute = digits(text, at, 2);
  if (!minute || !literal(text, at, ":")) return std::nullopt;
  const auto second = digits(text, at, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  return std::chrono::hours(*hour) + std::chrono::minutes(*minute) + std::chrono::seconds(*second);
}

std::optional<microseconds> fraction(std::string_view text, std::size_t& at) {
  if (at >= text.size() || text[at] != '.') return microseconds(0);
  ++at;
  std::int64_t value = 0;
  std::size_t count = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++count) {
    if (count < 6) value = value * 10 + (text[at] - '0');
  }
  if (count == 0 || count > 9) return std::nullopt;
  for (; count < 6; ++count) value *= 10;
  return microseconds(value);
}

std::optional<microseconds> offset(std::string_view text, std::size_t& at) {
  if (literal(text, at, "Zz")) return microseconds(0);
  const bool east = at < text.size() && text[at] == '+';
  if (!literal(text, at, "+-")) return std::nullopt;
  const auto hour = digits(text, at, 2);
  if (!hour || !literal(text, at, ":")) return std::nullopt;
  const auto minute = digits(text, at, 2);
  if (!minute || *hour > 23 || *minute > 59) return std::nullopt;
  const microseconds size = std::chrono::hours(*hour) + std::chrono::minutes(*minute);
  return east ? size : -size;
}

}  // namespace

std::string to_rfc3339(WallTime t) {
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day ymd(day);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(t - day).count();
  char text[40];
  const int n = std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(ymd.year()),
      static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), static_cast<int>(ms / 3'600'000),
      static_cast<int>(ms / 60'000 % 60), static_cast<int>(ms / 1000 % 60), static_cast<int>(ms % 1000));
  return std::string(text, static_cast<std::size_t>(n));
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  std::size_t at = 0;
  const auto day = date(text, at);
  if (!day || !literal(text, at, "Tt ")) return std::nullopt;
  const auto time = time_of_day(text, at);
  if (!time) return std::nullopt;
  const auto part = fraction(text, at);
  if (!part) return std::nullopt;
  const auto zone = offset(text, at);
  if (!zone || at != text.size()) return std::nullopt;
  return WallTime(*day) + *time + *part - *zone;
}

bool is_calendar_date(std::string_view text) {
  std::size_t at = 0;
  return date(text, at).has_value() && at == text.size();
}

}  // namespace weir

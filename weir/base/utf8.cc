#include "weir/base/utf8.h"

#include <cstdint>

namespace weir {
namespace {

// The length of the code point that starts at `at`, or 0 when none does.
std::size_t code_point_size(std::string_view s, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[at + i]); };
  const auto tail = [&](std::size_t i) { return at + i < s.size() && (byte(i) & 0xc0) == 0x80; };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
    if (first == 0xed && byte(1) > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;  // overlong
    if (first == 0xf4 && byte(1) > 0x8f) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

}  // namespace

std::optional<std::size_t> utf8_length(std::string_view bytes) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size(); ++count) {
    const std::size_t size = code_point_size(bytes, at);
    if (size == 0) return std::nullopt;
    at += size;
  }
  return count;
}

std::string_view utf8_prefix(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size() && count > 0) {
    ++at;
    while (at < text.size() && (static_cast<std::uint8_t>(text[at]) & 0xc0) == 0x80) ++at;
    --count;
  }
  return text.substr(0, at);
}

}  // namespace weir

// Small texts of HTTP: names without case, lists, percent-escapes. For this folder's own use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::http {

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// ASCII letters compare without case.
constexpr bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  }
  return true;
}

// Without the spaces and tabs around it.
constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the text before the next separator off the front of `rest`, trimmed.
constexpr std::string_view next_item(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view item = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return trimmed(item);
}

// The bytes behind %XX escapes; with `plus_is_space` a form's "+" too. Nothing for a broken escape, a NUL, or
// what isn't UTF-8 afterwards.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

// "application/json", with or without parameters.
bool is_json_type(std::string_view content_type);

}  // namespace weir::http

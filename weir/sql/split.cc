#include "weir/sql/split.h"

#include <algorithm>

namespace weir::sql::detail {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// `--` begins a comment only before space or the end: `5--1` is 6.
bool begins_line_comment(std::string_view text) {
  return text.starts_with('#') || (text.starts_with("--") && (text.size() == 2 || is_space(text[2])));
}

// How long the comment or quoted piece is that the text begins with; 0 when it begins with neither. One that
// isn't closed goes to the end, where the store will say so.
std::size_t comment_length(std::string_view text) {
  if (begins_line_comment(text)) return std::min(text.find('\n'), text.size() - 1) + 1;
  if (!text.starts_with("/*")) return 0;
  const auto end = text.find("*/", 2);
  return end == std::string_view::npos ? text.size() : end + 2;
}

std::size_t quoted_length(std::string_view text) {
  if (text.empty() || std::string_view("'\"`").find(text[0]) == std::string_view::npos) return 0;
  // A doubled quote closes one piece and opens the next, which comes to the same.
  const auto end = text.find(text[0], 1);
  return end == std::string_view::npos ? text.size() : end + 1;
}

}  // namespace

std::vector<std::string> split_statements(std::string_view script) {
  std::vector<std::string> statements;
  std::size_t begin = 0;
  bool has_words = false;
  auto end_statement = [&](std::size_t end) {
    if (has_words) statements.emplace_back(script.substr(begin, end - begin));
    begin = end + 1;
    has_words = false;
  };
  for (std::size_t at = 0; at < script.size();) {
    const std::string_view rest = script.substr(at);
    if (const auto comment = comment_length(rest); comment > 0) {
      at += comment;
    } else if (const auto quoted = quoted_length(rest); quoted > 0) {
      has_words = true;
      at += quoted;
    } else {
      if (rest[0] == ';') {
        end_statement(at);
      } else if (!is_space(rest[0])) {
        has_words = true;
      }
      ++at;
    }
  }
  end_statement(script.size());
  return statements;
}

std::string first_word(std::string_view statement) {
  while (!statement.empty()) {
    if (const auto comment = comment_length(statement); comment > 0) {
      statement.remove_prefix(comment);
    } else if (is_space(statement[0]) || statement[0] == '(') {
      statement.remove_prefix(1);
    } else {
      break;
    }
  }
  std::string word;
  for (const char c : statement) {
    const bool small = c >= 'a' && c <= 'z';
    if (!small && !(c >= 'A' && c <= 'Z')) break;
    word += small ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return word;
}

}  // namespace weir::sql::detail

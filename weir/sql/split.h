// Taking a script apart into its statements. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::sql::detail {

// The statements between the `;` of a script, in order, without those that are only space and comments. A `;`
// within '..', "..", `..` or a comment (-- and # to the end of the line, /* .. */) separates nothing. A quote
// within quotes is doubled, never escaped with a backslash; bodies of stored programs aren't understood. O(n).
std::vector<std::string> split_statements(std::string_view script);

// The statement's first word in capitals, past space, comments and opening brackets; empty when it has none.
std::string first_word(std::string_view statement);

}  // namespace weir::sql::detail

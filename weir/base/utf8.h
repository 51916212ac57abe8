// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace weir {

// The number of code points, or nothing when the bytes are not UTF-8. O(n).
std::optional<std::size_t> utf8_length(std::string_view bytes);

// The first `count` code points of valid UTF-8, as a view into it.
std::string_view utf8_prefix(std::string_view text, std::size_t count);

}  // namespace weir

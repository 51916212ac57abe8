// Lists: their three forms of parameters, and cursors.
//
//   limit (1..100, default 20) with offset
//   | page (from 1) with size (1..100, default 20)
//   | cursor with limit
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/request.h"
#include "weir/http/router.h"

namespace weir::http {

struct ListQuery {
  // When no form is named it is the cursor form from its beginning, and the answer has a `next_cursor`.
  enum class Form { offset, page, cursor };
  Form form = Form::cursor;
  std::int64_t limit = 20;  // how many rows, in every form; 1..100
  std::int64_t offset = 0;  // how many to skip, in the forms offset and page; at most kMaxOffset
  std::int64_t page = 1;    // in the form page
  std::string cursor;       // as sent; empty is the beginning

  bool wants_total() const { return form == Form::page; }
  bool wants_cursor() const { return form == Form::cursor; }
};

// Larger offsets and pages are cut to it: they are past the end of every list, and adding a limit can't
// overflow.
inline constexpr std::int64_t kMaxOffset = std::int64_t{1} << 62;

// Throws Problem 422 `invalid_field`, which names the field, for bad values and mixed forms.
ListQuery parse_list(const Request& request);

// The list parameters, for Doc::query.
std::vector<Parameter> list_parameters();

// A cursor holds the key of the last row that was answered: up to 8 numbers. `list` names the list and its
// order, so that a cursor of another list is refused. The text is base64url and opaque; its check finds
// typing errors and guesses, it is no signature: a cursor must not hold what its owner may not see or choose.
std::string encode_cursor(std::string_view list, std::initializer_list<std::int64_t> key);

// The numbers of a cursor of this list. Throws Problem 422 for any other text, also for another count of
// numbers.
std::vector<std::int64_t> decode_cursor_of(std::string_view list, std::string_view text, std::size_t count);
template <std::size_t Count>
std::array<std::int64_t, Count> decode_cursor(std::string_view list, std::string_view text) {
  const auto numbers = decode_cursor_of(list, text, Count);
  std::array<std::int64_t, Count> key{};
  for (std::size_t i = 0; i < Count; ++i) key[i] = numbers[i];
  return key;
}

}  // namespace weir::http

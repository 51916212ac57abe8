#include "weir/http/list_query.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "weir/base/hash.h"
#include "weir/http/fields.h"
#include "weir/http/token.h"

namespace weir::http {
namespace {

constexpr std::int64_t kMaxLimit = 100, kDefaultLimit = 20;
constexpr std::size_t kMaxCursorNumbers = 8;

std::optional<std::string> single(const Request& request, const char* name) {
  const auto& all = request.query_all();
  const auto count = std::ranges::count(all, name, [](const auto& pair) { return pair.first; });
  if (count > 1) throw invalid(name, "came more than once");
  return request.query(name);
}

// Digits without a sign or leading zeros; more of them than 63 bits hold are as good as the largest number.
std::int64_t whole_number(const char* name, const std::string& text, std::int64_t min) {
  const bool digits = !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || (text.size() > 1 && text[0] == '0')) throw invalid(name, "must be a whole number");
  const auto number = parse_decimal(text, std::numeric_limits<std::int64_t>::max());
  if (!number) return kMaxOffset;
  if (static_cast<std::int64_t>(*number) < min)
    throw invalid(name, "must be at least " + std::to_string(min));
  return std::min(static_cast<std::int64_t>(*number), kMaxOffset);
}

std::int64_t up_to_a_hundred(const Request& request, const char* name) {
  return query_integer(request, name, 1, kMaxLimit, kDefaultLimit);
}

std::uint32_t check_of(std::string_view list, std::string_view numbers) {
  return static_cast<std::uint32_t>(hash64(numbers, hash64(list)));
}

}  // namespace

ListQuery parse_list(const Request& request) {
  ListQuery list;
  const auto limit = single(request, "limit"), offset = single(request, "offset");
  const auto page = single(request, "page"), size = single(request, "size");
  auto cursor = single(request, "cursor");
  if (page || size) {
    const char* named = page ? "page" : "size";
    if (cursor) throw invalid("cursor", std::string("can't come with ") + named);
    if (offset) throw invalid("offset", std::string("can't come with ") + named);
    if (limit) throw invalid("limit", std::string("can't come with ") + named + "; its companion is size");
    list.form = ListQuery::Form::page;
    list.limit = up_to_a_hundred(request, "size");
    if (page) list.page = whole_number("page", *page, 1);
    list.offset = list.page - 1 > kMaxOffset / list.limit ? kMaxOffset : (list.page - 1) * list.limit;
    return list;
  }
  list.limit = up_to_a_hundred(request, "limit");
  if (cursor) {
    if (offset) throw invalid("offset", "can't come with cursor");
    if (cursor->empty()) throw invalid("cursor", "is unknown");
    list.cursor = std::move(*cursor);
  } else if (offset) {
    list.form = ListQuery::Form::offset;
    list.offset = whole_number("offset", *offset, 0);
  }
  return list;
}

std::vector<Parameter> list_parameters() {
  const auto number = [](const char* name, const char* description, boost::json::object schema) {
    return Parameter{name, description, "integer", "query", false, std::move(schema)};
  };
  return {
      number("limit", "How many, with offset or cursor.",
             {{"minimum", 1}, {"maximum", kMaxLimit}, {"default", kDefaultLimit}}),
      number("offset", "How many to skip. Not with page, size or cursor.", {{"minimum", 0}}),
      number("page", "From 1. Not with limit, offset or cursor.", {{"minimum", 1}}),
      number("size", "How many on a page.",
             {{"minimum", 1}, {"maximum", kMaxLimit}, {"default", kDefaultLimit}}),
      Parameter{
          "cursor", "The next_cursor of the answer before.", "string", "query", false, {{"minLength", 1}}},
  };
}

std::string encode_cursor(std::string_view list, std::initializer_list<std::int64_t> key) {
  std::string numbers;
  for (const std::int64_t number : key) {
    for (int shift = 56; shift >= 0; shift -= 8) numbers += static_cast<char>(number >> shift);
  }
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(check_of(list, numbers) >> shift);
  return base64url_encode(bytes + numbers);
}

std::vector<std::int64_t> decode_cursor_of(std::string_view list, std::string_view text, std::size_t count) {
  constexpr std::size_t kCheck = 4, kNumber = 8;
  const auto bytes =
      text.size() <= 2 * (kCheck + kNumber * kMaxCursorNumbers) ? base64url_decode(text) : std::nullopt;
  if (!bytes || bytes->size() != kCheck + kNumber * count) throw invalid("cursor", "is unknown");
  const auto big_endian = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>((*bytes)[at + i]);
    return value;
  };
  if (big_endian(0, kCheck) != check_of(list, std::string_view(*bytes).substr(kCheck))) {
    throw invalid("cursor", "is unknown");
  }
  std::vector<std::int64_t> key;
  for (std::size_t i = 0; i < count; ++i) {
    key.push_back(static_cast<std::int64_t>(big_endian(kCheck + kNumber * i, kNumber)));
  }
  return key;
}

}  // namespace weir::http

#include "weir/http/fields.h"

#include <boost/json/value.hpp>
#include <cmath>

#include "weir/base/utf8.h"

namespace weir::http {
namespace {

// The largest magnitude up to which a double holds every whole number.
constexpr double kExactDouble = 9007199254740992.0;

std::string between(std::int64_t min, std::int64_t max) {
  constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHighest = std::numeric_limits<std::int64_t>::max();
  if (min == kLowest && max == kHighest) return "must be a whole number of 64 bits";
  if (max == kHighest) return "must be at least " + std::to_string(min);
  if (min == kLowest) return "must be at most " + std::to_string(max);
  return "must be between " + std::to_string(min) + " and " + std::to_string(max);
}

}  // namespace

const boost::json::value* Fields::find(std::string_view name) const {
  const auto* value = object_.if_contains(name);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

const boost::json::value* Fields::required(std::string_view name) {
  const auto* value = find(name);
  if (value == nullptr) refuse(name, "is required");
  return value;
}

bool Fields::has(std::string_view name) const {
  return find(name) != nullptr;
}

bool Fields::is_null(std::string_view name) const {
  const auto* value = object_.if_contains(name);
  return value != nullptr && value->is_null();
}

void Fields::refuse(std::string_view name, std::string message) {
  errors_.push_back({std::string(name), std::move(message)});
}

void Fields::check() const {
  if (!errors_.empty()) throw invalid(errors_);
}

std::optional<std::string> Fields::text_of(std::string_view name, const boost::json::value& value,
                                           const TextLimits& limits) {
  const auto* text = value.if_string();
  if (text == nullptr) {
    refuse(name, "must be a text");
    return std::nullopt;
  }
  const std::string_view view(text->data(), text->size());
  if (view.find('\0') != std::string_view::npos) {
    refuse(name, "must not contain NUL");
    return std::nullopt;
  }
  if (view.size() > limits.max_bytes) {
    refuse(name, "must have at most " + std::to_string(limits.max_bytes) + " bytes");
    return std::nullopt;
  }
  const auto length = utf8_length(view);
  if (!length) {
    refuse(name, "must be UTF-8");
    return std::nullopt;
  }
  if (*length < limits.min) {
    refuse(name, limits.min == 1 ? "must not be empty"
                                 : "must have at least " + std::to_string(limits.min) + " characters");
    return std::nullopt;
  }
  if (*length > limits.max) {
    refuse(name, "must have at most " + std::to_string(limits.max) + " characters");
    return std::nullopt;
  }
  return std::string(view);
}

std::string Fields::string(std::string_view name, const TextLimits& limits) {
  const auto* value = limits.required ? required(name) : find(name);
  return value == nullptr ? std::string() : text_of(name, *value, limits).value_or(std::string());
}

std::optional<std::string> Fields::optional_string(std::string_view name, const TextLimits& limits) {
  const auto* value = find(name);
  return value == nullptr ? std::nullopt : text_of(name, *value, limits);
}

std::optional<std::int64_t> Fields::integer_of(std::string_view name, const boost::json::value& value,
                                               std::int64_t min, std::int64_t max) {
  std::optional<std::int64_t> number;
  if (const auto* whole = value.if_int64()) {
    number = *whole;
  } else if (const auto* real = value.if_double()) {
    if (std::trunc(*real) == *real && std::abs(*real) <= kExactDouble)
      number = static_cast<std::int64_t>(*real);
  } else if (!value.is_uint64()) {  // one beyond 2^63 - 1 is a number, but out of any range
    refuse(name, "must be a number");
    return std::nullopt;
  }
  if (!number || *number < min || *number > max) {
    refuse(name, between(min, max));
    return std::nullopt;
  }
  return number;
}

std::int64_t Fields::integer(std::string_view name, std::int64_t min, std::int64_t max) {
  const auto* value = required(name);
  return value == nullptr ? 0 : integer_of(name, *value, min, max).value_or(0);
}

std::optional<std::int64_t> Fields::optional_integer(std::string_view name, std::int64_t min,
                                                     std::int64_t max) {
  const auto* value = find(name);
  return value == nullptr ? std::nullopt : integer_of(name, *value, min, max);
}

std::optional<Id> Fields::id_of(std::string_view name, const boost::json::value& value) {
  const auto* text = value.if_string();
  const auto id = text == nullptr ? std::nullopt : parse_id({text->data(), text->size()});
  if (!id) refuse(name, "must be an id: a decimal text");
  return id;
}

Id Fields::id(std::string_view name) {
  const auto* value = required(name);
  return value == nullptr ? 0 : id_of(name, *value).value_or(0);
}

std::optional<Id> Fields::optional_id(std::string_view name) {
  const auto* value = find(name);
  return value == nullptr ? std::nullopt : id_of(name, *value);
}

bool Fields::boolean(std::string_view name) {
  return required(name) != nullptr && optional_boolean(name).value_or(false);
}

std::optional<bool> Fields::optional_boolean(std::string_view name) {
  const auto* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* truth = value->if_bool()) return *truth;
  refuse(name, "must be true or false");
  return std::nullopt;
}

Id query_id(const Request& request, std::string_view name) {
  const auto text = request.query(name);
  const auto id = text ? parse_id(*text) : std::nullopt;
  if (!id) throw invalid(std::string(name), text ? "must be an id" : "is required");
  return *id;
}

std::int64_t query_integer(const Request& request, std::string_view name, std::int64_t min, std::int64_t max,
                           std::int64_t otherwise) {
  const auto text = request.query(name);
  if (!text) return otherwise;
  const auto number = parse_decimal(*text, static_cast<std::uint64_t>(max));
  if (!number || static_cast<std::int64_t>(*number) < min)
    throw invalid(std::string(name), between(min, max));
  return static_cast<std::int64_t>(*number);
}

}  // namespace weir::http

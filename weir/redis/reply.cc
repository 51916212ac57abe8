#include "weir/redis/reply.h"

#include <utility>

namespace weir::redis {

Reply Reply::failure(std::exception_ptr why) {
  Reply reply;
  reply.kind_ = Kind::error;
  reply.value_ = std::move(why);
  return reply;
}

std::int64_t Reply::integer() const {
  if (kind_ != Kind::integer) refuse("an integer");
  return std::get<std::int64_t>(value_);
}

const std::string& Reply::text() const& {
  if (kind_ != Kind::text && kind_ != Kind::status) refuse("a text");
  return std::get<std::string>(value_);
}
std::string Reply::text() && {
  if (kind_ != Kind::text && kind_ != Kind::status) refuse("a text");
  return std::move(std::get<std::string>(value_));
}

std::optional<std::string_view> Reply::optional_text() const& {
  if (is_nil()) return std::nullopt;
  return text();
}

const Reply::Array& Reply::array() const& {
  if (kind_ != Kind::array) refuse("an array");
  return std::get<Array>(value_);
}
Reply::Array Reply::array() && {
  if (kind_ != Kind::array) refuse("an array");
  return std::move(std::get<Array>(value_));
}

std::string_view Reply::error_text() const {
  const auto* text = is_error() ? std::get_if<std::string>(&value_) : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

void Reply::throw_if_error(std::string_view command) const {
  if (kind_ != Kind::error) return;
  if (const auto* why = std::get_if<std::exception_ptr>(&value_)) std::rethrow_exception(*why);
  const auto& text = std::get<std::string>(value_);
  throw Error(error_kind(text), std::string(command) + ": " + text);
}

std::string Reply::describe() const {
  switch (kind_) {
    case Kind::nil:
      return "nil";
    case Kind::integer:
      return "an integer";
    case Kind::text:
      return "a text";
    case Kind::status:
      return "a status";
    case Kind::error:
      return "an error (" + std::string(error_text()) + ")";
    case Kind::array:
      return "an array of " + std::to_string(std::get<Array>(value_).size());
  }
  return "nothing";
}

void Reply::refuse(const char* wanted) const {
  if (is_error()) throw_if_error("Redis");
  throw Error(ErrorKind::unexpected, "Redis answered " + describe() + " where " + wanted + " was expected");
}

}  // namespace weir::redis

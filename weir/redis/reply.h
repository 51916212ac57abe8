// Reply: what Redis answered, as a plain value (RESP2).
//
//     const redis::Reply reply = co_await client.execute(redis::Command::read("GET", key));
//     if (const auto text = reply.optional_text()) use(*text);
//
// Asking for another kind than it is throws Error(unexpected) with a text that says what it is instead. Depth
// is at most 8 (the reader refuses more), so copying and destroying recurse no deeper.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/redis/error.h"

namespace weir::redis {

class Reply {
 public:
  enum class Kind { nil, integer, text, status, error, array };
  using Array = std::vector<Reply>;

  Reply() = default;  // nil
  explicit Reply(std::int64_t integer) : kind_(Kind::integer), value_(integer) {}
  explicit Reply(Array array) : kind_(Kind::array), value_(std::move(array)) {}
  // `kind`: text, status or error.
  Reply(Kind kind, std::string text) : kind_(kind), value_(std::move(text)) {}

  // In the place of a reply that is none, among many: why (NotDone, TimedOut ..).
  static Reply failure(std::exception_ptr why);

  Kind kind() const { return kind_; }
  bool is_nil() const { return kind_ == Kind::nil; }
  bool is_error() const { return kind_ == Kind::error; }

  std::int64_t integer() const;
  // A text or a status ("OK"); any bytes.
  const std::string& text() const&;
  std::string text() &&;
  // The same, and nothing for nil: what GET answers.
  std::optional<std::string_view> optional_text() const&;
  std::optional<std::string_view> optional_text() && = delete;  // would refer into what is about to go
  const Array& array() const&;
  Array array() &&;

  // What an error reply says; empty for others, and for a failure.
  std::string_view error_text() const;
  // Throws the reply as an Error if it is one, a failure as what it is. `command` begins the text.
  void throw_if_error(std::string_view command) const;

  // "nil", "an integer", "an error (WRONGTYPE ..)": for texts of errors. Never shows a value.
  std::string describe() const;

  bool operator==(const Reply&) const = default;

 private:
  friend class ReplyReader;
  [[noreturn]] void refuse(const char* wanted) const;

  Kind kind_ = Kind::nil;
  std::variant<std::monostate, std::int64_t, std::string, Array, std::exception_ptr> value_;
};

}  // namespace weir::redis

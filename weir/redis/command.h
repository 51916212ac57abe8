// Command: a Redis command, encoded when it is made, so that its arguments needn't live any longer.
//
//     redis::Command("SET", key, value, "PX", 1500)
//     redis::Command::read("GET", key)       // may be sent again when the connection breaks
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::redis {

class Command {
 public:
  // A text (any bytes) or an integer.
  class Argument {
   public:
    Argument(std::string_view text) : text_(text) {}  // implicit, as all of these
    Argument(const std::string& text) : text_(text) {}
    Argument(const char* text) : text_(text) {}
    template <std::integral T>
      requires(!std::same_as<T, bool> && !std::same_as<T, char>)
    Argument(T number) : length_(std::to_chars(digits_, digits_ + sizeof digits_, number).ptr - digits_) {}
    std::string_view text() const { return length_ == 0 ? text_ : std::string_view(digits_, length_); }

   private:
    std::string_view text_;
    std::size_t length_ = 0;  // of digits_, when it is a number
    char digits_[24];
  };

  // `name` is the first word, at most 32 letters. Throws std::invalid_argument for another, and for what
  // would take a connection away from the others who share it: SUBSCRIBE and its kin, MONITOR, blocking
  // commands (BLPOP ..), WATCH, MULTI and EXEC (see Client::transaction), SELECT, AUTH, HELLO, QUIT, RESET,
  // ASKING, READONLY and READWRITE, CLIENT REPLY.
  template <class... A>
  explicit Command(std::string_view name, const A&... arguments)
      : Command(name, std::span<const Argument>(std::array<Argument, sizeof...(A)>{Argument(arguments)...})) {
  }
  Command(std::string_view name, std::span<const Argument> arguments);

  // A command that may be done twice without harm.
  template <class... A>
  static Command read(std::string_view name, A&&... arguments) {
    return Command(name, std::forward<A>(arguments)...).idempotent();
  }
  Command& idempotent() & {
    idempotent_ = true;
    return *this;
  }
  Command&& idempotent() && {
    idempotent_ = true;
    return std::move(*this);
  }

  bool is_idempotent() const { return idempotent_; }
  // In capitals.
  const std::string& name() const { return name_; }
  // As it is sent.
  const std::string& bytes() const& { return bytes_; }
  std::string bytes() && { return std::move(bytes_); }

 private:
  friend class Handshake;
  struct Unchecked {};
  Command(Unchecked, std::string_view name, std::span<const Argument> arguments);

  std::string name_;
  std::string bytes_;
  bool idempotent_ = false;
};

}  // namespace weir::redis

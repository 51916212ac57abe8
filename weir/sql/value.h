// What goes into a statement: its text and name (Query) and its parameters (Param, Value).
#pragma once

#include <boost/json/fwd.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "weir/base/clock.h"

namespace weir::sql {

// A statement and what it is called in metrics: each execution counts in
// weir_store_queries_total{module,operation}. One statement, parameters written as plain `?`.
//
// Fixed texts are constants of their .cc; texts of varying length (IN lists, multi-row VALUES) are built at
// run time, see placeholders.h.
//
// `text` is for every store, unless MariaDB and MySQL want another one (ON DUPLICATE KEY UPDATE for
// ON CONFLICT), which then is `mysql`, with the same parameters. Where even the steps differ (no UPDATE ..
// RETURNING there), look at Session::dialect().
struct Query {
  std::string module, operation, text;
  std::string mysql = {};
};

// Whose SQL the store speaks.
enum class Dialect { sqlite, mysql };

using Blob = std::vector<std::byte>;
// A parameter that owns what it holds, for lists whose length is known at run time only. A std::size_t or a
// string_view has to be converted first.
using Value = std::variant<std::monostate, std::int64_t, double, std::string, Blob>;

namespace detail {
template <class T>
concept Json = std::same_as<T, boost::json::value> || std::same_as<T, boost::json::object> ||
               std::same_as<T, boost::json::array>;
std::string to_json_text(const boost::json::value& value);
std::string to_json_text(const boost::json::object& value);
std::string to_json_text(const boost::json::array& value);
[[noreturn]] void throw_unsigned_too_large();
}  // namespace detail

// A parameter as the driver binds it: a look at the caller's value, which must live until the call returns.
// Made implicitly from integers (unsigned ones above 2^63 - 1 throw Error misuse), bool (0 or 1), floating
// point numbers, text, bytes, WallTime (microseconds since 1970), JSON (its text), Value, and optionals of
// all these.
class Param {
 public:
  using Bytes = std::span<const std::byte>;
  using Held = std::variant<std::monostate, std::int64_t, double, std::string_view, Bytes, std::string>;

  Param(std::nullopt_t) {}
  template <std::integral T>
  Param(T number) : held_(static_cast<std::int64_t>(number)) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) >= sizeof(std::int64_t))
      if (std::get<std::int64_t>(held_) < 0) detail::throw_unsigned_too_large();
  }
  template <std::floating_point T>
  Param(T number) : held_(static_cast<double>(number)) {}
  template <class T>
    requires std::convertible_to<const T&, std::string_view>
  Param(const T& text) : held_(std::string_view(text)) {}
  Param(const Blob& bytes) : held_(Bytes(bytes)) {}
  Param(Bytes bytes) : held_(bytes) {}
  Param(WallTime time) : held_(to_micros(time)) {}
  template <detail::Json T>
  Param(const T& json) : held_(detail::to_json_text(json)) {}
  template <class T>
  Param(const std::optional<T>& maybe) : Param(maybe ? Param(*maybe) : Param(std::nullopt)) {}
  template <std::same_as<Value> T>
  Param(const T& value) : Param(of(value)) {}

  const Held& held() const { return held_; }

 private:
  static Param of(const Value& value);

  Held held_;
};

template <class T>
concept Bindable = std::constructible_from<Param, const T&>;

}  // namespace weir::sql

// Row: the row that a statement stands on, read with checked types.
#pragma once

#include <boost/json/value.hpp>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/sql/value.h"

namespace weir::sql {

namespace detail {
class Statement;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kUnreadable = false;
}  // namespace detail

// Lives while the function that is given it runs.
class Row {
 public:
  explicit Row(const detail::Statement& statement) : statement_(&statement) {}

  // The column, counted from 0. T is an integer type (a value outside of it is refused), bool (0 or 1),
  // double (an integer is taken too), std::string, Blob, WallTime (an integer of microseconds),
  // boost::json::value (text that holds JSON), std::optional of one of them for columns that may be NULL, or,
  // valid until the next row, std::string_view or std::span<const std::byte>. Throws Error misuse for a
  // column that isn't there, is NULL without optional or has another type; Error corrupt for a JSON text that
  // isn't JSON.
  template <class T>
  T get(int column) const {
    if constexpr (detail::kIsOptional<T>) {
      if (is_null(column)) return std::nullopt;
      return get<typename T::value_type>(column);
    } else if constexpr (std::same_as<T, bool>) {
      return boolean(column);
    } else if constexpr (std::integral<T>) {
      const std::int64_t number = integer(column);
      if (!std::in_range<T>(number)) throw_out_of_range(column, number);
      return static_cast<T>(number);
    } else if constexpr (std::same_as<T, double>) {
      return real(column);
    } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
      return T(text(column));
    } else if constexpr (std::same_as<T, std::span<const std::byte>>) {
      return bytes(column);
    } else if constexpr (std::same_as<T, Blob>) {
      const auto held = bytes(column);
      return Blob(held.begin(), held.end());
    } else if constexpr (std::same_as<T, WallTime>) {
      return from_micros(integer(column));
    } else if constexpr (std::same_as<T, boost::json::value>) {
      return json(column);
    } else {
      static_assert(detail::kUnreadable<T>, "sql::Row::get can't read this type");
    }
  }

  bool is_null(int column) const;
  int columns() const;

 private:
  bool boolean(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::span<const std::byte> bytes(int column) const;
  boost::json::value json(int column) const;
  [[noreturn]] void throw_out_of_range(int column, std::int64_t number) const;

  const detail::Statement* statement_;
};

// Maps a row to its first column: session.one(kCount, sql::first<std::int64_t>).
template <class T>
inline constexpr auto first = [](const Row& row) { return row.get<T>(0); };

}  // namespace weir::sql

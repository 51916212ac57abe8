#include "weir/sql/value.h"

#include <boost/json/serialize.hpp>

#include "weir/sql/error.h"

namespace weir::sql {

namespace detail {

std::string to_json_text(const boost::json::value& value) {
  return boost::json::serialize(value);
}
std::string to_json_text(const boost::json::object& value) {
  return boost::json::serialize(value);
}
std::string to_json_text(const boost::json::array& value) {
  return boost::json::serialize(value);
}

void throw_unsigned_too_large() {
  throw Error(ErrorKind::misuse, "a parameter is larger than a 64-bit integer of the store");
}

}  // namespace detail

Param Param::of(const Value& value) {
  return std::visit(
      [](const auto& held) -> Param {
        if constexpr (std::same_as<decltype(held), const std::monostate&>) {
          return std::nullopt;
        } else {
          return held;
        }
      },
      value);
}

}  // namespace weir::sql

// What MySQL's and MariaDB's error numbers mean to a caller. Internal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/sql/error.h"

namespace weir::sql::detail {

struct MysqlFault {
  unsigned code = 0;
  std::string text;
};
// What a request came to: nothing, or its fault.
using MysqlOutcome = std::optional<MysqlFault>;

// Whether the connection is gone, or as good as that.
bool is_lost(unsigned code) noexcept;
// Whether the server refuses this user or database, now and later.
bool is_refusal(unsigned code) noexcept;
// For faults of statements. The text matters where the server gives one number to several faults.
ErrorKind mysql_kind(unsigned code, std::string_view text) noexcept;

}  // namespace weir::sql::detail

// SQLite behind sql::Session. Internal; SQLite's own header is seen by sqlite.cc alone.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "weir/sql/driver.h"

namespace weir::sql::detail {

struct SqliteOptions {
  std::string path;
  bool writes = false;
  bool full_sync = true;
  std::chrono::milliseconds busy_timeout{5'000};
};

// Opens the file, a writer creating it and turning its write-ahead log on. Throws Unusable with the path when
// it can't be opened or is no database.
std::unique_ptr<Connection> open_sqlite(const SqliteOptions& options);

// `writes` is what a role says.
std::shared_ptr<const Driver> sqlite_driver(SqliteOptions options);

}  // namespace weir::sql::detail

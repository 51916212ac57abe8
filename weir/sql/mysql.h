// MariaDB or MySQL as the store of a Database (library weir::mysql):
//
//   sql::Database store({.driver = sql::mysql({.url = "mysql://weir:secret@db:3306/weir"}), .readers = 8});
//
// Sessions speak utf8mb4, live in UTC, are strict (a value that doesn't fit is refused, never cut), know "x" as
// a name and || as concatenation, as SQLite does. A connection that was lost is made anew by the next call.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace weir::sql {

namespace detail {
class Driver;
}

// Times are rounded up to seconds, which is all that the client library and the server know.
struct MysqlOptions {
  // mysql://user[:password]@host[:port]/database, see mysql_url.h. Always TCP; TLS isn't supported. The database
  // exists and was made with CHARACTER SET utf8mb4 and a collation that compares bytes (utf8mb4_nopad_bin on
  // MariaDB, utf8mb4_0900_bin on MySQL); Database::migrate refuses others.
  std::string url = {};
  int writers = 4;  // sessions that write, beside Options::readers
  std::chrono::milliseconds connect_timeout{3'000};
  // How long the server may take for a statement, and for taking one in. A server that stands still ends a call
  // after one of them, a connection in the way of being made again after connect_timeout.
  std::chrono::milliseconds read_timeout{10'000};
  std::chrono::milliseconds write_timeout{10'000};
  // How long a statement waits for another transaction's lock before that write is undone and begins again.
  std::chrono::milliseconds lock_timeout{2'000};
  // How long one statement of a migration may take, and how long to wait for another process that migrates.
  std::chrono::milliseconds migration_timeout{3'600'000};
};

// For Options::driver. Connects nowhere yet. Throws Unusable for a URL or a number that can't be meant; the text
// hides the password.
std::shared_ptr<const detail::Driver> mysql(const MysqlOptions& options);

}  // namespace weir::sql

#include "weir/sql/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <mutex>
#include <string_view>
#include <thread>

#include "weir/base/fault.h"
#include "weir/sql/error.h"

namespace weir::sql::detail {
namespace {

// Cached pages of one connection. A reader's are thrown away whenever another connection has written, so more
// would only cost memory: the system's page cache is what makes reads fast.
constexpr int kReaderCacheKib = 1024;
constexpr int kWriterCacheKib = 4096;
// Pages of 4 KiB in the log after which a commit moves them into the file. Fewer flushes than with SQLite's
// 1,000.
constexpr int kCheckpointPages = 2000;
// A log that grew past this, behind a slow reader or in a bulk load, is cut back to it.
constexpr int kKeptLogBytes = 32 * 1024 * 1024;
// Turning the log on needs the file for a moment alone, and SQLite doesn't wait for that by itself.
constexpr std::chrono::milliseconds kWalRetry{10};

struct Close {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
using Handle = std::unique_ptr<sqlite3, Close>;
struct Finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};

bool out_of_space(int number) {
  return number == ENOSPC || number == EDQUOT || number == EFBIG;
}

// With errno as the failing call left it.
ErrorKind kind_of(int code, sqlite3* db) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
      return ErrorKind::busy;
    case SQLITE_CONSTRAINT:
      return code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY ||
                     code == SQLITE_CONSTRAINT_ROWID
                 ? ErrorKind::unique_violation
                 : ErrorKind::constraint;
    case SQLITE_MISMATCH:
      return ErrorKind::constraint;
    case SQLITE_FULL:
      return ErrorKind::full;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorKind::corrupt;
    case SQLITE_READONLY:
      return sqlite3_db_readonly(db, "main") == 1 ? ErrorKind::io : ErrorKind::misuse;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      // SQLite itself knows ENOSPC as SQLITE_FULL, but neither a quota nor a limit of the file's size; and
      // its sqlite3_system_errno doesn't know what made a COMMIT fail.
      return out_of_space(errno) ? ErrorKind::full : ErrorKind::io;
    case SQLITE_NOMEM:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
      return ErrorKind::io;
    default:
      return ErrorKind::misuse;
  }
}

[[noreturn]] void raise(int code, sqlite3* db) {
  throw Error(kind_of(code, db), std::string(sqlite3_errmsg(db)) + " (SQLite " + std::to_string(code) + ")",
              code);
}

void check(int code, sqlite3* db) {
  if (code != SQLITE_OK) raise(code, db);
}

class SqliteStatement final : public Statement {
 public:
  SqliteStatement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}

  bool writes() const override { return sqlite3_stmt_readonly(statement_.get()) == 0; }
  int parameters() const override { return sqlite3_bind_parameter_count(statement_.get()); }

  void bind(int index, const Param& param) override {
    check(std::visit([&](const auto& held) { return bind_one(index + 1, held); }, param.held()), db_);
  }

  bool step() override {
    errno = 0;  // what is there after a failure is its own
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) raise(code, db_);
    return false;
  }

  void reset() noexcept override {
    sqlite3_reset(statement_.get());
    sqlite3_clear_bindings(statement_.get());
  }

  int columns() const override { return sqlite3_column_count(statement_.get()); }
  std::string name(int column) const override {
    const char* text = sqlite3_column_name(statement_.get(), column);
    return text ? text : "";
  }
  Type type(int column) const override {
    switch (sqlite3_column_type(statement_.get(), column)) {
      case SQLITE_INTEGER:
        return Type::integer;
      case SQLITE_FLOAT:
        return Type::real;
      case SQLITE_TEXT:
        return Type::text;
      case SQLITE_BLOB:
        return Type::blob;
      default:
        return Type::null;
    }
  }
  std::int64_t integer(int column) const override { return sqlite3_column_int64(statement_.get(), column); }
  double real(int column) const override { return sqlite3_column_double(statement_.get(), column); }
  std::string_view text(int column) const override {
    const auto held = bytes(column);
    return {reinterpret_cast<const char*>(held.data()), held.size()};
  }
  std::span<const std::byte> bytes(int column) const override {
    // In this order: the first may move the bytes, the second counts what was moved.
    const void* start = sqlite3_column_blob(statement_.get(), column);
    const int size = sqlite3_column_bytes(statement_.get(), column);
    if (!start) return {};
    return {static_cast<const std::byte*>(start), static_cast<std::size_t>(size)};
  }

 private:
  int bind_one(int index, std::monostate) { return sqlite3_bind_null(statement_.get(), index); }
  int bind_one(int index, std::int64_t number) { return sqlite3_bind_int64(statement_.get(), index, number); }
  int bind_one(int index, double number) {
    if (std::isnan(number))
      throw Error(ErrorKind::misuse, "a parameter is not a number, which would become NULL");
    return sqlite3_bind_double(statement_.get(), index, number);
  }
  // SQLite takes a null pointer for NULL, but an empty text is none.
  int bind_one(int index, std::string_view text) {
    return sqlite3_bind_text64(statement_.get(), index, text.data() ? text.data() : "", text.size(),
                               SQLITE_STATIC, SQLITE_UTF8);
  }
  int bind_one(int index, Param::Bytes bytes) {
    return sqlite3_bind_blob64(statement_.get(), index,
                               bytes.data() ? static_cast<const void*>(bytes.data()) : "", bytes.size(),
                               SQLITE_STATIC);
  }

  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteConnection final : public Connection {
 public:
  SqliteConnection(Handle db, bool writes) : db_(std::move(db)), writes_(writes) {}

  Dialect dialect() const noexcept override { return Dialect::sqlite; }

  std::unique_ptr<Statement> prepare(const std::string& text) override {
    if (text.size() >= std::numeric_limits<int>::max())
      throw Error(ErrorKind::misuse, "a statement of 2 GiB or more");
    sqlite3_stmt* statement = nullptr;
    const char* rest = nullptr;
    check(sqlite3_prepare_v3(db_.get(), text.c_str(), static_cast<int>(text.size()) + 1,
                             SQLITE_PREPARE_PERSISTENT, &statement, &rest),
          db_.get());
    auto prepared = std::make_unique<SqliteStatement>(db_.get(), statement);
    if (!statement) throw Error(ErrorKind::misuse, "an empty statement");
    if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos)
      throw Error(ErrorKind::misuse, "more than one statement in a text");
    return prepared;
  }

  void script(const std::string& text) override {
    errno = 0;
    check(sqlite3_exec(db_.get(), text.c_str(), nullptr, nullptr, nullptr), db_.get());
  }

  bool in_transaction() const noexcept override { return sqlite3_get_autocommit(db_.get()) == 0; }
  std::string_view begin_text() const noexcept override { return writes_ ? "BEGIN IMMEDIATE" : "BEGIN"; }
  void roll_back() noexcept override {
    // An error leaves nothing to do: in_transaction() tells whether one is still open.
    if (in_transaction()) sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }

  void start_counting() noexcept override {
    // SQLite keeps both figures of the last statement that had any; a statement that had none must not show
    // them.
    sqlite3_set_last_insert_rowid(db_.get(), 0);
    total_before_ = sqlite3_total_changes64(db_.get());
  }
  Changes counted() const noexcept override {
    if (sqlite3_total_changes64(db_.get()) == total_before_) return {};
    return {sqlite3_changes64(db_.get()), sqlite3_last_insert_rowid(db_.get())};
  }

 private:
  Handle db_;
  const bool writes_;
  std::int64_t total_before_ = 0;
};

// What a database file holds is for its owner only. Only a file that wasn't there is touched: closing a file
// that SQLite has open in this process would give up SQLite's locks on it (POSIX).
void create_privately(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) ::close(file);
}

std::string journal_mode_after(sqlite3* db, const char* pragma) {
  std::string mode;
  auto keep = [](void* to, int, char** values, char**) {
    *static_cast<std::string*>(to) = values[0] ? values[0] : "";
    return 0;
  };
  check(sqlite3_exec(db, pragma, keep, &mode, nullptr), db);
  return mode;
}

void turn_log_on(sqlite3* db, std::chrono::milliseconds patience) {
  for (std::chrono::milliseconds waited{0};; waited += kWalRetry) {
    try {
      const std::string mode = journal_mode_after(db, "PRAGMA journal_mode=WAL");
      if (mode == "wal") return;
      throw Unusable("its file system can't hold a write-ahead log (journal mode " + mode + ")");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::busy || waited >= patience) throw;
    }
    std::this_thread::sleep_for(kWalRetry);
  }
}

void set_up(sqlite3* db, const SqliteOptions& options) {
  check(sqlite3_busy_timeout(db, static_cast<int>(options.busy_timeout.count())), db);
  // "x" names a column, never a text: a misspelt column is an error.
  check(sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, nullptr), db);
  check(sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr), db);
  std::string settings = "PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY; ";
  settings +=
      "PRAGMA cache_size=-" + std::to_string(options.writes ? kWriterCacheKib : kReaderCacheKib) + ';';
  settings += options.full_sync ? "PRAGMA synchronous=FULL;" : "PRAGMA synchronous=NORMAL;";
  if (options.writes) {
    turn_log_on(db, options.busy_timeout);
    settings += "PRAGMA wal_autocheckpoint=" + std::to_string(kCheckpointPages) + ';';
    settings += "PRAGMA journal_size_limit=" + std::to_string(kKeptLogBytes) + ';';
  } else {
    settings += "PRAGMA query_only=ON;";
  }
  // The first reading statement finds out whether the file is a database at all.
  settings += "SELECT count(*) FROM sqlite_master";
  check(sqlite3_exec(db, settings.c_str(), nullptr, nullptr, nullptr), db);
}

Handle open_handle(const SqliteOptions& options) {
  static std::once_flag once;
  // Statistics of memory would put one lock around every allocation of all connections.
  std::call_once(once, [] { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); });
  if (options.path.empty() || options.path == ":memory:")
    throw Unusable("the store needs a file: its connections share it");
  if (options.writes) create_privately(options.path);
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | (options.writes ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX |
                    SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(options.path.c_str(), &raw, flags, nullptr);
  Handle db(raw);  // there is one even when opening failed
  if (code != SQLITE_OK) {
    std::string text = "can't open the database " + options.path + ": ";
    text += raw ? sqlite3_errmsg(raw) : sqlite3_errstr(code);
    const int number = raw ? sqlite3_system_errno(raw) : 0;
    if (number != 0) {
      errno = number;
      text = errno_text(text);
    }
    throw Unusable(text);
  }
  return db;
}

class SqliteDriver final : public Driver {
 public:
  explicit SqliteDriver(SqliteOptions options) : options_(std::move(options)) {}

  std::unique_ptr<Connection> open(Role role) const override {
    SqliteOptions options = options_;
    options.writes = role != Role::reader;
    return open_sqlite(options);
  }
  std::string place() const override { return options_.path; }
  int separate_writers() const noexcept override { return 0; }
  bool commits_schema() const noexcept override { return false; }

 private:
  const SqliteOptions options_;
};

}  // namespace

std::shared_ptr<const Driver> sqlite_driver(SqliteOptions options) {
  return std::make_shared<SqliteDriver>(std::move(options));
}

std::unique_ptr<Connection> open_sqlite(const SqliteOptions& options) {
  Handle db = open_handle(options);
  try {
    set_up(db.get(), options);
  } catch (const Unusable& error) {
    throw Unusable("can't use the database " + options.path + ": " + error.what());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::corrupt)
      throw Unusable(options.path + " is no SQLite database, or a damaged one: " + error.what());
    throw Error(error.kind(), "can't use the database " + options.path + ": " + error.what(), error.code());
  }
  return std::make_unique<SqliteConnection>(std::move(db), options.writes);
}

}  // namespace weir::sql::detail

#include "weir/sql/mysql_connection.h"

#include <algorithm>
#include <charconv>
#include <mutex>

#include "weir/base/fault.h"
#include "weir/sql/mysql_statement.h"
#include "weir/sql/split.h"
#include "weir/telemetry/metrics.h"

namespace weir::sql::detail {
namespace {

using std::chrono::milliseconds;

// Waits between tries to connect, per session.
constexpr milliseconds kFirstConnectWait{50};
constexpr milliseconds kMaxConnectWait{1'000};

constexpr milliseconds kMigratorGrace{10'000};

// STRICT and NO_ZERO: a value that doesn't fit is refused, never changed. NO_BACKSLASH_ESCAPES, ANSI_QUOTES and
// PIPES_AS_CONCAT: the SQL of the standard, which is SQLite's too. NO_AUTO_VALUE_ON_ZERO: an id of 0 stays 0.
constexpr std::string_view kModes =
    "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,"
    "NO_AUTO_VALUE_ON_ZERO,NO_UNSIGNED_SUBTRACTION";

unsigned whole_seconds(milliseconds time) {
  return static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(time).count());
}

std::string with_code(const MysqlFault& fault) {
  return fault.text + " (MySQL " + std::to_string(fault.code) + ")";
}

}  // namespace

MysqlConnection::MysqlConnection(std::shared_ptr<const MysqlSettings> settings, Driver::Role role)
    : settings_(std::move(settings)), role_(role), backoff_(kFirstConnectWait, kMaxConnectWait) {
  connect();
}

milliseconds MysqlConnection::read_timeout() const {
  const MysqlOptions& options = settings_->options;
  // The server gives up first, and says why.
  return role_ == Driver::Role::migrator ? options.migration_timeout + kMigratorGrace : options.read_timeout;
}

void MysqlConnection::set_options(MYSQL* handle) const {
  const MysqlOptions& options = settings_->options;
  const unsigned connect_seconds = whole_seconds(options.connect_timeout);
  const unsigned read_seconds = whole_seconds(read_timeout());
  const unsigned write_seconds = whole_seconds(options.write_timeout);
  const unsigned off = 0;
  const unsigned tcp = MYSQL_PROTOCOL_TCP;  // else "localhost" would be a socket file
  mysql_optionsv(handle, MYSQL_OPT_CONNECT_TIMEOUT, &connect_seconds);
  mysql_optionsv(handle, MYSQL_OPT_READ_TIMEOUT, &read_seconds);
  mysql_optionsv(handle, MYSQL_OPT_WRITE_TIMEOUT, &write_seconds);
  mysql_optionsv(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_optionsv(handle, MYSQL_OPT_PROTOCOL, &tcp);
  // A server could ask for any file of this machine.
  mysql_optionsv(handle, MYSQL_OPT_LOCAL_INFILE, &off);
}

// Throws Unusable for what no later try would change, else Error lost.
void MysqlConnection::connect() {
  static std::once_flag once;
  std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
  if (Clock::system().steady_now() < not_before_ && *settings_->connects == connects_then_)
    throw Error(ErrorKind::lost, last_fault_);
  connects_then_ = *settings_->connects;
  const MysqlAddress& address = settings_->address;
  MYSQL* const made = mysql_init(nullptr);
  if (!made) throw Error(ErrorKind::io, "memory ran out");
  std::shared_ptr<MYSQL> fresh(made, &mysql_close);
  set_options(fresh.get());
  const bool connected =
      mysql_real_connect(fresh.get(), address.host.c_str(), address.user.c_str(), address.password.c_str(),
                         address.database.c_str(), address.port, nullptr, CLIENT_FOUND_ROWS) != nullptr;
  handle_ = std::move(fresh);
  ++generation_;
  try {
    if (!connected) {
      const MysqlFault why = *fault();
      const std::string text = "can't connect to " + address.place() + ": " + with_code(why);
      if (is_refusal(why.code) && generation_ == 1) throw Unusable(text);
      throw Error(ErrorKind::lost, text, static_cast<int>(why.code));
    }
    set_up();
  } catch (const std::exception& error) {
    handle_.reset();
    last_fault_ = error.what();
    not_before_ = Clock::system().steady_now() + backoff_.next();
    throw;
  }
  backoff_.reset();
  ++*settings_->connects;
  static auto connects =
      telemetry::counter("weir_store_connects_total", "Connections made to the store's server");
  connects.add();
}

void MysqlConnection::set_up() {
  const bool migrates = role_ == Driver::Role::migrator;
  const std::string wait = std::to_string(
      whole_seconds(migrates ? settings_->options.migration_timeout : settings_->options.lock_timeout));
  std::string settings = "SET SESSION sql_mode='";
  settings += kModes;
  settings +=
      "', time_zone='+00:00', autocommit=1, foreign_key_checks=1, unique_checks=1, "
      "innodb_lock_wait_timeout=" +
      wait + ", lock_wait_timeout=" + wait;
  const std::string_view isolation =
      role_ == Driver::Role::reader ? "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
                                    : "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE";
  for (const std::string_view text :
       {std::string_view("SET NAMES utf8mb4 COLLATE utf8mb4_bin"), std::string_view(settings), isolation})
    if (const auto failure = query(text))
      throw Error(ErrorKind::lost, settings_->address.place() + ": " + with_code(*failure),
                  static_cast<int>(failure->code));
  const auto failure = query("SELECT @@max_allowed_packet");
  const std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)> result(
      failure ? nullptr : mysql_store_result(handle_.get()), &mysql_free_result);
  const MYSQL_ROW row = result ? mysql_fetch_row(result.get()) : nullptr;
  const std::string_view digits = row && row[0] ? row[0] : "";
  if (std::from_chars(digits.data(), digits.data() + digits.size(), max_packet_).ec != std::errc())
    throw Error(ErrorKind::lost,
                settings_->address.place() + ": the server doesn't tell its max_allowed_packet");
}

void MysqlConnection::revive() {
  if (handle_) return;
  // What a migrator holds, a lock, went with its connection.
  if (role_ == Driver::Role::migrator)
    throw Error(ErrorKind::lost,
                "the connection to " + settings_->address.place() + " was lost while migrating");
  connect();
}

void MysqlConnection::drop() noexcept {
  // At once, whoever still reads rows of it: the server shall let go of its locks.
  if (handle_) mariadb_cancel(handle_.get());
  handle_.reset();
  in_transaction_ = false;
}

MysqlOutcome MysqlConnection::fault() const {
  const unsigned code = mysql_errno(handle_.get());
  // A failure without a number would be the library's own mistake; it counts as a broken connection.
  return MysqlFault{code != 0 ? code : 2027, mysql_error(handle_.get())};
}

MysqlOutcome MysqlConnection::query(std::string_view text) {
  if (mysql_real_query(handle_.get(), text.data(), text.size()) != 0) return fault();
  return std::nullopt;
}

// Whether a request is to be sent once more. Not within a transaction, whose beginning is gone; and not after a
// time-out, which has cost the caller enough.
bool MysqlConnection::repeats(Lost lost, const MysqlFault& fault, SteadyTime begun) {
  if (!is_lost(fault.code) || lost != Lost::repeat || in_transaction_ || role_ == Driver::Role::migrator)
    return false;
  const auto whole =
      std::chrono::ceil<std::chrono::seconds>(std::min(read_timeout(), settings_->options.write_timeout));
  if (Clock::system().steady_now() - begun >= whole) return false;
  drop();
  return true;
}

void MysqlConnection::raise(Lost lost, const MysqlFault& fault) {
  const int code = static_cast<int>(fault.code);
  if (is_lost(fault.code)) {
    drop();
    const bool uncertain = lost == Lost::uncertain;
    throw Error(uncertain ? ErrorKind::unknown : ErrorKind::lost,
                with_code(fault) + (uncertain ? ": nobody knows whether it was done" : ""), code);
  }
  const ErrorKind kind = mysql_kind(fault.code, fault.text);
  // After these the server has rolled back a statement or all, as its settings want: so that it is the same
  // everywhere, all of it.
  if (kind == ErrorKind::busy || kind == ErrorKind::full || kind == ErrorKind::io ||
      kind == ErrorKind::corrupt)
    roll_back();
  throw Error(kind, with_code(fault), code);
}

MysqlConnection::Lost MysqlConnection::when_lost(bool writes) const {
  if (in_transaction_) return Lost::give_up;
  return writes ? Lost::uncertain : Lost::repeat;
}

void MysqlConnection::ask_text(Lost lost, std::string_view text) {
  if (text.size() + 1 > max_packet_)
    throw Error(ErrorKind::constraint, "a statement of " + std::to_string(text.size()) +
                                           " bytes; the server's max_allowed_packet is " +
                                           std::to_string(max_packet_));
  ask(lost, [&]() -> MysqlOutcome {
    if (auto failure = query(text)) return failure;
    MYSQL_RES* const result = mysql_store_result(handle_.get());
    if (!result && mysql_field_count(handle_.get()) > 0) return fault();
    mysql_free_result(result);
    return std::nullopt;
  });
  note_status();
}

void MysqlConnection::note_status() {
  unsigned status = 0;
  mariadb_get_infov(handle_.get(), MARIADB_CONNECTION_SERVER_STATUS, &status);
  in_transaction_ = (status & SERVER_STATUS_IN_TRANS) != 0;
}

std::unique_ptr<Statement> MysqlConnection::prepare(const std::string& text) {
  // The server would take it for a statement that does nothing.
  if (split_statements(text).empty()) throw Error(ErrorKind::misuse, "an empty statement");
  const std::string word = first_word(text);
  for (const std::string_view control : {"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"})
    if (word == control) return std::make_unique<MysqlControl>(*this, text);
  return std::make_unique<MysqlStatement>(*this, text);
}

// Statement by statement, so that none runs outside of the transaction that one before it has ended.
void MysqlConnection::script(const std::string& text) {
  const bool inside = in_transaction_;
  for (const std::string& statement : split_statements(text)) {
    ask_text(when_lost(true), statement);
    if (in_transaction_ == inside) continue;
    roll_back();
    throw Error(ErrorKind::misuse,
                "a statement that changes tables commits on MySQL, and can't be part of a transaction; nor "
                "can BEGIN or "
                "COMMIT");
  }
}

std::string_view MysqlConnection::begin_text() const noexcept {
  return role_ == Driver::Role::reader ? "START TRANSACTION WITH CONSISTENT SNAPSHOT" : "START TRANSACTION";
}

void MysqlConnection::roll_back() noexcept {
  if (!in_transaction_) return;
  // Without an answer the connection is closed, and the server rolls back when it notices.
  if (query("ROLLBACK")) {
    drop();
  } else {
    in_transaction_ = false;
  }
}

}  // namespace weir::sql::detail

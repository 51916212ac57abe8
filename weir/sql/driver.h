// What a store's client library has to do for sql::Database and sql::Session. SQLite's part is sqlite.cc;
// MariaDB's and MySQL's is mysql.cc with what is beside it. Internal: users see Session, Row and Database.
//
// Everything may throw sql::Error, but for what is noexcept. Columns and parameters count from 0.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weir/sql/session.h"

namespace weir::sql::detail {

enum class Type { null, integer, real, text, blob };

class Statement {
 public:
  virtual ~Statement() = default;
  virtual bool writes() const = 0;
  virtual int parameters() const = 0;
  // The parameter's value must live until reset().
  virtual void bind(int index, const Param& param) = 0;
  // Whether there is a row to read.
  virtual bool step() = 0;
  // Ends the execution and forgets the parameters.
  virtual void reset() noexcept = 0;

  virtual int columns() const = 0;
  virtual std::string name(int column) const = 0;
  virtual Type type(int column) const = 0;
  // Only for a column of that type; text() and bytes() are valid until the next step().
  virtual std::int64_t integer(int column) const = 0;
  virtual double real(int column) const = 0;
  virtual std::string_view text(int column) const = 0;
  virtual std::span<const std::byte> bytes(int column) const = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;
  virtual Dialect dialect() const noexcept = 0;
  // One statement, kept for many executions.
  virtual std::unique_ptr<Statement> prepare(const std::string& text) = 0;
  virtual void script(const std::string& text) = 0;
  // False as well once the store, or the loss of the connection, has ended it.
  virtual bool in_transaction() const noexcept = 0;
  virtual std::string_view begin_text() const noexcept = 0;
  // Ends whatever transaction is open.
  virtual void roll_back() noexcept = 0;
  // What happened between the two: of the statement that just ended.
  virtual void start_counting() noexcept = 0;
  virtual Changes counted() const noexcept = 0;
};

// How a store is reached, and what it wants of the Database in front of it. Its calls are thread-safe.
class Driver {
 public:
  // reader: can't write. writer: runs the functions given to Database::write. migrator: changes tables, however
  // long that takes.
  enum class Role { reader, writer, migrator };

  virtual ~Driver() = default;
  // Throws Unusable when what is there can't be used, whoever tries how often.
  virtual std::unique_ptr<Connection> open(Role role) const = 0;
  // For messages; without secrets.
  virtual std::string place() const = 0;

  // 0: one writer, which puts what is waiting into one transaction. More: so many writers, each write in a
  // transaction of its own, run again when another one's lock was in its way.
  virtual int separate_writers() const noexcept = 0;
  // Whether a statement that changes a table commits by itself, so that migrations can't be one transaction.
  virtual bool commits_schema() const noexcept = 0;
};

}  // namespace weir::sql::detail

// What a store's client library has to do for sql::Session. SQLite's is in sqlite.cc; another store comes in
// by another pair of these classes. Internal: users see Session, Row and Database.
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
  // One statement, kept for many executions.
  virtual std::unique_ptr<Statement> prepare(const std::string& text) = 0;
  virtual void script(const std::string& text) = 0;
  virtual bool in_transaction() const noexcept = 0;
  virtual std::string_view begin_text() const noexcept = 0;
  // Ends whatever transaction is open.
  virtual void roll_back() noexcept = 0;
  // What happened between the two: of the statement that just ended.
  virtual void start_counting() noexcept = 0;
  virtual Changes counted() const noexcept = 0;
};

}  // namespace weir::sql::detail

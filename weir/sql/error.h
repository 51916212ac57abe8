// What can go wrong with the store, sorted by what a caller can do about it.
#pragma once

#include <string>

#include "weir/base/fault.h"

namespace weir::sql {

enum class ErrorKind {
  // Another held the lock for longer than Options::busy_timeout, or each of the tries ended in a deadlock;
  // nothing was done, and trying later may help.
  busy,
  unique_violation,  // a UNIQUE or PRIMARY KEY constraint; often an outcome of the business
  constraint,  // CHECK, NOT NULL, FOREIGN KEY, a value that a typed column refuses, a statement too large
  full,        // the disk is full; reads go on, and writes do again once there is space
  corrupt,     // the file, or a JSON column, is damaged
  io,          // reading or writing the file failed, or memory ran out
  misuse,      // a mistake in the program: bad SQL, a wrong type or number of columns or parameters
  lost,  // no connection to the server, or it ended before the COMMIT: nothing was done; trying later may help
  unknown,  // the connection ended while the COMMIT was under way: it was done, or it wasn't
};

// "unique_violation"; for logs and metrics.
const char* to_string(ErrorKind kind);

// Every failure of a statement or a transaction. It is Unavailable, so whoever doesn't look at the kind
// answers 503. The text names the statement as module.operation.
class Error : public Unavailable {
 public:
  Error(ErrorKind kind, const std::string& text, int code = 0)
      : Unavailable(text), kind_(kind), code_(code) {}
  ErrorKind kind() const { return kind_; }
  // The store's own number for it (SQLite's extended result code, MySQL's error), 0 if it didn't come from there.
  int code() const { return code_; }

 private:
  ErrorKind kind_;
  int code_;
};

}  // namespace weir::sql

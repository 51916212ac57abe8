// What can go wrong with the store, sorted by what a caller can do about it.
#pragma once

#include <string>

#include "weir/base/fault.h"

namespace weir::sql {

enum class ErrorKind {
  busy,  // another process held the lock for longer than Options::busy_timeout; trying later may help
  unique_violation,  // a UNIQUE or PRIMARY KEY constraint; often an outcome of the business
  constraint,        // CHECK, NOT NULL, FOREIGN KEY, or a value that a typed column refuses
  full,              // the disk is full; reads go on, and writes do again once there is space
  corrupt,           // the file, or a JSON column, is damaged
  io,                // reading or writing the file failed, or memory ran out
  misuse,            // a mistake in the program: bad SQL, a wrong type or number of columns or parameters
};

// "unique_violation"; for logs and metrics.
const char* to_string(ErrorKind kind);

// Every failure of a statement or a transaction. It is Unavailable, so whoever doesn't look at the kind
// answers 503. The text names the statement as module.operation.
class Error : public Unavailable {
 public:
  Error(ErrorKind kind, const std::string& text) : Unavailable(text), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace weir::sql

// Transaction: a scope whose statements happen all or not at all.
#pragma once

#include "weir/sql/session.h"

namespace weir::sql {

// The outermost begins a transaction (on a writing session it takes the store's write lock at once: BEGIN
// IMMEDIATE; on a reading one it is a snapshot), one within another is a savepoint. They end in reverse
// order. The functions given to Database::write already run in one; there a Transaction is for undoing a
// part.
//
// The store itself may give a transaction up (a full disk). Then the statement throws, and so does every
// later one until the outermost scope has ended, so nothing is ever written outside of the transaction it was
// meant for.
class Transaction {
 public:
  explicit Transaction(Session& session);
  // Rolls back what wasn't committed.
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // When it throws, everything is rolled back and the session is clean.
  void commit();

 private:
  Session& session_;
  bool open_ = true;
};

}  // namespace weir::sql

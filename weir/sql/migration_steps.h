// A migration on MySQL, where changes of tables commit by themselves: statement by statement. Internal.
#pragma once

#include <string_view>

#include "weir/sql/session.h"

namespace weir::sql::detail {

// While it lives, no other process migrates this database (GET_LOCK; the server frees it with the connection).
// Throws Error busy when another one does so for longer than the session's lock_wait_timeout.
class MigrationLock {
 public:
  explicit MigrationLock(Session& session);
  ~MigrationLock();
  MigrationLock(const MigrationLock&) = delete;
  MigrationLock& operator=(const MigrationLock&) = delete;

 private:
  Session& session_;
};

// Throws Unusable when tables made in this database would hold anything but utf8mb4 compared by its bytes.
void check_character_set(Session& session);

// Runs the statements of the migration that weren't done before; see migration.h.
void run_steps(Session& session, std::string_view module, int number, std::string_view script);
// After the migration: what is known of its steps goes.
void forget_steps(Session& session, std::string_view module, int number);

}  // namespace weir::sql::detail

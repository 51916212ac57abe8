// Migrations: the numbered steps that bring a module's tables to what the program expects.
#pragma once

#include <span>
#include <string_view>

#include "weir/base/clock.h"
#include "weir/sql/session.h"

namespace weir::sql {

// Numbers count from 1 without gaps. A migration that was released is never changed: add one. `sql` may hold
// several statements, and no BEGIN or COMMIT; `mysql` is for MariaDB and MySQL, if they want another text.
struct Migration {
  int number;
  std::string_view name;
  std::string_view sql;
  std::string_view mysql = {};
};

// Runs those of the module's migrations that the store hasn't seen, and writes them down in the table
// weir_migrations. Several processes may do so at once: one works, the others wait. Database::migrate is what
// programs call.
//
// On SQLite all of it is one transaction: a failure leaves nothing behind. On MySQL a statement that changes
// tables commits at once, so there a migration is done statement by statement, with each one's progress in the
// table weir_migration_steps, and goes on where it stopped. A statement that changes rows is done once,
// because its progress commits with it. Of one that changes tables and that a crash has cut off from its
// progress, nobody knows whether it was done: it is run again, and "exists already" and "isn't there any more" are
// taken for done (a RENAME can't be told so: don't rename in a migration). One that fails leaves those before it in place, and a program whose text of that statement is
// mended goes on with it. The session must not be in a transaction there.
//
// Throws Unusable when the store knows a migration that the program doesn't (it was used by a
// newer version), or knows one by another name, or when MySQL's database isn't utf8mb4 or compares texts by
// anything but their bytes; Error misuse for numbers with gaps; Error for a statement
// that fails.
void migrate(Session& session, std::string_view module, std::span<const Migration> migrations, WallTime now);

}  // namespace weir::sql

// Migrations: the numbered steps that bring a module's tables to what the program expects.
#pragma once

#include <span>
#include <string_view>

#include "weir/base/clock.h"
#include "weir/sql/session.h"

namespace weir::sql {

// Numbers count from 1 without gaps. A migration that was released is never changed: add one. `sql` may hold
// several statements, and no BEGIN or COMMIT.
struct Migration {
  int number;
  std::string_view name;
  std::string_view sql;
};

// Runs, in the session's transaction, those of the module's migrations that the store hasn't seen, and writes
// them down in the table weir_migrations. Several processes may do so at once. Database::migrate is what
// programs call. Throws Unusable when the store knows a migration that the program doesn't (it was used by a
// newer version), or knows one by another name; Error misuse for numbers with gaps; Error for a statement
// that fails.
void migrate(Session& session, std::string_view module, std::span<const Migration> migrations, WallTime now);

}  // namespace weir::sql

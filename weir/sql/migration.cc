#include "weir/sql/migration.h"

#include <string>

#include "weir/base/fault.h"
#include "weir/sql/migration_steps.h"
#include "weir/sql/transaction.h"

namespace weir::sql {
namespace {

const Query kCreate{
    "migration", "create",
    "CREATE TABLE IF NOT EXISTS weir_migrations (module VARCHAR(64) NOT NULL, number INTEGER NOT "
    "NULL, name VARCHAR(255) NOT NULL, applied_at BIGINT NOT NULL, PRIMARY KEY (module, number))"};
const Query kApplied{"migration", "list",
                     "SELECT number, name FROM weir_migrations WHERE module = ? ORDER BY number"};
const Query kRecord{"migration", "record",
                    "INSERT INTO weir_migrations (module, number, name, applied_at) VALUES (?, ?, ?, ?)"};

struct Applied {
  int number;
  std::string name;
};

void check_numbers(std::string_view module, std::span<const Migration> migrations) {
  int expected = 1;
  for (const Migration& migration : migrations)
    if (migration.number != expected++)
      throw Error(ErrorKind::misuse,
                  "migrations of " + std::string(module) + " must be numbered 1, 2, 3, ..");
}

// What the store has must be the beginning of what the program has.
void check_history(std::string_view module, std::span<const Applied> applied,
                   std::span<const Migration> migrations) {
  const std::string of_module = "the database's tables of " + std::string(module);
  if (applied.size() > migrations.size())
    throw Unusable(of_module + " are at migration " + std::to_string(applied.back().number) +
                   ", and this program knows only " + std::to_string(migrations.size()) +
                   ": they were written by a newer version");
  for (std::size_t i = 0; i < applied.size(); ++i)
    if (applied[i].number != migrations[i].number || applied[i].name != migrations[i].name)
      throw Unusable(of_module + " were made by another history: migration " +
                     std::to_string(applied[i].number) + " was '" + applied[i].name + "' and is '" +
                     std::string(migrations[i].name) + "' in this program");
}

// Those that the store hasn't seen.
std::span<const Migration> missing(Session& session, std::string_view module,
                                   std::span<const Migration> migrations) {
  session.execute(kCreate);
  const auto applied = session.all(
      kApplied, [](const Row& row) { return Applied{row.get<int>(0), row.get<std::string>(1)}; }, module);
  check_history(module, applied, migrations);
  return migrations.subspan(applied.size());
}

void migrate_as_one(Session& session, std::string_view module, std::span<const Migration> migrations,
                    WallTime now) {
  Transaction transaction(session);
  for (const Migration& migration : missing(session, module, migrations)) {
    session.script(Query{std::string(module), "migrate", std::string(migration.sql)});
    session.execute(kRecord, module, migration.number, migration.name, now);
  }
  transaction.commit();
}

void migrate_by_steps(Session& session, std::string_view module, std::span<const Migration> migrations,
                      WallTime now) {
  const detail::MigrationLock lock(session);
  detail::check_character_set(session);
  for (const Migration& migration : missing(session, module, migrations)) {
    detail::run_steps(session, module, migration.number,
                      migration.mysql.empty() ? migration.sql : migration.mysql);
    Transaction both(session);
    session.execute(kRecord, module, migration.number, migration.name, now);
    detail::forget_steps(session, module, migration.number);
    both.commit();
  }
}

}  // namespace

void migrate(Session& session, std::string_view module, std::span<const Migration> migrations, WallTime now) {
  check_numbers(module, migrations);
  if (session.dialect() == Dialect::mysql) {
    migrate_by_steps(session, module, migrations, now);
  } else {
    migrate_as_one(session, module, migrations, now);
  }
}

}  // namespace weir::sql

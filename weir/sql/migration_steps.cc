#include "weir/sql/migration_steps.h"

#include <string>
#include <vector>

#include "weir/base/fault.h"
#include "weir/sql/split.h"
#include "weir/sql/transaction.h"

namespace weir::sql::detail {
namespace {

// The lock's name is the server's, not the database's; MySQL takes 64 characters.
#define WEIR_LOCK_NAME "concat('weir_migrate_', left(sha1(database()), 32))"
// As patient as the session is with changes of tables.
const Query kLock{"migration", "lock", "SELECT get_lock(" WEIR_LOCK_NAME ", @@lock_wait_timeout)"};
const Query kUnlock{"migration", "unlock", "SELECT release_lock(" WEIR_LOCK_NAME ")"};
#undef WEIR_LOCK_NAME
const Query kCharacterSet{"migration", "character_set",
                          "SELECT default_character_set_name, default_collation_name FROM "
                          "information_schema.schemata WHERE schema_name = database()"};
const Query kCreate{
    "migration", "create_steps",
    "CREATE TABLE IF NOT EXISTS weir_migration_steps (module VARCHAR(64) NOT NULL, number "
    "INTEGER NOT NULL, begun INTEGER NOT NULL, done INTEGER NOT NULL, PRIMARY KEY (module, number))"};
const Query kLoad{"migration", "steps",
                  "SELECT begun, done FROM weir_migration_steps WHERE module = ? AND number = ?"};
const Query kStart{"migration", "start_steps",
                   "INSERT INTO weir_migration_steps (module, number, begun, done) VALUES (?, ?, 0, 0)"};
const Query kSave{"migration", "save_steps",
                  "UPDATE weir_migration_steps SET begun = ?, done = ? WHERE module = ? AND number = ?"};
const Query kForget{"migration", "forget_steps",
                    "DELETE FROM weir_migration_steps WHERE module = ? AND number = ?"};

// Statements that a transaction can hold.
bool changes_rows(std::string_view statement) {
  const std::string word = first_word(statement);
  return word == "INSERT" || word == "UPDATE" || word == "DELETE" || word == "REPLACE";
}

// What the server says to a change of tables that is there already.
bool was_done(const Error& error) {
  switch (error.code()) {
    case 1050:  // the table exists
    case 1051:  // no table to drop
    case 1060:  // the column exists
    case 1061:  // the index exists
    case 1068:  // the primary key exists
    case 1091:  // no column or index to drop
    case 1359:  // the trigger exists
    case 1826:  // the foreign key exists
    case 3822:  // the CHECK exists
      return true;
    default:
      return false;
  }
}

// How far a migration came: of its statements, the first `done` are done, and the first `begun` were begun.
struct Progress {
  int begun = 0;
  int done = 0;
};

class Steps {
 public:
  Steps(Session& session, std::string_view module, int number)
      : session_(session), module_(module), number_(number) {
    const auto read = [](const Row& row) { return Progress{row.get<int>(0), row.get<int>(1)}; };
    session_.execute(kCreate);
    if (const auto found = session_.one(kLoad, read, module, number)) {
      progress_ = *found;
    } else {
      session_.execute(kStart, module, number);
    }
  }

  int done() const { return progress_.done; }

  void run(const std::string& statement) {
    const Query query{std::string(module_), "migrate", statement};
    const int next = progress_.done + 1;
    if (changes_rows(statement)) {
      Transaction both(session_);
      session_.execute(query);
      save({next, next});
      both.commit();
    } else {
      change_tables(query, next);
      save({next, next});
    }
    progress_ = {next, next};
  }

 private:
  void change_tables(const Query& query, int next) {
    const bool cut_off = progress_.begun == next;
    if (!cut_off) save({next, progress_.done});
    try {
      session_.script(query);
    } catch (const Error& error) {
      if (cut_off && was_done(error)) return;
      // It was refused, not cut off. Where the connection is gone, this throws that.
      save({progress_.done, progress_.done});
      throw;
    }
  }

  void save(Progress progress) { session_.execute(kSave, progress.begun, progress.done, module_, number_); }

  Session& session_;
  const std::string_view module_;
  const int number_;
  Progress progress_;
};

}  // namespace

MigrationLock::MigrationLock(Session& session) : session_(session) {
  const auto got = session_.one(kLock, first<std::optional<int>>);
  if (!got || *got != 1) throw Error(ErrorKind::busy, "another process is migrating this database");
}

MigrationLock::~MigrationLock() {
  try {
    session_.execute(kUnlock);
  } catch (const Error&) {  // the connection is gone, and the lock with it
  }
}

void check_character_set(Session& session) {
  using Names = std::pair<std::string, std::string>;
  const auto read = [](const Row& row) { return Names{row.get<std::string>(0), row.get<std::string>(1)}; };
  const auto names = session.one(kCharacterSet, read);
  if (names && names->first == "utf8mb4" && names->second.ends_with("_bin")) return;
  const std::string found = names ? names->first + ", " + names->second : "unknown";
  throw Unusable(
      "the database's character set and collation are " + found +
      "; they must be utf8mb4 and one that compares bytes: ALTER DATABASE .. CHARACTER SET utf8mb4 COLLATE "
      "utf8mb4_nopad_bin (on MySQL: utf8mb4_0900_bin)");
}

void run_steps(Session& session, std::string_view module, int number, std::string_view script) {
  const auto statements = split_statements(script);
  Steps steps(session, module, number);
  for (auto at = static_cast<std::size_t>(steps.done()); at < statements.size(); ++at)
    steps.run(statements[at]);
}

void forget_steps(Session& session, std::string_view module, int number) {
  session.execute(kForget, module, number);
}

}  // namespace weir::sql::detail

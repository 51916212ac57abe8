// What holds for migrations on every store, and what is said of each.
#include "weir/sql/migration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <thread>

#include "weir/base/random.h"
#include "weir/sql/database.h"
#include "weir/sql/migration_steps.h"
#include "weir/sql/store_fixture.h"

namespace weir::sql {
namespace {

using testing::HasSubstr;

const std::vector<Migration> kTwo = {
    {1, "first", "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t DEFAULT VALUES;",
     "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY); INSERT INTO t VALUES ();"},
    {2, "second", "INSERT INTO t (id) VALUES (NULL)"},
};

std::int64_t rows_of_t(Database& database) {
  return database.read_now([](Session& session) {
    return session.one({"test", "count", "SELECT count(*) FROM t"}, first<std::int64_t>).value();
  });
}

template <class F>
std::string unusable(F f) {
  try {
    f();
  } catch (const Unusable& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class MigrationContract : public testing::TestWithParam<StoreKind> {
 protected:
  std::unique_ptr<TestStore> store = GetParam().make();
};

INSTANTIATE_TEST_SUITE_P(Stores, MigrationContract, testing::ValuesIn(kStores), name_of_store);

TEST_P(MigrationContract, RunsEachOnce) {
  for (int start = 0; start < 2; ++start) {
    Database database(store->at());
    database.migrate("test", std::span(kTwo).first(1));
    EXPECT_EQ(rows_of_t(database), 1);
  }
  Database database(store->at());
  for (int i = 0; i < 2; ++i) database.migrate("test", kTwo);
  EXPECT_EQ(rows_of_t(database), 2);
  // Modules count for themselves.
  const Migration other{1, "first", "INSERT INTO t (id) VALUES (NULL)"};
  database.migrate("other", {&other, 1});
  EXPECT_EQ(rows_of_t(database), 3);
}

TEST_P(MigrationContract, RefusesADatabaseFromTheFuture) {
  Database database(store->at());
  database.migrate("test", kTwo);
  const std::string text = unusable([&] { database.migrate("test", std::span(kTwo).first(1)); });
  EXPECT_THAT(text, HasSubstr(store->place()));
  EXPECT_THAT(text, HasSubstr("test are at migration 2, and this program knows only 1"));
  EXPECT_THAT(text, HasSubstr("newer version"));
  auto renamed = kTwo;
  renamed[1].name = "another";
  EXPECT_THAT(unusable([&] { database.migrate("test", renamed); }),
              HasSubstr("was 'second' and is 'another'"));
}

TEST_P(MigrationContract, AfterAFailureItGoesOn) {
  Database database(store->at());
  auto bad = kTwo;
  bad[1].sql = "INSERT INTO t (id) VALUES (NULL); INSERT INTO nowhere VALUES (1)";
  EXPECT_THROW(database.migrate("test", bad), Error);
  EXPECT_THROW(database.migrate("test", bad), Error);
  bad[1].sql = "INSERT INTO t (id) VALUES (NULL); INSERT INTO t (id) VALUES (NULL)";
  database.migrate("test", bad);
  EXPECT_EQ(rows_of_t(database), 3);
  database.migrate("test", bad);
  EXPECT_EQ(rows_of_t(database), 3);
}

TEST(SqliteMigration, AFailureLeavesNothingBehind) {
  const SqliteStore store;
  Database database(store.at({}));
  auto bad = kTwo;
  bad[1].sql = "INSERT INTO t DEFAULT VALUES; INSERT INTO nowhere VALUES (1)";
  EXPECT_THROW(database.migrate("test", bad), Error);
  EXPECT_THROW(rows_of_t(database), Error);  // no such table
  database.migrate("test", kTwo);
  EXPECT_EQ(rows_of_t(database), 2);
}

TEST_P(MigrationContract, NumbersHaveNoGaps) {
  Database database(store->at());
  auto gap = kTwo;
  gap[1].number = 3;
  EXPECT_THROW(database.migrate("test", gap), Error);
}

TEST_P(MigrationContract, ProcessesMayStartAtOnce) {
  constexpr int kProcesses = 6;
  pid_t children[kProcesses];
  for (pid_t& child : children) {
    child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int status = 1;
      try {
        Database database(store->at({.readers = 1}));
        database.migrate("test", kTwo);
        status = rows_of_t(database) == 2 ? 0 : 2;
      } catch (const std::exception& error) {
        fprintf(stderr, "%s\n", error.what());
      }
      _exit(status);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// Each place that a crash can leave a migration at, made by hand: it goes on from there, and ends the same.
TEST(MysqlMigration, GoesOnWhereACrashCutItOff) {
  const Migration migration{
      1, "first",
      "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY); INSERT INTO t VALUES (); "
      "ALTER TABLE t ADD COLUMN a INT; CREATE INDEX i ON t (a); INSERT INTO t VALUES (NULL, 7)"};
  const char* statements[] = {"CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
                              "INSERT INTO t VALUES ()", "ALTER TABLE t ADD COLUMN a INT",
                              "CREATE INDEX i ON t (a)"};
  const Query kProgress{"test", "progress", "INSERT INTO weir_migration_steps VALUES ('test', 1, ?, ?)"};
  for (int done = 0; done <= 4; ++done)
    for (const bool begun : {false, true})
      for (const bool carried_out : {false, true}) {
        // What changes rows is never begun apart from being done.
        if (carried_out && (!begun || done == 4)) continue;
        if (begun && (done == 1 || done == 4)) continue;
        SCOPED_TRACE(std::to_string(done) + (begun ? " begun" : "") + (carried_out ? " carried out" : ""));
        const MariadbStore store;
        Database database(store.at({.readers = 1}));
        database.migrate("other", {});
        Session session(store.connect(detail::Driver::Role::writer));
        session.script(
            {"test", "steps",
             "CREATE TABLE weir_migration_steps (module VARCHAR(64) NOT NULL, number INTEGER NOT NULL, "
             "begun INTEGER NOT NULL, done INTEGER NOT NULL, PRIMARY KEY (module, number))"});
        session.execute(kProgress, begun ? done + 1 : done, done);
        for (int i = 0; i < done + (carried_out ? 1 : 0); ++i)
          session.script({"test", "before", statements[i]});
        database.migrate("test", {&migration, 1});
        EXPECT_EQ(rows_of_t(database), 2);
        EXPECT_EQ(session.one({"test", "left", "SELECT count(*) FROM weir_migration_steps"}, first<int>), 0);
        database.migrate("test", {&migration, 1});
        EXPECT_EQ(rows_of_t(database), 2);
      }
}

// The same with real crashes, at whatever moment.
TEST(MysqlMigration, EndsTheSameHoweverOftenItIsKilled) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Migration migrations[] = {
      {1, "first",
       "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY); INSERT INTO t VALUES (), (); ALTER TABLE t "
       "ADD COLUMN a "
       "INT; INSERT INTO t (a) VALUES (1); CREATE INDEX i ON t (a); UPDATE t SET a = coalesce(a, 0) + 1"},
      {2, "second", "INSERT INTO t (a) VALUES (5); CREATE TABLE u (id INT); ALTER TABLE t DROP COLUMN a"},
  };
  const MariadbStore store;
  bool done = false;
  int kills = 0;
  for (std::chrono::microseconds patience{0}; !done; patience += std::chrono::milliseconds(1)) {
    ASSERT_LT(kills, 1000);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        Database database(store.at({.readers = 1}));
        database.migrate("test", migrations);
        _exit(0);
      } catch (const std::exception& error) {
        fprintf(stderr, "%s\n", error.what());
      }
      _exit(1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(10'000)) + patience);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    done = WIFEXITED(status);
    if (done) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
    } else {
      ++kills;
    }
  }
  Database database(store.at({}));
  database.migrate("test", migrations);
  EXPECT_EQ(rows_of_t(database), 4);
  EXPECT_GT(kills, 0);
}

// "Exists already" is an error when nothing was cut off.
TEST(MysqlMigration, WhatExistsForAnotherReasonIsAnError) {
  const MariadbStore store;
  Database database(store.at({}));
  Session session(store.connect(detail::Driver::Role::writer));
  session.script({"test", "before", "CREATE TABLE t (x INT)"});
  for (int i = 0; i < 2; ++i) {
    try {
      database.migrate("test", kTwo);
      ADD_FAILURE() << "another's table was taken for its own";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), 1050);
    }
  }
}

TEST(MysqlMigration, AnotherProcessIsWaitedForAndThenBusy) {
  const MariadbStore store;
  Options options = store.at({});
  options.driver = mysql({.url = store.place(), .migration_timeout = std::chrono::milliseconds(1'000)});
  Database database(std::move(options));
  Session other(store.connect(detail::Driver::Role::migrator));
  {
    const detail::MigrationLock held(other);
    try {
      database.migrate("test", kTwo);
      ADD_FAILURE() << "two at once";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::busy);
    }
  }
  database.migrate("test", kTwo);
  EXPECT_EQ(rows_of_t(database), 2);
}

TEST(MysqlMigration, OtherCharacterSetsAreRefused) {
  const MariadbStore store;
  Database database(store.at({}));
  for (const char* other : {"latin1 COLLATE latin1_bin", "utf8mb4 COLLATE utf8mb4_general_ci"}) {
    Session(store.connect(detail::Driver::Role::migrator))
        .script({"test", "alter", std::string("ALTER DATABASE CHARACTER SET ") + other});
    EXPECT_THAT(unusable([&] { database.migrate("test", kTwo); }), HasSubstr("must be utf8mb4"));
  }
}

}  // namespace
}  // namespace weir::sql

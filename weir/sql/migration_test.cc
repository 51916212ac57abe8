#include "weir/sql/migration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weir/sql/database.h"
#include "weir/testing/temp_dir.h"

namespace weir::sql {
namespace {

using testing::HasSubstr;

const std::vector<Migration> kTwo = {
    {1, "first", "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t DEFAULT VALUES;"},
    {2, "second", "INSERT INTO t DEFAULT VALUES"},
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

TEST(Migration, RunsEachOnce) {
  const TempDir dir;
  const std::string path = dir / "test.db";
  for (int start = 0; start < 2; ++start) {
    Database database({.path = path});
    database.migrate("test", std::span(kTwo).first(1));
    EXPECT_EQ(rows_of_t(database), 1);
  }
  Database database({.path = path});
  for (int i = 0; i < 2; ++i) database.migrate("test", kTwo);
  EXPECT_EQ(rows_of_t(database), 2);
  // Modules count for themselves.
  const Migration other{1, "first", "INSERT INTO t DEFAULT VALUES"};
  database.migrate("other", {&other, 1});
  EXPECT_EQ(rows_of_t(database), 3);
}

TEST(Migration, RefusesADatabaseFromTheFuture) {
  const TempDir dir;
  Database database({.path = dir / "test.db"});
  database.migrate("test", kTwo);
  const std::string text = unusable([&] { database.migrate("test", std::span(kTwo).first(1)); });
  EXPECT_THAT(text, HasSubstr(dir / "test.db"));
  EXPECT_THAT(text, HasSubstr("test are at migration 2, and this program knows only 1"));
  EXPECT_THAT(text, HasSubstr("newer version"));
  auto renamed = kTwo;
  renamed[1].name = "another";
  EXPECT_THAT(unusable([&] { database.migrate("test", renamed); }),
              HasSubstr("was 'second' and is 'another'"));
}

TEST(Migration, AFailureLeavesNothingBehind) {
  const TempDir dir;
  Database database({.path = dir / "test.db"});
  auto bad = kTwo;
  bad[1].sql = "INSERT INTO t DEFAULT VALUES; INSERT INTO nowhere VALUES (1)";
  EXPECT_THROW(database.migrate("test", bad), Error);
  EXPECT_THROW(rows_of_t(database), Error);  // no such table
  database.migrate("test", kTwo);
  EXPECT_EQ(rows_of_t(database), 2);
}

TEST(Migration, NumbersHaveNoGaps) {
  const TempDir dir;
  Database database({.path = dir / "test.db"});
  auto gap = kTwo;
  gap[1].number = 3;
  EXPECT_THROW(database.migrate("test", gap), Error);
}

TEST(Migration, ProcessesMayStartAtOnce) {
  const TempDir dir;
  const std::string path = dir / "test.db";
  constexpr int kProcesses = 6;
  pid_t children[kProcesses];
  for (pid_t& child : children) {
    child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int status = 1;
      try {
        Database database({.path = path, .readers = 1});
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

}  // namespace
}  // namespace weir::sql

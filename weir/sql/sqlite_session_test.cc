// What is SQLite's own about a Session.
#include "weir/sql/session.h"

#include <gtest/gtest.h>

#include <limits>

#include "weir/sql/error_fixture.h"
#include "weir/sql/sqlite.h"
#include "weir/sql/transaction.h"
#include "weir/testing/temp_dir.h"

namespace weir::sql {
namespace {

const Query kInsert{"test", "insert", "INSERT INTO t (id, v) VALUES (?, ?)"};
const Query kFind{"test", "find", "SELECT v FROM t WHERE id = ?"};

class SqliteSession : public testing::Test, protected ErrorWatch {
 protected:
  SqliteSession() { session.script({"test", "schema", "CREATE TABLE t (id INTEGER PRIMARY KEY, v)"}); }

  // What comes back for `value` after a round through the file.
  template <class T>
  T round_trip(const T& value) {
    session.execute({"test", "delete", "DELETE FROM t"});
    session.execute(kInsert, 1, value);
    return session.one(kFind, first<T>, 1).value();
  }

  TempDir dir;
  Session session{detail::open_sqlite({.path = dir / "test.db", .writes = true, .full_sync = false})};
};

// A column without a type holds what it is given.
TEST_F(SqliteSession, ValuesOfAnyTypeComeBackExactly) {
  for (double number : {0.1, -1e300, 5e-324, std::numeric_limits<double>::infinity()})
    EXPECT_EQ(round_trip(number), number);
  EXPECT_EQ(round_trip(std::string("text")), "text");
  EXPECT_EQ(round_trip(std::int64_t{1} << 60), std::int64_t{1} << 60);
}

TEST_F(SqliteSession, ReturningAndUpsertsTellTheLastId) {
  const Query returning{"test", "returning", "INSERT INTO t (v) VALUES (?), (?) RETURNING id"};
  EXPECT_EQ(session.one(returning, first<Id>, "x", "y"), 1);
  EXPECT_EQ(session.changes().rows, 2);
  EXPECT_EQ(session.changes().last_id, 2);
  const Query upsert{"test", "upsert",
                     "INSERT INTO t (id, v) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET v = excluded.v"};
  EXPECT_EQ(session.execute(upsert, 7, "a").last_id, 7);
  EXPECT_EQ(session.execute(upsert, 7, "b").last_id, 0);
}

TEST_F(SqliteSession, AFailedCommitLeavesTheSessionClean) {
  session.script(
      {"t", "x", "CREATE TABLE child (t INTEGER NOT NULL REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)"});
  const Query add{"t", "x", "INSERT INTO child VALUES (?)"};
  {
    Transaction transaction(session);
    session.execute(add, 9);
    EXPECT_EQ(kind_of([&] { transaction.commit(); }), ErrorKind::constraint);
  }
  EXPECT_FALSE(session.in_transaction());
  EXPECT_EQ(session.one({"t", "x", "SELECT count(*) FROM child"}, first<int>), 0);
  Transaction transaction(session);
  session.execute(kInsert, 9, 9);
  session.execute(add, 9);
  transaction.commit();
  EXPECT_EQ(session.one({"t", "x", "SELECT count(*) FROM child"}, first<int>), 1);
}

}  // namespace
}  // namespace weir::sql

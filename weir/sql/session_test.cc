#include "weir/sql/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

#include "weir/sql/placeholders.h"
#include "weir/sql/sqlite.h"
#include "weir/sql/transaction.h"
#include "weir/telemetry/metrics.h"
#include "weir/testing/temp_dir.h"

namespace weir::sql {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Query kInsert{"test", "insert", "INSERT INTO t (id, v) VALUES (?, ?)"};
const Query kFind{"test", "find", "SELECT v FROM t WHERE id = ?"};
const Query kCount{"test", "count", "SELECT count(*) FROM t"};
const Query kIds{"test", "ids", "SELECT id FROM t ORDER BY id"};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    session.script({"test", "schema",
                    "CREATE TABLE t (id INTEGER PRIMARY KEY, v); CREATE TABLE u (n INTEGER NOT NULL)"});
  }

  std::int64_t count() { return session.one(kCount, first<std::int64_t>).value(); }

  template <class F>
  ErrorKind kind_of(F&& f) {
    try {
      f();
    } catch (const Error& error) {
      last_text = error.what();
      return error.kind();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorKind::io;
  }

  // What comes back for `value` after a round through the file.
  template <class T>
  T round_trip(const T& value) {
    session.execute({"test", "delete", "DELETE FROM t"});
    session.execute(kInsert, 1, value);
    return session.one(kFind, first<T>, 1).value();
  }

  TempDir dir;
  Session session{detail::open_sqlite({.path = dir / "test.db", .writes = true, .full_sync = false})};
  std::string last_text;
};

TEST_F(SessionTest, ValuesComeBackExactly) {
  for (std::int64_t number : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                              (std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::max()})
    EXPECT_EQ(round_trip(number), number);
  for (double number : {0.1, -1e300, 5e-324, std::numeric_limits<double>::infinity()})
    EXPECT_EQ(round_trip(number), number);
  const std::string texts[] = {"", std::string("a\0b\0", 4), "\xF0\x9F\x90\x9F weir \xE6\xB1\x89",
                               "it's 100% \"x\"; --"};
  for (const std::string& text : texts) EXPECT_EQ(round_trip(text), text);
  for (const Blob& bytes : {Blob{}, Blob{std::byte{0}, std::byte{255}, std::byte{0}}})
    EXPECT_EQ(round_trip(bytes), bytes);
  EXPECT_EQ(round_trip(true), true);
  EXPECT_EQ(round_trip(std::uint8_t{200}), 200);
  EXPECT_EQ(round_trip(from_micros(1'700'000'000'123'456)), from_micros(1'700'000'000'123'456));
  EXPECT_EQ(round_trip(std::optional<std::string>()), std::nullopt);
  EXPECT_EQ(round_trip(std::optional<std::string>("")), "");
  const auto json = boost::json::parse(R"({"a":[1,2.5,"\u0000é",null],"n":18446744073709551615})");
  EXPECT_EQ(round_trip(json), json);
}

TEST_F(SessionTest, ColumnsAreChecked) {
  session.execute(kInsert, 1, std::nullopt);
  session.execute(kInsert, 2, "text");
  session.execute(kInsert, 3, 300);
  auto get = [&]<class T>(std::type_identity<T>, int id, int column = 0) {
    return kind_of([&] {
      session.one(
          kFind,
          [&](const Row& row) {
            row.get<T>(column);
            return 0;
          },
          id);
    });
  };
  EXPECT_EQ(get(std::type_identity<std::int64_t>(), 1), ErrorKind::misuse);
  EXPECT_THAT(last_text, HasSubstr("test.find: column 0 (v) holds NULL, not an integer"));
  EXPECT_EQ(get(std::type_identity<std::string>(), 1), ErrorKind::misuse);
  EXPECT_EQ(get(std::type_identity<std::int64_t>(), 2), ErrorKind::misuse);
  EXPECT_EQ(get(std::type_identity<double>(), 2), ErrorKind::misuse);
  EXPECT_EQ(get(std::type_identity<boost::json::value>(), 2), ErrorKind::corrupt);
  EXPECT_EQ(get(std::type_identity<std::string>(), 3), ErrorKind::misuse);
  EXPECT_EQ(get(std::type_identity<std::uint8_t>(), 3), ErrorKind::misuse);
  EXPECT_EQ(get(std::type_identity<bool>(), 3), ErrorKind::misuse);
  EXPECT_EQ(get(std::type_identity<int>(), 3, 1), ErrorKind::misuse);
  EXPECT_EQ(get(std::type_identity<int>(), 3, -1), ErrorKind::misuse);
  EXPECT_EQ(session.one(kFind, first<double>, 3), 300.0);
}

TEST_F(SessionTest, OneFindsTheFirstRowOrNone) {
  EXPECT_EQ(session.one(kFind, first<int>, 7), std::nullopt);
  session.execute(kInsert, 7, 70);
  EXPECT_EQ(session.one(kFind, first<int>, 7), 70);
  EXPECT_EQ(session.one_of(kFind, std::vector<Value>{7}, first<int>), 70);
}

TEST_F(SessionTest, WalksEndEarlyAndNest) {
  for (int i = 1; i <= 5; ++i) session.execute(kInsert, i, i * 10);
  std::vector<int> seen;
  session.each(kIds, [&](const Row& row) {
    seen.push_back(row.get<int>(0));
    return seen.size() < 3;
  });
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
  // The same statement within itself, and others.
  int inner = 0;
  session.each(kIds, [&](const Row& row) {
    session.each(kIds, [&](const Row&) { ++inner; });
    inner += session.one(kFind, first<int>, row.get<int>(0)).value();
  });
  EXPECT_EQ(inner, 25 + 150);
  // An exception leaves the statement usable.
  EXPECT_THROW(session.each(kIds, [](const Row&) { throw std::out_of_range("no"); }), std::out_of_range);
  EXPECT_THAT(session.all(kIds, first<int>), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(SessionTest, ListsOfVaryingLength) {
  const Query many{"test", "insert_many", "INSERT INTO t (id, v) VALUES " + rows(3, 2)};
  EXPECT_EQ(session.execute(many, std::vector<Value>{1, "a", 2, 2.5, 3, std::monostate()}).rows, 3);
  const Query some{"test", "some", "SELECT id FROM t WHERE id IN (" + placeholders(2) + ") ORDER BY id DESC"};
  EXPECT_THAT(session.all_of(some, std::vector<Value>{1, 3}, first<int>), ElementsAre(3, 1));
  EXPECT_EQ(placeholders(1), "?");
  EXPECT_EQ(rows(1, 1), "(?)");
  EXPECT_EQ(placeholders(kMaxParameters).size(), 2 * kMaxParameters - 1);
  EXPECT_EQ(kind_of([] { placeholders(0); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([] { placeholders(kMaxParameters + 1); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([] { rows(std::numeric_limits<std::size_t>::max() / 2, 4); }), ErrorKind::misuse);
}

TEST_F(SessionTest, ChangesTellWhatTheStatementDid) {
  const Query add{"test", "add", "INSERT INTO t (v) VALUES (?)"};
  Changes changes = session.execute(add, "a");
  EXPECT_EQ(changes.rows, 1);
  EXPECT_EQ(changes.last_id, 1);
  const Query upsert{"test", "upsert",
                     "INSERT INTO t (id, v) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET v = excluded.v"};
  changes = session.execute(upsert, 1, "b");
  EXPECT_EQ(changes.rows, 1);
  EXPECT_EQ(changes.last_id, 0);
  const Query ignore{"test", "ignore", "INSERT INTO t (id, v) VALUES (?, ?) ON CONFLICT DO NOTHING"};
  changes = session.execute(ignore, 1, "c");
  EXPECT_EQ(changes.rows, 0);
  EXPECT_EQ(changes.last_id, 0);
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(session.changes().rows, 0);
  const Query returning{"test", "returning", "INSERT INTO t (v) VALUES (?), (?) RETURNING id"};
  EXPECT_EQ(session.one(returning, first<Id>, "x", "y"), 2);
  EXPECT_EQ(session.changes().rows, 2);
  EXPECT_EQ(session.changes().last_id, 3);
  EXPECT_EQ(count(), 3);
  EXPECT_EQ(session.execute({"test", "update", "UPDATE t SET v = 1"}).rows, 3);
  EXPECT_EQ(session.execute({"test", "ddl", "CREATE INDEX i ON t (v)"}).rows, 0);
}

TEST_F(SessionTest, ErrorsHaveKinds) {
  session.execute(kInsert, 1, "a");
  EXPECT_EQ(kind_of([&] { session.execute(kInsert, 1, "b"); }), ErrorKind::unique_violation);
  EXPECT_THAT(last_text, HasSubstr("test.insert: UNIQUE constraint failed: t.id"));
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "INSERT INTO u (n) VALUES (?)"}, std::nullopt); }),
            ErrorKind::constraint);
  EXPECT_EQ(kind_of([&] { session.execute(kInsert, "no id", 1); }), ErrorKind::constraint);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "SELEC 1"}); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "SELECT \"nothing\""}); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "SELECT 1; SELECT 2"}); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", " -- nothing"}); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { session.execute(kInsert, 1); }), ErrorKind::misuse);
  EXPECT_THAT(last_text, HasSubstr("2 parameters and got 1"));
  EXPECT_EQ(kind_of([&] { session.execute(kInsert, 1, 2, 3); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { session.execute(kInsert, 5, std::numeric_limits<std::uint64_t>::max()); }),
            ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { session.execute(kInsert, 5, std::numeric_limits<double>::quiet_NaN()); }),
            ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "BEGIN"}); }), ErrorKind::misuse);
  EXPECT_FALSE(session.in_transaction());
  EXPECT_EQ(kind_of([&] { session.script({"t", "x", "BEGIN; DELETE FROM t"}); }), ErrorKind::misuse);
  EXPECT_EQ(count(), 1);
  EXPECT_STREQ(to_string(ErrorKind::unique_violation), "unique_violation");
  EXPECT_THROW(session.execute(kInsert, 1, "b"), Unavailable);
}

TEST_F(SessionTest, ForeignKeysHold) {
  session.script({"t", "x", "CREATE TABLE child (t INTEGER NOT NULL REFERENCES t (id))"});
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "INSERT INTO child VALUES (?)"}, 9); }),
            ErrorKind::constraint);
}

TEST_F(SessionTest, AReaderCantWrite) {
  Session reader{detail::open_sqlite({.path = dir / "test.db"})};
  EXPECT_EQ(kind_of([&] { reader.execute(kInsert, 1, 1); }), ErrorKind::misuse);
  session.execute(kInsert, 1, 1);
  EXPECT_EQ(reader.one(kCount, first<int>), 1);
  const Transaction snapshot(reader);
  EXPECT_EQ(reader.one(kCount, first<int>), 1);
  session.execute(kInsert, 2, 2);
  EXPECT_EQ(reader.one(kCount, first<int>), 1);
}

TEST_F(SessionTest, ManyTextsStayWithinTheCachesBounds) {
  // More texts than are kept, twice, so that the second round finds none of them; and one that is never kept.
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < 2 * Session::kMaxPrepared; ++i)
      EXPECT_EQ(session.one({"test", "text", "SELECT ? + " + std::to_string(i)}, first<std::size_t>, 1),
                i + 1);
  const Query wide{"test", "wide", "SELECT " + placeholders(kMaxParameters / 17)};
  const std::vector<Value> values(kMaxParameters / 17, 1);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(session.one_of(wide, values, [](const Row& row) { return row.columns(); }),
              kMaxParameters / 17);
  // A walk goes on while its own statement is pushed out of the cache.
  for (int i = 1; i <= 3; ++i) session.execute(kInsert, i, i);
  int steps = 0;
  session.each(kIds, [&](const Row&) {
    ++steps;
    for (std::size_t i = 0; i < 2 * Session::kMaxPrepared; ++i)
      session.execute({"test", "text", "SELECT " + std::to_string(i)});
  });
  EXPECT_EQ(steps, 3);
}

TEST_F(SessionTest, EveryExecutionIsCounted) {
  auto counted = [](const char* operation) {
    return telemetry::counter("weir_store_queries_total", "Statements that the store was given",
                              {{"module", "count_test"}, {"operation", operation}})
        .value();
  };
  const Query a{"count_test", "a", "SELECT 1"};
  const Query b{"count_test", "b", "SELECT 1"};
  const double a_before = counted("a");
  const double b_before = counted("b");
  for (int i = 0; i < 3; ++i) session.execute(a);
  session.one(b, first<int>);  // the same text under another name
  EXPECT_EQ(counted("a") - a_before, 3);
  EXPECT_EQ(counted("b") - b_before, 1);
}

TEST_F(SessionTest, TransactionsNestAndRollBack) {
  {
    Transaction outer(session);
    session.execute(kInsert, 1, 1);
    {
      Transaction inner(session);
      session.execute(kInsert, 2, 2);
      {
        Transaction innermost(session);
        session.execute(kInsert, 3, 3);
        innermost.commit();
      }
      session.execute(kInsert, 4, 4);
    }
    {
      Transaction inner(session);
      session.execute(kInsert, 5, 5);
      inner.commit();
      EXPECT_EQ(kind_of([&] { inner.commit(); }), ErrorKind::misuse);
    }
    outer.commit();
  }
  EXPECT_THAT(session.all(kIds, first<int>), ElementsAre(1, 5));
  {
    const Transaction undone(session);
    session.execute(kInsert, 6, 6);
  }
  EXPECT_THAT(session.all(kIds, first<int>), ElementsAre(1, 5));
  EXPECT_FALSE(session.in_transaction());
}

TEST_F(SessionTest, AFailedCommitLeavesTheSessionClean) {
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

TEST_F(SessionTest, AfterALostTransactionNothingIsWrittenOutsideOfIt) {
  {
    Transaction outer(session);
    session.execute(kInsert, 1, 1);
    {
      Transaction inner(session);
      // What a full disk does by itself: the whole transaction is taken back within a statement.
      EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "ROLLBACK"}); }), ErrorKind::misuse);
      EXPECT_EQ(kind_of([&] { session.execute(kInsert, 2, 2); }), ErrorKind::misuse);
      EXPECT_EQ(kind_of([&] { Transaction(session).commit(); }), ErrorKind::misuse);
      EXPECT_EQ(kind_of([&] { inner.commit(); }), ErrorKind::misuse);
    }
    EXPECT_EQ(kind_of([&] { session.execute(kInsert, 3, 3); }), ErrorKind::misuse);
    EXPECT_THAT(last_text, HasSubstr("the transaction was given up"));
  }
  EXPECT_EQ(count(), 0);
  session.execute(kInsert, 4, 4);
  EXPECT_EQ(count(), 1);
}

}  // namespace
}  // namespace weir::sql

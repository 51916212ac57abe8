// What holds for a Session on every store.
#include "weir/sql/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

#include "weir/sql/error_fixture.h"
#include "weir/sql/placeholders.h"
#include "weir/sql/store_fixture.h"
#include "weir/sql/transaction.h"
#include "weir/telemetry/metrics.h"

namespace weir::sql {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Role = detail::Driver::Role;

const Query kSchema{
    "test", "schema",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, r REAL, s TEXT, b BLOB); "
    "CREATE TABLE u (n INTEGER NOT NULL CHECK (n < 100)); "
    "CREATE TABLE child (t INTEGER NOT NULL REFERENCES t (id))",
    "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v BIGINT, r DOUBLE, s LONGTEXT, b LONGBLOB); "
    "CREATE TABLE u (n BIGINT NOT NULL CHECK (n < 100)); "
    "CREATE TABLE child (t BIGINT NOT NULL, FOREIGN KEY (t) REFERENCES t (id))"};
const Query kInsert{"test", "insert", "INSERT INTO t (id, v) VALUES (?, ?)"};
const Query kInsertText{"test", "insert_text", "INSERT INTO t (id, s) VALUES (?, ?)"};
const Query kFind{"test", "find", "SELECT v FROM t WHERE id = ?"};
const Query kFindText{"test", "find_text", "SELECT s FROM t WHERE id = ?"};
const Query kCount{"test", "count", "SELECT count(*) FROM t"};
const Query kIds{"test", "ids", "SELECT id FROM t ORDER BY id"};
const Query kUpsert{"test", "upsert",
                    "INSERT INTO t (id, v) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
                    "INSERT INTO t (id, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v)"};
const Query kIgnore{"test", "ignore", "INSERT INTO t (id, v) VALUES (?, ?) ON CONFLICT DO NOTHING",
                    "INSERT IGNORE INTO t (id, v) VALUES (?, ?)"};

class SessionContract : public testing::TestWithParam<StoreKind>, protected ErrorWatch {
 protected:
  SessionContract() { session.script(kSchema); }

  std::int64_t count() { return session.one(kCount, first<std::int64_t>).value(); }

  // What comes back for `value` after a round through that column of the store.
  template <class T>
  T round_trip(const std::string& column, const T& value) {
    session.execute({"test", "delete", "DELETE FROM t"});
    session.execute({"test", "put", "INSERT INTO t (id, " + column + ") VALUES (1, ?)"}, value);
    return session.one({"test", "get", "SELECT " + column + " FROM t"}, first<T>).value();
  }

  std::unique_ptr<TestStore> store = GetParam().make();
  Session session{store->connect(Role::writer)};
};

INSTANTIATE_TEST_SUITE_P(Stores, SessionContract, testing::ValuesIn(kStores), name_of_store);

TEST_P(SessionContract, ValuesComeBackExactly) {
  for (std::int64_t number : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                              (std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::max()})
    EXPECT_EQ(round_trip("v", number), number);
  for (double number : {0.1, -1e300, 5e-324, 0.0}) EXPECT_EQ(round_trip("r", number), number);
  std::string every_byte_below_128;
  for (char c = 0; c < 127; ++c) every_byte_below_128 += c;
  const std::string texts[] = {"",
                               std::string("a\0b\0", 4),
                               "\xF0\x9F\x90\x9F weir \xE6\xB1\x89",
                               "it's 100% \"x\"; -- \\n \\",
                               "space at the end  ",
                               every_byte_below_128};
  for (const std::string& text : texts) EXPECT_EQ(round_trip("s", text), text);
  const std::string long_text(300'000, 'x');
  EXPECT_EQ(round_trip("s", long_text), long_text);
  for (const Blob& bytes : {Blob{}, Blob{std::byte{0}, std::byte{255}, std::byte{0}}})
    EXPECT_EQ(round_trip("b", bytes), bytes);
  EXPECT_EQ(round_trip("v", true), true);
  EXPECT_EQ(round_trip("v", std::uint8_t{200}), 200);
  EXPECT_EQ(round_trip("v", from_micros(1'700'000'000'123'456)), from_micros(1'700'000'000'123'456));
  EXPECT_EQ(round_trip("s", std::optional<std::string>()), std::nullopt);
  EXPECT_EQ(round_trip("s", std::optional<std::string>("")), "");
  EXPECT_EQ(round_trip("v", std::optional<std::int64_t>()), std::nullopt);
  const auto json = boost::json::parse(R"({"a":[1,2.5,"\u0000é",null],"n":18446744073709551615})");
  EXPECT_EQ(round_trip("s", json), json);
}

TEST_P(SessionContract, TextsAreComparedByTheirBytes) {
  session.script({"test", "unique", "CREATE TABLE names (name TEXT PRIMARY KEY)",
                  "CREATE TABLE names (name VARCHAR(100) PRIMARY KEY)"});
  const Query add{"test", "add", "INSERT INTO names VALUES (?)"};
  for (const char* name : {"weir", "Weir", "weir ", "wéir", "we\u0301ir"}) session.execute(add, name);
  EXPECT_EQ(kind_of([&] { session.execute(add, "Weir"); }), ErrorKind::unique_violation);
  EXPECT_THAT(session.all({"test", "x", "SELECT name FROM names WHERE name = ?"}, first<std::string>, "weir"),
              ElementsAre("weir"));
}

TEST_P(SessionContract, StandardSqlMeansTheSame) {
  EXPECT_EQ(session.one({"t", "x", "SELECT 'a' || ? || 'b\\'"}, first<std::string>, "x"), "axb\\");
  session.execute(kInsert, 0, 7);  // an id of 0 stays 0
  EXPECT_EQ(session.one({"t", "x", "SELECT \"v\" FROM t WHERE id = 0"}, first<int>), 7);
  EXPECT_EQ(session.one({"t", "x", "SELECT sum(v) FROM t"}, first<std::int64_t>), 7);
  EXPECT_EQ(session.one({"t", "x", "SELECT max(v) FROM t WHERE id > 5"}, first<std::optional<int>>).value(),
            std::nullopt);
  EXPECT_EQ(session.one({"t", "x", "SELECT v + ? FROM t"}, first<std::int64_t>, 1), 8);
  EXPECT_EQ(session.one({"t", "x", "SELECT v = 7 FROM t"}, first<bool>), true);
  EXPECT_EQ(session.one({"t", "x", "SELECT coalesce(s, '') FROM t"}, first<std::string>), "");
}

TEST_P(SessionContract, ColumnsAreChecked) {
  session.execute(kInsert, 1, std::nullopt);
  session.execute(kInsertText, 2, "text");
  session.execute(kInsert, 3, 300);
  auto get = [&]<class T>(std::type_identity<T>, int id, int column = 0) {
    return kind_of([&] {
      session.one(
          id == 2 ? kFindText : kFind,
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

TEST_P(SessionContract, OneFindsTheFirstRowOrNone) {
  EXPECT_EQ(session.one(kFind, first<int>, 7), std::nullopt);
  session.execute(kInsert, 7, 70);
  EXPECT_EQ(session.one(kFind, first<int>, 7), 70);
  EXPECT_EQ(session.one_of(kFind, std::vector<Value>{7}, first<int>), 70);
}

TEST_P(SessionContract, WalksEndEarlyAndNest) {
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

TEST_P(SessionContract, ListsOfVaryingLength) {
  const Query many{"test", "insert_many", "INSERT INTO t (id, s) VALUES " + rows(3, 2)};
  EXPECT_EQ(session.execute(many, std::vector<Value>{1, "a", 2, "b", 3, std::monostate()}).rows, 3);
  const Query some{"test", "some", "SELECT id FROM t WHERE id IN (" + placeholders(2) + ") ORDER BY id DESC"};
  EXPECT_THAT(session.all_of(some, std::vector<Value>{1, 3}, first<int>), ElementsAre(3, 1));
  EXPECT_EQ(placeholders(1), "?");
  EXPECT_EQ(rows(1, 1), "(?)");
  EXPECT_EQ(placeholders(kMaxParameters).size(), 2 * kMaxParameters - 1);
  EXPECT_EQ(kind_of([] { placeholders(0); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([] { placeholders(kMaxParameters + 1); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([] { rows(std::numeric_limits<std::size_t>::max() / 2, 4); }), ErrorKind::misuse);
}

TEST_P(SessionContract, ChangesTellWhatTheStatementDid) {
  Changes changes = session.execute({"test", "add", "INSERT INTO t (v) VALUES (?)"}, 10);
  EXPECT_EQ(changes.rows, 1);
  EXPECT_EQ(changes.last_id, 1);
  for (const int value : {20, 20}) {  // the second time it is the same before and after
    changes = session.execute(kUpsert, 1, value);
    EXPECT_EQ(changes.rows, 1);
    EXPECT_EQ(changes.last_id, 0);
  }
  EXPECT_EQ(session.execute(kUpsert, 2, 5).rows, 1);
  changes = session.execute(kIgnore, 1, 3);
  EXPECT_EQ(changes.rows, 0);
  EXPECT_EQ(changes.last_id, 0);
  EXPECT_EQ(session.execute(kIgnore, 3, 3).rows, 1);
  EXPECT_EQ(count(), 3);
  EXPECT_EQ(session.changes().rows, 0);
  EXPECT_EQ(session.execute({"test", "update", "UPDATE t SET v = 1"}).rows, 3);
  EXPECT_EQ(session.execute({"test", "update", "UPDATE t SET v = 1"}).rows, 3);
  EXPECT_EQ(session.changes().last_id, 0);
  EXPECT_EQ(session.execute({"test", "replace", "REPLACE INTO t (id, v) VALUES (1, 9)"}).rows, 1);
  EXPECT_EQ(session.execute({"test", "delete", "DELETE FROM t WHERE id > 1"}).rows, 2);
  EXPECT_EQ(session.execute({"test", "ddl", "CREATE INDEX i ON t (v)"}).rows, 0);
}

TEST_P(SessionContract, ChangesOfManyRowsCountEachOnce) {
  auto many = [](const Query& query, const char* two) {
    Query longer = query;
    for (std::string* text : {&longer.text, &longer.mysql})
      if (const auto at = text->find("(?, ?)"); at != std::string::npos) text->replace(at, 6, two);
    return longer;
  };
  session.execute(kInsert, 1, 1);
  // One changed, one the same as before, one new.
  session.execute(kInsert, 2, 2);
  EXPECT_EQ(session.execute(many(kUpsert, "(?, ?), (2, 2), (3, 3)"), 1, 100).rows, 3);
  EXPECT_EQ(session.execute(many(kIgnore, "(?, ?), (5, 5), (6, 6)"), 1, 7).rows, 2);
  EXPECT_EQ(session.execute(many(kIgnore, "(?, ?), (5, 5)"), 1, 7).rows, 0);
  EXPECT_EQ(session.execute({"t", "copy", "INSERT INTO t (v) SELECT v FROM t WHERE id <= ?"}, 2).rows, 2);
  EXPECT_EQ(session.execute({"t", "copy", "INSERT INTO t (v) SELECT v FROM t WHERE id < ?"}, 0).rows, 0);
  // The same key twice in one statement: each is a row that was taken.
  EXPECT_EQ(session.execute(many(kUpsert, "(?, ?), (50, 2)"), 50, 1).rows, 2);
  EXPECT_EQ(session.one(kFind, first<int>, 50), 2);
}

TEST_P(SessionContract, ReturningHasRows) {
  const Query returning{"test", "returning", "INSERT INTO t (v) VALUES (?), (?) RETURNING id"};
  EXPECT_EQ(session.one(returning, first<Id>, 1, 2), 1);
  EXPECT_EQ(session.changes().rows, 2);
  EXPECT_EQ(count(), 2);
}

TEST_P(SessionContract, ErrorsHaveKinds) {
  session.execute(kInsert, 1, 1);
  EXPECT_EQ(kind_of([&] { session.execute(kInsert, 1, 2); }), ErrorKind::unique_violation);
  EXPECT_THAT(last_text, HasSubstr("test.insert: "));
  const Query strict{"t", "x", "INSERT INTO u (n) VALUES (?)"};
  EXPECT_EQ(kind_of([&] { session.execute(strict, std::nullopt); }), ErrorKind::constraint);
  EXPECT_EQ(kind_of([&] { session.execute(strict, 100); }), ErrorKind::constraint);
  EXPECT_EQ(kind_of([&] { session.execute(kInsert, "no id", 1); }), ErrorKind::constraint);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "INSERT INTO child VALUES (?)"}, 9); }),
            ErrorKind::constraint);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "SELEC 1"}); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "SELECT \"nothing\" FROM t"}); }), ErrorKind::misuse);
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
  EXPECT_THROW(session.execute(kInsert, 1, 2), Unavailable);
}

TEST_P(SessionContract, AReaderCantWrite) {
  Session reader{store->connect(Role::reader)};
  EXPECT_EQ(kind_of([&] { reader.execute(kInsert, 1, 1); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { reader.script({"t", "x", "DELETE FROM t"}); }), ErrorKind::misuse);
  session.execute(kInsert, 1, 1);
  EXPECT_EQ(reader.one(kCount, first<int>), 1);
  {
    const Transaction snapshot(reader);
    EXPECT_EQ(reader.one(kCount, first<int>), 1);
    session.execute(kInsert, 2, 2);
    EXPECT_EQ(reader.one(kCount, first<int>), 1);
    EXPECT_EQ(kind_of([&] { reader.execute(kInsert, 3, 3); }), ErrorKind::misuse);
  }
  EXPECT_EQ(reader.one(kCount, first<int>), 2);
}

TEST_P(SessionContract, ManyTextsStayWithinTheCachesBounds) {
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

TEST_P(SessionContract, EveryExecutionIsCounted) {
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

TEST_P(SessionContract, TransactionsNestAndRollBack) {
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

TEST_P(SessionContract, AfterALostTransactionNothingIsWrittenOutsideOfIt) {
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

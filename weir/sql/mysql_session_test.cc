// What is MariaDB's and MySQL's own about a Session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

#include "weir/sql/error_fixture.h"
#include "weir/sql/mysql_error.h"
#include "weir/sql/mysql_fixture.h"
#include "weir/sql/placeholders.h"
#include "weir/sql/transaction.h"

namespace weir::sql {
namespace {

using testing::HasSubstr;
using Role = detail::Driver::Role;

class MysqlSession : public testing::Test, protected ErrorWatch {
 protected:
  Session open(Role role) const { return Session(mysql({.url = url})->open(role)); }

  template <class T>
  T get(const std::string& expression) {
    return session.one({"test", "get", "SELECT " + expression + " AS x"}, first<T>).value();
  }
  void script(const std::string& text) { session.script({"test", "script", text}); }

  const std::string url = shared_server().make_database();
  Session session = open(Role::writer);
};

TEST_F(MysqlSession, IsSetUp) {
  EXPECT_EQ(get<std::string>("@@character_set_client"), "utf8mb4");
  EXPECT_EQ(get<std::string>("@@character_set_results"), "utf8mb4");
  EXPECT_EQ(get<std::string>("@@collation_connection"), "utf8mb4_bin");
  EXPECT_EQ(get<std::string>("@@time_zone"), "+00:00");
  EXPECT_THAT(get<std::string>("@@sql_mode"), HasSubstr("STRICT_TRANS_TABLES"));
  EXPECT_EQ(get<std::string>("@@tx_isolation"), "SERIALIZABLE");
  EXPECT_EQ(get<int>("@@innodb_lock_wait_timeout"), 2);
  // Nobody reads this machine's files, and a text is one statement.
  script("CREATE TABLE files (line TEXT)");
  EXPECT_EQ(kind_of([&] { script("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE files"); }),
            ErrorKind::misuse);
}

TEST_F(MysqlSession, ColumnsOfEveryTypeAreReadOrRefused) {
  EXPECT_EQ(get<std::int64_t>("CAST(-5 AS SIGNED)"), -5);
  EXPECT_EQ(get<std::int64_t>("CAST(9223372036854775807 AS UNSIGNED)"),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(kind_of([&] { get<std::int64_t>("CAST(9223372036854775808 AS UNSIGNED)"); }), ErrorKind::misuse);
  EXPECT_THAT(last_text,
              HasSubstr("column 0 (x) holds 9223372036854775808, more than a signed 64-bit integer"));
  EXPECT_EQ(get<std::int64_t>("CAST(12 AS DECIMAL(30))"), 12);
  EXPECT_EQ(get<double>("CAST(12 AS DECIMAL(30))"), 12.0);
  EXPECT_EQ(kind_of([&] { get<std::int64_t>("CAST(9223372036854775808 AS DECIMAL(30))"); }),
            ErrorKind::misuse);
  EXPECT_THAT(last_text, HasSubstr("DECIMAL 9223372036854775808"));
  EXPECT_EQ(kind_of([&] { get<double>("1.50"); }), ErrorKind::misuse);
  EXPECT_THAT(last_text, HasSubstr("DECIMAL 1.50"));
  EXPECT_EQ(get<double>("1.5e0"), 1.5);
  for (const char* time : {"current_timestamp", "current_date", "current_time", "b'101'"})
    if (time[0] != 'b') EXPECT_EQ(kind_of([&] { get<std::string>(time); }), ErrorKind::misuse) << time;
  EXPECT_THAT(last_text, HasSubstr("times are integers of microseconds"));
  EXPECT_EQ(get<std::string>("'text'"), "text");
  EXPECT_EQ(get<Blob>("x'00ff'"), (Blob{std::byte{0}, std::byte{255}}));
  EXPECT_EQ(get<std::optional<double>>("NULL"), std::nullopt);
  script(
      "CREATE TABLE kinds (a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT UNSIGNED, e YEAR, f FLOAT, g "
      "CHAR(3), "
      "h ENUM('p', 'q'), i JSON, j BINARY(2), k BOOLEAN, l BIT(3)); "
      "INSERT INTO kinds VALUES (-1, 65535, -3, 4294967295, 2024, 0.5, 'abc', 'q', '{\"a\": 1}', 'xy', TRUE, "
      "b'101')");
  const bool seen = session
                        .one({"test", "kinds", "SELECT a, b, c, d, e, f, g, h, i, j, k FROM kinds"},
                             [](const Row& row) {
                               EXPECT_EQ(row.get<int>(0), -1);
                               EXPECT_EQ(row.get<int>(1), 65535);
                               EXPECT_EQ(row.get<int>(2), -3);
                               EXPECT_EQ(row.get<std::int64_t>(3), 4294967295);
                               EXPECT_EQ(row.get<int>(4), 2024);
                               EXPECT_EQ(row.get<double>(5), 0.5);
                               EXPECT_EQ(row.get<std::string>(6), "abc");
                               EXPECT_EQ(row.get<std::string>(7), "q");
                               EXPECT_EQ(row.get<boost::json::value>(8).at("a"), 1);
                               EXPECT_EQ(row.get<Blob>(9), (Blob{std::byte{'x'}, std::byte{'y'}}));
                               EXPECT_EQ(row.get<bool>(10), true);
                               return true;
                             })
                        .value();
  EXPECT_TRUE(seen);
  EXPECT_EQ(kind_of([&] { session.one({"t", "x", "SELECT l FROM kinds"}, first<int>); }), ErrorKind::misuse);
}

TEST_F(MysqlSession, WhatDoesntFitIsRefusedAndNothingIsCut) {
  script(
      "CREATE TABLE t (a TINYINT, b VARCHAR(3), c DOUBLE, d JSON, e INT NOT NULL DEFAULT 0, f INT NOT NULL)");
  auto put = [&](const std::string& column, const Value& value) {
    return kind_of([&] {
      session.execute({"test", "put", "INSERT INTO t (" + column + ", f) VALUES (?, 1)"},
                      std::vector<Value>{value});
    });
  };
  EXPECT_EQ(put("a", 128), ErrorKind::constraint);
  EXPECT_EQ(put("a", "x"), ErrorKind::constraint);
  EXPECT_EQ(put("b", "four"), ErrorKind::constraint);
  EXPECT_EQ(put("b", "\xff"), ErrorKind::constraint);  // no UTF-8
  EXPECT_EQ(put("c", std::numeric_limits<double>::infinity()), ErrorKind::constraint);
  EXPECT_EQ(put("c", std::numeric_limits<double>::quiet_NaN()), ErrorKind::misuse);
  EXPECT_EQ(put("d", "no json"), ErrorKind::constraint);
  EXPECT_EQ(put("e", std::monostate()), ErrorKind::constraint);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "INSERT INTO t (a) VALUES (1)"}); }),
            ErrorKind::constraint);
  EXPECT_EQ(get<int>("(SELECT count(*) FROM t)"), 0);
}

TEST_F(MysqlSession, LargeStatementsAreRefusedBeforeTheyAreSent) {
  script("CREATE TABLE t (s LONGTEXT)");
  const auto limit = static_cast<std::size_t>(get<std::int64_t>("@@max_allowed_packet"));
  const Query put{"test", "put", "INSERT INTO t VALUES (?)"};
  const std::string fits(limit - 100, 'x');
  session.execute(put, fits);
  EXPECT_EQ(get<std::size_t>("(SELECT length(s) FROM t)"), fits.size());
  const std::string large(limit, 'x');
  const auto connection = get<std::int64_t>("connection_id()");
  EXPECT_EQ(kind_of([&] { session.execute(put, large); }), ErrorKind::constraint);
  EXPECT_THAT(last_text, HasSubstr("test.put: the parameters take 16777"));
  EXPECT_THAT(last_text, HasSubstr("max_allowed_packet is 16777216"));
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "SELECT '" + large + "'"}); }), ErrorKind::constraint);
  EXPECT_EQ(kind_of([&] { script("SELECT '" + large + "'"); }), ErrorKind::constraint);
  EXPECT_EQ(get<std::int64_t>("connection_id()"), connection);  // or the server would have hung up
}

TEST_F(MysqlSession, TellsNoIdThatItIsntSureOf) {
  script("CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, k INT UNIQUE)");
  EXPECT_EQ(session.execute({"t", "x", "INSERT INTO t (k) VALUES (1)"}).last_id, 1);
  EXPECT_EQ(session.execute({"t", "x", "INSERT INTO t (id, k) VALUES (10, 10)"}).last_id, 10);
  EXPECT_EQ(session.execute({"t", "x", "INSERT IGNORE INTO t (k) VALUES (1)"}).last_id, 0);
  EXPECT_EQ(session.execute({"t", "x", "INSERT INTO t (k) VALUES (20), (21)"}).last_id, 0);
  const char* upsert = "INSERT INTO t (k) VALUES (?) ON DUPLICATE KEY UPDATE k = VALUES(k)";
  for (const int k : {1, 30}) EXPECT_EQ(session.execute({"t", "x", upsert}, k).last_id, 0);
  EXPECT_EQ(session.execute({"t", "x", "UPDATE t SET k = 31 WHERE k = 30"}).last_id, 0);
}

TEST_F(MysqlSession, AChangeOfTablesIsNoPartOfATransaction) {
  script("CREATE TABLE t (id BIGINT PRIMARY KEY)");
  for (const bool as_script : {true, false}) {
    Transaction transaction(session);
    session.execute({"t", "x", "INSERT INTO t VALUES (?)"}, as_script ? 1 : 2);
    const Query change{"t", "change", "CREATE TABLE IF NOT EXISTS other (id INT)"};
    EXPECT_EQ(kind_of([&] {
                if (as_script) {
                  session.script({"t", "change", change.text + "; INSERT INTO t VALUES (7)"});
                } else {
                  session.execute(change);
                }
              }),
              ErrorKind::misuse);
    EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "INSERT INTO t VALUES (8)"}); }), ErrorKind::misuse);
    EXPECT_EQ(kind_of([&] { transaction.commit(); }), ErrorKind::misuse);
  }
  // What was before the change is committed by it, as MySQL does; nothing after it is.
  EXPECT_EQ(get<int>("(SELECT count(*) FROM t WHERE id > 2)"), 0);
}

TEST_F(MysqlSession, ForgottenStatementsAreClosedOnTheServer) {
  auto prepared = [&] {
    return session
        .one({"t", "x", "SHOW SESSION STATUS LIKE 'Com_stmt_close'"},
             [](const Row& row) { return row.get<std::string>(1); })
        .value();
  };
  const int before = std::stoi(prepared());
  for (std::size_t i = 0; i < 3 * Session::kMaxPrepared; ++i) get<std::size_t>(std::to_string(i));
  EXPECT_GE(std::stoi(prepared()) - before, static_cast<int>(2 * Session::kMaxPrepared - 5));
}

// The server sends rows before it finds out.
TEST_F(MysqlSession, AnErrorAmongTheRowsLeavesTheSessionUsable) {
  script("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
  const Query some{"test", "some",
                   "SELECT CASE WHEN id < ? THEN id ELSE (SELECT id FROM t) END FROM t ORDER BY id"};
  const auto connection = get<std::int64_t>("connection_id()");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(kind_of([&] { session.all(some, first<int>, 3); }), ErrorKind::misuse);
    EXPECT_EQ(session.all(some, first<int>, 9).size(), 3U);
  }
  EXPECT_EQ(get<std::int64_t>("connection_id()"), connection);
  Transaction transaction(session);
  EXPECT_EQ(kind_of([&] { session.all(some, first<int>, 3); }), ErrorKind::misuse);
  EXPECT_EQ(session.execute({"t", "x", "DELETE FROM t WHERE id = 3"}).rows, 1);
  transaction.commit();
  EXPECT_EQ(get<int>("(SELECT count(*) FROM t)"), 2);
}

TEST_F(MysqlSession, ATableThatChangesIsReadAsItIs) {
  script("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 7)");
  const Query all{"test", "all", "SELECT * FROM t"};
  EXPECT_EQ(session.one(all, [](const Row& row) { return row.columns(); }), 2);
  script("ALTER TABLE t MODIFY v VARCHAR(100), ADD COLUMN w BIGINT NOT NULL DEFAULT 9");
  const auto read = [](const Row& row) { return row.get<std::string>(1) + std::to_string(row.get<int>(2)); };
  EXPECT_EQ(session.one(all, read), "79");
  EXPECT_EQ(get<int>("1"), 1);
}

TEST_F(MysqlSession, ManyParametersFit) {
  const Query wide{
      "test", "wide",
      "SELECT count(*) FROM (SELECT 1 AS id) t WHERE id IN (" + placeholders(kMaxParameters) + ")"};
  EXPECT_EQ(session.one_of(wide, std::vector<Value>(kMaxParameters, 1), first<int>), 1);
}

TEST_F(MysqlSession, AFullTableIsFullAndGivesTheTransactionUp) {
  script("SET SESSION max_heap_table_size = 16384; CREATE TABLE small (s CHAR(200)) ENGINE = MEMORY");
  script("CREATE TABLE t (id BIGINT PRIMARY KEY)");
  const Query fill{"test", "fill", "INSERT INTO small VALUES ('x')"};
  Transaction transaction(session);
  session.execute({"t", "x", "INSERT INTO t VALUES (1)"});
  EXPECT_EQ(kind_of([&] {
              for (int i = 0; i < 10'000; ++i) session.execute(fill);
            }),
            ErrorKind::full);
  EXPECT_EQ(kind_of([&] { session.execute({"t", "x", "INSERT INTO t VALUES (2)"}); }), ErrorKind::full);
  EXPECT_EQ(kind_of([&] { transaction.commit(); }), ErrorKind::full);
  EXPECT_EQ(get<int>("(SELECT count(*) FROM t)"), 0);
}

TEST(MysqlError, NumbersHaveKinds) {
  using detail::mysql_kind;
  EXPECT_EQ(mysql_kind(1062, ""), ErrorKind::unique_violation);
  for (const unsigned code : {1452U, 1048U, 3819U, 4025U, 1406U, 1264U})
    EXPECT_EQ(mysql_kind(code, ""), ErrorKind::constraint);
  for (const unsigned code : {1205U, 1213U}) EXPECT_EQ(mysql_kind(code, ""), ErrorKind::busy);
  for (const unsigned code : {1021U, 1114U}) EXPECT_EQ(mysql_kind(code, ""), ErrorKind::full);
  for (const unsigned code : {2006U, 2013U, 1927U}) EXPECT_EQ(mysql_kind(code, ""), ErrorKind::lost);
  EXPECT_EQ(mysql_kind(1064, ""), ErrorKind::misuse);
  EXPECT_EQ(mysql_kind(1030, "Got error 28 \"No space left on device\" from storage engine InnoDB"),
            ErrorKind::full);
  EXPECT_EQ(mysql_kind(1026, "Error writing file './t/x' (Errcode: 28 \"No space left on device\")"),
            ErrorKind::full);
  EXPECT_EQ(mysql_kind(1030, "Got error 168 \"Unknown\" from storage engine"), ErrorKind::io);
}

}  // namespace
}  // namespace weir::sql

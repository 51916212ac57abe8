// What the tests of weir::mysql share: a server, and a Database on it that can be put into trouble. For tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "weir/sql/database.h"
#include "weir/sql/error_fixture.h"
#include "weir/testing/mariadb_server.h"

namespace weir::sql {

inline MariadbServer& shared_server() {
  static MariadbServer one;
  return one;
}

inline const Query kInsert{"test", "insert", "INSERT INTO t (id, v) VALUES (?, 0)"};
inline const Query kAdd{"test", "add", "UPDATE t SET v = v + 1 WHERE id = ?"};
inline const Query kGet{"test", "get", "SELECT v FROM t WHERE id = ?"};
inline const Query kCount{"test", "count", "SELECT count(*) FROM t"};
inline const Query kConnection{"test", "connection", "SELECT connection_id()"};

class MysqlFaults : public testing::Test, protected ErrorWatch {
 protected:
  void open(MysqlOptions options = {}, Options database_options = {}) {
    options.url = url;
    database_options.driver = mysql(options);
    database_options.readers = 1;
    database = std::make_unique<Database>(std::move(database_options));
    const Migration schema{1, "t", "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT NOT NULL)"};
    database->migrate("test", {&schema, 1});
  }
  // One writer, and time-outs of a second or two.
  void open_impatient() {
    open({.writers = 1,
          .connect_timeout = std::chrono::seconds(1),
          .read_timeout = std::chrono::seconds(2),
          .lock_timeout = std::chrono::seconds(1)});
  }

  int count() {
    return database->read_now([](Session& session) { return session.one(kCount, first<int>).value(); });
  }
  int value(int id) {
    return database->read_now([id](Session& session) { return session.one(kGet, first<int>, id).value(); });
  }
  void insert(int id) {
    database->write_now([id](Session& session) { session.execute(kInsert, id); });
  }
  static void kill_connection_of(Session& session) { kill(session.one(kConnection, first<Id>).value()); }
  static void kill(Id connection) {
    Session root = shared_server().root();
    root.script({"test", "kill", "KILL CONNECTION " + std::to_string(connection)});
    // KILL returns before the connection is gone.
    const Query still{"test", "still", "SELECT count(*) FROM information_schema.processlist WHERE id = ?"};
    while (root.one(still, first<int>, connection).value() > 0) std::this_thread::yield();
  }
  // Until the waits between tries to connect are over.
  template <class F>
  static void eventually(F f) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      try {
        f();
        return;
      } catch (const Error& error) {
        ASSERT_EQ(error.kind(), ErrorKind::lost) << error.what();
        ASSERT_LT(std::chrono::steady_clock::now(), give_up) << error.what();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  const std::string url = shared_server().make_database();
  std::unique_ptr<Database> database;
};

}  // namespace weir::sql

// What goes wrong between a Database and its server: connections that end, servers that restart or stand still,
// writers in each other's way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "weir/sql/database.h"
#include "weir/sql/mysql_fixture.h"
#include "weir/sql/transaction.h"

namespace weir::sql {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

std::chrono::milliseconds since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
}

using MysqlFaultsConcurrency = MysqlFaults;

TEST_F(MysqlFaultsConcurrency, KilledWhileIdleNobodyNotices) {
  open({.writers = 1});
  for (int i = 0; i < 3; ++i) {
    auto connection = [](Session& session) { return session.one(kConnection, first<Id>).value(); };
    kill(database->read_now(connection));
    kill(database->write_now(connection));
    EXPECT_EQ(count(), i);
    insert(i);
  }
  EXPECT_EQ(database->stats().repeats, 0U);
}

TEST_F(MysqlFaultsConcurrency, AStatementThatIsKilledIsTriedAgainWithItsWrite) {
  open({.writers = 1});
  std::thread writing([&] {
    int runs = 0;
    database->write_now([&](Session& session) {
      session.execute(kInsert, 1);
      if (++runs == 1) session.execute({"test", "sleep", "UPDATE t SET v = sleep(20)"});
    });
    EXPECT_EQ(runs, 2);
  });
  Session root = shared_server().root();
  // Not while it is still being prepared: that is over before the server looks whether it was killed.
  const Query sleeping{"test", "sleeping",
                       "SELECT id FROM information_schema.processlist "
                       "WHERE info LIKE 'UPDATE t SET v = sleep%' AND command = 'Execute'"};
  std::optional<Id> connection;
  while (!connection) connection = root.one(sleeping, first<Id>);
  root.script({"test", "kill", "KILL QUERY " + std::to_string(*connection)});
  writing.join();
  EXPECT_EQ(count(), 1);
}

TEST_F(MysqlFaultsConcurrency, KilledBetweenTwoReadsTheSecondIsSentAgain) {
  open();
  insert(1);
  int runs = 0;
  database->read_now([&](Session& session) {
    ++runs;
    EXPECT_EQ(session.one(kCount, first<int>), 1);
    // In the middle of a walk, too: it has its rows already.
    session.each({"test", "two", "SELECT 1 UNION ALL SELECT 2"}, [&](const Row&) {
      kill_connection_of(session);
      EXPECT_EQ(session.one(kCount, first<int>), 1);
    });
    kill_connection_of(session);
    EXPECT_EQ(session.one(kGet, first<int>, 1), 0);
  });
  EXPECT_EQ(runs, 1);
}

TEST_F(MysqlFaultsConcurrency, KilledInASnapshotTheReadFails) {
  open();
  EXPECT_EQ(kind_of([&] {
              database->read_now([&](Session& session) {
                const Transaction snapshot(session);
                session.one(kCount, first<int>);
                kill_connection_of(session);
                // Both: the second must not be read outside of the snapshot.
                EXPECT_EQ(kind_of([&] { session.one(kCount, first<int>); }), ErrorKind::lost);
                session.one(kCount, first<int>);
              });
            }),
            ErrorKind::lost);
  EXPECT_EQ(count(), 0);
}

TEST_F(MysqlFaultsConcurrency, KilledInAWriteNothingIsDone) {
  open({.writers = 1});
  int runs = 0;
  EXPECT_EQ(kind_of([&] {
              database->write_now([&](Session& session) {
                ++runs;
                session.execute(kInsert, 1);
                kill_connection_of(session);
                EXPECT_EQ(kind_of([&] { session.execute(kInsert, 2); }), ErrorKind::lost);
                session.execute(kInsert, 3);
              });
            }),
            ErrorKind::lost);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(count(), 0);
  insert(4);
  EXPECT_EQ(count(), 1);
}

TEST_F(MysqlFaultsConcurrency, KilledWithinASavepointNothingIsDone) {
  open({.writers = 1});
  EXPECT_EQ(kind_of([&] {
              database->write_now([&](Session& session) {
                session.execute(kInsert, 1);
                {
                  const Transaction undone(session);
                  session.execute(kInsert, 2);
                  kill_connection_of(session);
                }
                session.execute(kInsert, 3);
              });
            }),
            ErrorKind::lost);
  EXPECT_EQ(count(), 0);
}

TEST_F(MysqlFaultsConcurrency, KilledBeforeTheCommitTheOutcomeIsUnknown) {
  open({.writers = 1});
  EXPECT_EQ(kind_of([&] {
              database->write_now([](Session& session) {
                session.execute(kInsert, 1);
                kill_connection_of(session);
              });
            }),
            ErrorKind::unknown);
  EXPECT_THAT(last_text, HasSubstr("nobody knows whether it was done"));
  EXPECT_EQ(count(), 0);
  insert(2);
  EXPECT_EQ(count(), 1);
}

TEST_F(MysqlFaultsConcurrency, RestartedBetweenCallsNobodyNotices) {
  open();
  for (int i = 0; i < 2; ++i) {
    insert(2 * i);
    shared_server().kill();
    shared_server().start();
    EXPECT_EQ(count(), 2 * i + 1);
    insert(2 * i + 1);
  }
  EXPECT_EQ(count(), 4);
}

TEST_F(MysqlFaultsConcurrency, WhileItIsAwayCallsFailAtOnce) {
  open({.writers = 2});
  insert(1);
  shared_server().kill();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(kind_of([&] { count(); }), ErrorKind::lost);
    EXPECT_EQ(kind_of([&] { insert(2); }), ErrorKind::lost);
  }
  EXPECT_LT(since(begin), 2s);
  EXPECT_THAT(last_text, HasSubstr("can't connect to mysql://root@127.0.0.1:"));
  shared_server().start();
  eventually([&] { EXPECT_EQ(count(), 1); });
  // That one session has connected again ends the others' waits.
  for (int id = 2; id < 10; ++id) insert(id);
  EXPECT_EQ(count(), 9);
}

TEST_F(MysqlFaultsConcurrency, RestartedWithinAWriteNothingIsDone) {
  open({.writers = 1});
  insert(1);
  std::latch half_done(1), restarted(1);
  std::thread writing([&] {
    EXPECT_EQ(kind_of([&] {
                database->write_now([&](Session& session) {
                  session.execute(kInsert, 2);
                  half_done.count_down();
                  restarted.wait();
                  session.execute(kInsert, 3);
                });
              }),
              ErrorKind::lost);
  });
  half_done.wait();
  shared_server().kill();
  shared_server().start();
  restarted.count_down();
  writing.join();
  EXPECT_EQ(count(), 1);
  insert(4);
  EXPECT_EQ(count(), 2);
}

TEST_F(MysqlFaultsConcurrency, AServerThatStandsStillEndsCallsInTime) {
  open_impatient();
  insert(1);
  shared_server().pause();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(kind_of([&] { count(); }), ErrorKind::lost);
  EXPECT_EQ(kind_of([&] { insert(2); }), ErrorKind::lost);
  // Two time-outs of 2 s, and no second try after either.
  EXPECT_GE(since(begin), 3900ms);
  EXPECT_LT(since(begin), 6s);
  // From here on connecting is what takes its time.
  const auto again = std::chrono::steady_clock::now();
  EXPECT_EQ(kind_of([&] { count(); }), ErrorKind::lost);
  EXPECT_LT(since(again), 2s);
  shared_server().resume();
  eventually([&] { EXPECT_EQ(count(), 1); });
  eventually([&] { insert(3); });
  EXPECT_EQ(count(), 2);
}

TEST_F(MysqlFaultsConcurrency, AServerThatStandsStillInAWriteUndoesIt) {
  open_impatient();
  for (const bool at_commit : {false, true}) {
    EXPECT_EQ(kind_of([&] {
                database->write_now([&](Session& session) {
                  session.execute(kInsert, 1);
                  shared_server().pause();
                  if (!at_commit) session.execute(kInsert, 2);
                });
              }),
              at_commit ? ErrorKind::unknown : ErrorKind::lost);
    shared_server().resume();
    int seen = 0;
    eventually([&] { seen = count(); });
    // A COMMIT that arrived is done when the server goes on.
    const auto give_up = std::chrono::steady_clock::now() + 10s;
    while (at_commit && seen == 0 && std::chrono::steady_clock::now() < give_up) seen = count();
    EXPECT_EQ(seen, at_commit ? 1 : 0);
  }
}

TEST_F(MysqlFaultsConcurrency, ADeadlockIsWonByBothOneAfterTheOther) {
  open({.writers = 2});
  insert(1);
  insert(2);
  // `swallows`: the function lives with the Error that a statement threw; its work is gone all the same.
  for (const bool swallows : {false, true}) {
    const auto repeats_before = database->stats().repeats;
    std::latch both_hold_one(2);
    std::atomic<int> runs{0};
    auto write = [&](int mine, int yours) {
      bool first_run = true;
      database->write_now([&, mine, yours](Session& session) {
        ++runs;
        session.execute(kAdd, mine);
        if (std::exchange(first_run, false)) both_hold_one.arrive_and_wait();
        try {
          session.execute(kAdd, yours);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::busy);
          if (!swallows) throw;
        }
      });
    };
    std::thread one(write, 1, 2);
    std::thread other(write, 2, 1);
    one.join();
    other.join();
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(database->stats().repeats - repeats_before, 1U);
    EXPECT_EQ(value(1), swallows ? 4 : 2);
    EXPECT_EQ(value(2), swallows ? 4 : 2);
  }
}

TEST_F(MysqlFaultsConcurrency, ALockIsWaitedForAndThenTriedAgain) {
  open({.writers = 1, .lock_timeout = 1s}, {.busy_timeout = 10s});
  insert(1);
  Session other(mysql({.url = url})->open(detail::Driver::Role::writer));
  auto hold = std::make_unique<Transaction>(other);
  other.execute(kAdd, 1);
  std::atomic<int> runs{0};
  std::thread writing([&] {
    database->write_now([&](Session& session) {
      ++runs;
      session.execute(kAdd, 1);
    });
  });
  while (runs < 2) std::this_thread::sleep_for(5ms);  // the first ran into the time-out
  hold->commit();
  writing.join();
  EXPECT_GE(runs, 2);
  EXPECT_EQ(value(1), 2);
}

TEST_F(MysqlFaultsConcurrency, ALockThatIsNeverFreedIsBusy) {
  open({.writers = 1, .lock_timeout = 1s}, {.busy_timeout = 1500ms});
  insert(1);
  Session other(mysql({.url = url})->open(detail::Driver::Role::writer));
  const Transaction hold(other);
  other.execute(kAdd, 1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(kind_of([&] { database->write_now([](Session& session) { session.execute(kAdd, 1); }); }),
            ErrorKind::busy);
  EXPECT_THAT(last_text, HasSubstr("MySQL 1205"));
  EXPECT_GE(since(begin), 1500ms);
  EXPECT_LT(since(begin), 5s);
  insert(2);
  EXPECT_EQ(count(), 2);
}

TEST_F(MysqlFaultsConcurrency, WhatCantBeOpenedSaysWhyWithoutThePassword) {
  shared_server().run(
      "CREATE USER IF NOT EXISTS 'w'@'127.0.0.1' IDENTIFIED BY 'right'; GRANT ALL ON *.* TO 'w'@'127.0.0.1'");
  const std::string place = "127.0.0.1:" + std::to_string(shared_server().port());
  auto text_of = [](const std::string& address) -> std::string {
    try {
      Database opened({.driver = mysql({.url = address, .writers = 1}), .readers = 1});
    } catch (const Unusable& error) {
      return std::string("unusable: ") + error.what();
    } catch (const Error& error) {
      return std::string(to_string(error.kind())) + ": " + error.what();
    }
    return "opened";
  };
  EXPECT_EQ(text_of("mysql://w:right@" + place + "/mysql"), "opened");
  const std::string refused = text_of("mysql://w:wrong@" + place + "/mysql");
  EXPECT_THAT(refused, HasSubstr("unusable: can't connect to mysql://w@" + place + "/mysql: Access denied"));
  EXPECT_THAT(refused, Not(HasSubstr("wrong")));
  EXPECT_THAT(text_of("mysql://root@" + place + "/nowhere"), HasSubstr("unusable: "));
  const auto closed = std::to_string(redis::TestServer::free_port());
  EXPECT_THAT(text_of("mysql://root@127.0.0.1:" + closed + "/x"), HasSubstr("lost: can't connect to "));
}

}  // namespace
}  // namespace weir::sql

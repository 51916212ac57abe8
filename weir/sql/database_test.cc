// What holds for a Database on every store.
#include "weir/sql/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <latch>
#include <random>

#include "weir/sql/database_fixture.h"
#include "weir/sql/store_fixture.h"
#include "weir/sql/transaction.h"
#include "weir/testing/io_threads.h"

namespace weir::sql {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

const Query kSet{"test", "set", "UPDATE t SET v = ? WHERE id = ?"};

class DatabaseContractConcurrency : public testing::TestWithParam<StoreKind> {
 protected:
  void open(Options options = {}) {
    database = std::make_unique<Database>(store->at(std::move(options)));
    const Migration schema{1, "t", "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)",
                           "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)"};
    database->migrate("test", {&schema, 1});
  }
  std::int64_t count() {
    return database->read_now(
        [](Session& session) { return session.one(kCount, first<std::int64_t>).value(); });
  }
  int writers() const { return std::max(1, database->options().driver->separate_writers()); }

  std::unique_ptr<TestStore> store = GetParam().make();
  std::unique_ptr<Database> database;
};

INSTANTIATE_TEST_SUITE_P(Stores, DatabaseContractConcurrency, testing::ValuesIn(kStores), name_of_store);

TEST_P(DatabaseContractConcurrency, CoroutinesReadAndWriteAndComeBack) {
  open();
  run_here([&]() -> asio::awaitable<void> {
    const auto here = std::this_thread::get_id();
    const Changes changes =
        co_await database->write([](Session& session) { return session.execute(kInsert, 1, 10); });
    EXPECT_EQ(changes.rows, 1);
    EXPECT_EQ(std::this_thread::get_id(), here);
    const auto v = co_await database->read([](Session& session) { return session.one(kGet, first<int>, 1); });
    EXPECT_EQ(v, 10);
    EXPECT_EQ(std::this_thread::get_id(), here);
    co_await database->write([](Session& session) { session.execute(kInsert, 2, 20); });
  }());
  EXPECT_EQ(count(), 2);
}

TEST_P(DatabaseContractConcurrency, ReadersCantWrite) {
  open();
  EXPECT_THROW(database->read_now([](Session& session) { session.execute(kInsert, 1, 1); }), Error);
}

TEST_P(DatabaseContractConcurrency, ManyWritersAndReaders) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  open();
  constexpr int kAccounts = 10;
  constexpr int kStart = 1000;
  database->write_now([&](Session& session) {
    for (int i = 0; i < kAccounts; ++i) session.execute(kInsert, i, kStart);
  });
  asio::thread_pool pool(4);
  std::atomic<int> torn{0}, failed{0}, done{0};
  constexpr int kTransfers = 1000;
  // Each transfer moves an amount between two accounts, and a third of them fails in between; every look sees
  // an unchanged sum.
  auto transfer = [&](unsigned n) -> asio::awaitable<void> {
    std::minstd_rand random(seed + n);
    const int from = static_cast<int>(random() % kAccounts);
    const int to = static_cast<int>(random() % kAccounts);
    try {
      co_await database->write([=](Session& session) {
        session.execute(kAdd, -7, from);
        if (n % 3 == 0) throw std::out_of_range("no");
        session.execute(kAdd, 7, to);
      });
      ++done;
    } catch (const std::out_of_range&) {
      ++failed;
    }
    const auto sum = co_await database->read([](Session& session) {
      return session.one({"test", "sum", "SELECT sum(v) FROM t"}, first<int>).value();
    });
    if (sum != kAccounts * kStart) ++torn;
  };
  for (unsigned n = 0; n < kTransfers; ++n) asio::co_spawn(pool, transfer(n), asio::detached);
  pool.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(failed, (kTransfers + 2) / 3);
  EXPECT_EQ(done, kTransfers - (kTransfers + 2) / 3);
  const auto stats = database->stats();
  EXPECT_GE(stats.writes, kTransfers + 1U);  // the accounts are a write, too
  if (writers() == 1) {
    EXPECT_LT(stats.transactions, stats.writes / 2);
  } else {
    EXPECT_EQ(stats.transactions, stats.writes + stats.repeats);
  }
}

// What a function has read stays so until it ends: nothing that it computes from that is lost.
TEST_P(DatabaseContractConcurrency, ReadThenWriteLosesNothing) {
  open();
  database->write_now([](Session& session) { session.execute(kInsert, 1, 0); });
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) try {
          database->write_now([](Session& session) {
            const int v = session.one(kGet, first<int>, 1).value();
            session.execute(kSet, v + 1, 1);
          });
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(database->read_now([](Session& session) { return session.one(kGet, first<int>, 1); }),
            kThreads * kEach);
}

// A write that throws takes back its own work, and that of no other.
TEST_P(DatabaseContractConcurrency, OneFailingWriteHurtsNoOther) {
  open();
  asio::thread_pool pool(2);
  std::atomic<int> own{0}, violations{0}, other{0};
  for (int i = 1; i <= 60; ++i)
    asio::co_spawn(
        pool,
        [&, i]() -> asio::awaitable<void> {
          co_await database->write([i](Session& session) {
            session.execute(kInsert, i, i);
            if (i % 3 == 0) throw std::out_of_range("no");
            if (i % 3 == 1) session.execute(kInsert, i, i);
            const Transaction undone(session);
            session.execute(kInsert, 1000 + i, i);
          });
        },
        [&](std::exception_ptr error) {
          try {
            if (error) std::rethrow_exception(error);
          } catch (const std::out_of_range&) {
            ++own;
          } catch (const Error& failure) {
            ++(failure.kind() == ErrorKind::unique_violation ? violations : other);
          }
        });
  pool.join();
  EXPECT_EQ(own, 20);
  EXPECT_EQ(violations, 20);
  EXPECT_EQ(other, 0);
  EXPECT_EQ(count(), 20);
}

TEST_P(DatabaseContractConcurrency, WaitingIsBounded) {
  open({.max_waiting = 2});
  std::atomic<int> refused{0}, done{0};
  asio::io_context io;
  {
    const Hold hold(*database, writers());
    for (int i = 0; i < 5; ++i)
      asio::co_spawn(
          io,
          [&, i]() -> asio::awaitable<void> {
            co_await database->write([i](Session& session) { session.execute(kInsert, i, i); });
          },
          [&](std::exception_ptr error) {
            if (!error) {
              ++done;
              return;
            }
            try {
              std::rethrow_exception(error);
            } catch (const Unavailable& e) {
              EXPECT_THAT(e.what(), HasSubstr("too many calls are waiting"));
              ++refused;
            }
          });
    io.poll();
    EXPECT_EQ(refused, 3);
  }
  io.run();
  EXPECT_EQ(done, 2);
  EXPECT_EQ(count(), 2);
}

TEST_P(DatabaseContractConcurrency, WaitingForItselfIsRefused) {
  open({.readers = 1});
  auto nested_write = [&](Session&) { database->write_now([](Session&) {}); };
  auto nested_read = [&](Session&) { database->read_now([](Session&) {}); };
  EXPECT_THROW(database->write_now(nested_write), Error);
  EXPECT_THROW(database->write_now(nested_read), Error);
  EXPECT_THROW(database->read_now(nested_write), Error);
  EXPECT_THROW(database->read_now(nested_read), Error);
  EXPECT_THROW(database->write_now([&](Session&) { database->stop(); }), Error);
  // Another database is no problem.
  const std::unique_ptr<TestStore> another = GetParam().make();
  Database other(another->at());
  EXPECT_EQ(database->write_now([&](Session&) { return other.write_now([](Session&) { return 5; }); }), 5);
}

TEST_P(DatabaseContractConcurrency, StopFinishesWhatWaits) {
  open();
  asio::thread_pool pool(2);
  constexpr int kCalls = 1000;
  std::atomic<int> written{0}, refused{0}, other{0};
  std::latch some(100);
  for (int i = 0; i < kCalls; ++i)
    asio::co_spawn(
        pool,
        [&, i]() -> asio::awaitable<void> {
          co_await database->read([](Session& session) { session.one(kCount, first<int>); });
          co_await database->write([i](Session& session) { session.execute(kInsert, i, i); });
        },
        [&](std::exception_ptr error) {
          if (!error) {
            if (++written <= 100) some.count_down();
          } else {
            try {
              std::rethrow_exception(error);
            } catch (const Unavailable&) {
              ++refused;
            } catch (...) {
              ++other;
            }
          }
        });
  some.wait();
  database->stop();
  pool.join();
  EXPECT_EQ(written + refused, kCalls);
  EXPECT_EQ(other, 0);
  EXPECT_THROW(count(), Unavailable);
  database->stop();
  const int acknowledged = written;
  open();
  EXPECT_EQ(count(), acknowledged);
}

}  // namespace
}  // namespace weir::sql

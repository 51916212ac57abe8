#include "weir/sql/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <csignal>
#include <fstream>
#include <latch>
#include <random>

#include "weir/sql/transaction.h"
#include "weir/testing/io_threads.h"
#include "weir/testing/temp_dir.h"

namespace weir::sql {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

const Query kInsert{"test", "insert", "INSERT INTO t (id, v) VALUES (?, ?)"};
const Query kAdd{"test", "add", "UPDATE t SET v = v + ? WHERE id = ?"};
const Query kGet{"test", "get", "SELECT v FROM t WHERE id = ?"};
const Query kCount{"test", "count", "SELECT count(*) FROM t"};

class DatabaseConcurrency : public testing::Test {
 protected:
  void open(Options options = {}) {
    options.path = dir / "test.db";
    database = std::make_unique<Database>(std::move(options));
    const Migration schema{1, "t", "CREATE TABLE t (id INTEGER PRIMARY KEY, v)"};
    database->migrate("test", {&schema, 1});
  }
  std::int64_t count() {
    return database->read_now(
        [](Session& session) { return session.one(kCount, first<std::int64_t>).value(); });
  }

  // Keeps the writer busy until it is let go, so that what is written meanwhile forms one group.
  class Hold {
   public:
    explicit Hold(Database& database)
        : thread_([this, &database] {
            database.write_now([this](Session&) {
              holding_.count_down();
              let_go_.wait();
            });
          }) {
      holding_.wait();
    }
    ~Hold() {
      let_go_.count_down();
      thread_.join();
    }

   private:
    std::latch holding_{1}, let_go_{1};
    std::thread thread_;
  };

  // Starts the writes together in one group and gives what came of each: nothing, or the exception.
  std::vector<std::exception_ptr> write_together(std::vector<std::function<void(Session&)>> functions) {
    std::vector<std::exception_ptr> errors(functions.size());
    asio::io_context io;
    {
      const Hold hold(*database);
      for (std::size_t i = 0; i < functions.size(); ++i)
        asio::co_spawn(
            io, [&, i]() -> asio::awaitable<void> { co_await database->write(functions[i]); },
            [&, i](std::exception_ptr error) { errors[i] = error; });
      // All are handed in before the first can end.
      io.poll();
      EXPECT_EQ(database->stats().waiting_writes, functions.size());
    }
    io.run();
    return errors;
  }

  static std::optional<ErrorKind> kind_of(const std::exception_ptr& error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const Error& e) {
      return e.kind();
    } catch (const std::exception&) {
    }
    return std::nullopt;
  }

  TempDir dir;
  std::unique_ptr<Database> database;
};

TEST_F(DatabaseConcurrency, CoroutinesReadAndWriteAndComeBack) {
  open();
  run_here([&]() -> asio::awaitable<void> {
    const auto here = std::this_thread::get_id();
    const Changes changes =
        co_await database->write([](Session& session) { return session.execute(kInsert, 1, "x"); });
    EXPECT_EQ(changes.rows, 1);
    EXPECT_EQ(std::this_thread::get_id(), here);
    const auto v =
        co_await database->read([](Session& session) { return session.one(kGet, first<std::string>, 1); });
    EXPECT_EQ(v, "x");
    EXPECT_EQ(std::this_thread::get_id(), here);
    co_await database->write([](Session& session) { session.execute(kInsert, 2, "y"); });
  }());
  EXPECT_EQ(count(), 2);
}

TEST_F(DatabaseConcurrency, ReadersCantWrite) {
  open();
  EXPECT_THROW(database->read_now([](Session& session) { session.execute(kInsert, 1, 1); }), Error);
}

TEST_F(DatabaseConcurrency, ManyWritersAndReaders) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  open({.full_sync = false});
  constexpr int kAccounts = 10;
  constexpr int kStart = 1000;
  database->write_now([&](Session& session) {
    for (int i = 0; i < kAccounts; ++i) session.execute(kInsert, i, kStart);
  });
  asio::thread_pool pool(4);
  std::atomic<int> torn{0}, failed{0}, done{0};
  constexpr int kTransfers = 2000;
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
  EXPECT_EQ(stats.writes, kTransfers + 2U);  // the migration and the accounts are writes, too
  EXPECT_LT(stats.transactions, stats.writes / 2);
}

TEST_F(DatabaseConcurrency, OneFailingWriteDoesntHurtItsGroup) {
  open();
  const auto before = database->stats().transactions;
  std::vector<std::function<void(Session&)>> functions;
  functions.reserve(20);
  for (int i = 0; i < 20; ++i)
    functions.emplace_back([i](Session& session) {
      session.execute(kInsert, i, i);
      if (i == 5) throw std::out_of_range("no");
      if (i == 6) session.execute(kInsert, 0, 0);  // 0 is there
      if (i == 7) {
        // What a function lives with is no failure.
        EXPECT_THROW(session.execute(kInsert, 0, 0), Error);
        const Transaction undone(session);
        session.execute(kInsert, 100, 0);
      }
    });
  const auto errors = write_together(functions);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(errors[i] != nullptr, i == 5 || i == 6) << i;
  EXPECT_THROW(std::rethrow_exception(errors[5]), std::out_of_range);
  EXPECT_EQ(kind_of(errors[6]), ErrorKind::unique_violation);
  EXPECT_EQ(count(), 18);
  EXPECT_EQ(database->stats().transactions - before, 2U);  // the hold's and the group's
}

TEST_F(DatabaseConcurrency, GroupsHaveALimit) {
  open({.full_sync = false});
  const auto before = database->stats().transactions;
  const auto errors = write_together(std::vector<std::function<void(Session&)>>(
      3 * Database::kMaxGroupWrites,
      [](Session& session) { session.execute({"test", "add", "INSERT INTO t (v) VALUES (1)"}); }));
  for (const auto& error : errors) EXPECT_EQ(error, nullptr);
  EXPECT_EQ(count(), 3 * static_cast<int>(Database::kMaxGroupWrites));
  EXPECT_GE(database->stats().transactions - before, 4U);
}

TEST_F(DatabaseConcurrency, ALongGroupEndsInTime) {
  ManualClock clock;
  open({.clock = &clock});
  const auto before = database->stats().transactions;
  // Each write takes 8 ms: three begin within the 20 ms, then there is a commit.
  const auto errors = write_together(std::vector<std::function<void(Session&)>>(
      9, [&](Session&) { clock.advance(std::chrono::milliseconds(8)); }));
  for (const auto& error : errors) EXPECT_EQ(error, nullptr);
  EXPECT_EQ(database->stats().transactions - before, 4U);
}

TEST_F(DatabaseConcurrency, AFailedCommitIsEverybodysErrorAndThenOver) {
  open();
  database->write_now([](Session& session) {
    session.script(
        {"test", "schema",
         "CREATE TABLE child (t INTEGER NOT NULL REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)"});
  });
  const auto errors = write_together({
      [](Session& session) { session.execute(kInsert, 1, 1); },
      // Is refused by the COMMIT, not by the statement.
      [](Session& session) { session.execute({"test", "child", "INSERT INTO child VALUES (9)"}); },
      [](Session&) { throw std::out_of_range("its own"); },
  });
  EXPECT_EQ(kind_of(errors[0]), ErrorKind::constraint);
  EXPECT_EQ(kind_of(errors[1]), ErrorKind::constraint);
  EXPECT_THROW(std::rethrow_exception(errors[2]), std::out_of_range);
  EXPECT_EQ(count(), 0);
  database->write_now([](Session& session) { session.execute(kInsert, 1, 1); });
  EXPECT_EQ(count(), 1);
}

TEST_F(DatabaseConcurrency, AFullStoreRefusesWritesAndServesReads) {
  open();
  database->write_now([](Session& session) {
    session.execute(kInsert, 1, "kept");
    const int pages = session.one({"test", "pages", "PRAGMA page_count"}, first<int>).value();
    session.execute({"test", "limit", "PRAGMA max_page_count = " + std::to_string(pages)});
  });
  const std::string large(100'000, 'x');
  bool late_ran = false;
  const auto errors = write_together({
      [](Session& session) { session.execute(kInsert, 2, "small"); },
      [&](Session& session) {
        EXPECT_THROW(session.execute(kInsert, 3, large), Error);
        // The transaction is gone, and this must not be written outside of it.
        EXPECT_THROW(session.execute(kInsert, 4, "outside"), Error);
        throw Error(ErrorKind::full, "passed on");
      },
      [&](Session& session) {
        late_ran = true;
        session.execute(kInsert, 5, "late");
      },
  });
  EXPECT_EQ(kind_of(errors[0]), ErrorKind::full);
  EXPECT_EQ(kind_of(errors[1]), ErrorKind::full);
  // It hadn't begun when the transaction was lost, so it ran, once, in the next one.
  EXPECT_EQ(errors[2], nullptr);
  EXPECT_TRUE(late_ran);
  EXPECT_EQ(count(), 2);
  database->write_now(
      [](Session& session) { session.execute({"test", "limit", "PRAGMA max_page_count = 100000"}); });
  database->write_now([&](Session& session) { session.execute(kInsert, 3, large); });
  EXPECT_EQ(count(), 3);
}

TEST_F(DatabaseConcurrency, AFileThatCantGrowIsFullAndRecovers) {
  open();
  database->write_now([](Session& session) { session.execute(kInsert, 1, "kept"); });
  struct stat log{};
  ASSERT_EQ(stat((dir / "test.db-wal").c_str(), &log), 0);
  ASSERT_NE(std::signal(SIGXFSZ, SIG_IGN), SIG_ERR);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{static_cast<rlim_t>(log.st_size) + 1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto errors = write_together({
      [](Session& session) { session.execute(kInsert, 2, std::string(100'000, 'x')); },
      [](Session& session) { session.execute(kInsert, 3, "with it"); },
  });
  const auto seen_meanwhile = count();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(kind_of(errors[0]), ErrorKind::full);
  EXPECT_EQ(kind_of(errors[1]), ErrorKind::full);
  EXPECT_EQ(seen_meanwhile, 1);
  database->write_now([](Session& session) { session.execute(kInsert, 2, std::string(100'000, 'x')); });
  EXPECT_EQ(count(), 2);
}

TEST_F(DatabaseConcurrency, WaitingIsBounded) {
  open({.max_waiting = 2});
  std::atomic<int> refused{0}, done{0};
  asio::io_context io;
  {
    const Hold hold(*database);
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

TEST_F(DatabaseConcurrency, WaitingForItselfIsRefused) {
  open({.readers = 1});
  auto nested_write = [&](Session&) { database->write_now([](Session&) {}); };
  auto nested_read = [&](Session&) { database->read_now([](Session&) {}); };
  EXPECT_THROW(database->write_now(nested_write), Error);
  EXPECT_THROW(database->write_now(nested_read), Error);
  EXPECT_THROW(database->read_now(nested_write), Error);
  EXPECT_THROW(database->read_now(nested_read), Error);
  EXPECT_THROW(database->write_now([&](Session&) { database->stop(); }), Error);
  // Another database is no problem.
  Database other({.path = dir / "other.db"});
  EXPECT_EQ(database->write_now([&](Session&) { return other.write_now([](Session&) { return 5; }); }), 5);
}

TEST_F(DatabaseConcurrency, StopFinishesWhatWaits) {
  open({.full_sync = false});
  asio::thread_pool pool(2);
  constexpr int kCalls = 3000;
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
  // The last session to close has moved the log into the file.
  EXPECT_FALSE(std::filesystem::exists(dir / "test.db-wal"));
  const int acknowledged = written;
  open();
  EXPECT_EQ(count(), acknowledged);
}

TEST_F(DatabaseConcurrency, AnotherWriterIsWaitedForAndThenBusy) {
  open();
  auto other = std::make_unique<Database>(
      Options{.path = dir / "test.db", .readers = 1, .busy_timeout = std::chrono::milliseconds(1)});
  auto insert = [](Session& session) { session.execute(kInsert, 1, 1); };
  {
    const Hold hold(*database);
    try {
      other->write_now(insert);
      ADD_FAILURE() << "two writers at once";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::busy);
    }
    EXPECT_EQ(other->read_now([](Session& session) { return session.one(kCount, first<int>); }), 0);
  }
  other->write_now(insert);
  EXPECT_EQ(count(), 1);
  // With patience it gets its turn.
  other = std::make_unique<Database>(Options{.path = dir / "test.db", .readers = 1});
  std::thread waiting;
  {
    const Hold hold(*database);
    waiting =
        std::thread([&] { other->write_now([](Session& session) { session.execute(kInsert, 2, 2); }); });
  }
  waiting.join();
  EXPECT_EQ(count(), 2);
}

TEST_F(DatabaseConcurrency, WhatIsNoDatabaseIsUnusable) {
  auto text_of = [](Options options) -> std::string {
    try {
      Database opened(std::move(options));
    } catch (const Unusable& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  std::ofstream(dir / "text.db") << std::string(5000, 'x');
  EXPECT_THAT(text_of({.path = dir / "text.db"}), HasSubstr(dir / "text.db is no SQLite database"));
  EXPECT_THAT(text_of({.path = dir / "nowhere/test.db"}), HasSubstr(dir / "nowhere/test.db"));
  EXPECT_THAT(text_of({.path = dir / ""}), HasSubstr("can't open the database"));
  EXPECT_THAT(text_of({.path = ""}), HasSubstr("needs a file"));
  EXPECT_THAT(text_of({.path = dir / "test.db", .readers = 0}), HasSubstr("at least one reader"));
}

TEST_F(DatabaseConcurrency, TheFileIsItsOwnersOnly) {
  open();
  struct stat file{};
  ASSERT_EQ(stat((dir / "test.db").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
}

}  // namespace
}  // namespace weir::sql

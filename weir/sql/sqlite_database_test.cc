// What is SQLite's own about a Database: groups of writes, the file.
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

#include "weir/sql/database_fixture.h"
#include "weir/sql/transaction.h"
#include "weir/testing/io_threads.h"
#include "weir/testing/temp_dir.h"

namespace weir::sql {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

class SqliteDatabaseConcurrency : public testing::Test {
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

TEST_F(SqliteDatabaseConcurrency, OneFailingWriteDoesntHurtItsGroup) {
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

TEST_F(SqliteDatabaseConcurrency, GroupsHaveALimit) {
  open({.full_sync = false});
  const auto before = database->stats().transactions;
  const auto errors = write_together(std::vector<std::function<void(Session&)>>(
      3 * Database::kMaxGroupWrites,
      [](Session& session) { session.execute({"test", "add", "INSERT INTO t (v) VALUES (1)"}); }));
  for (const auto& error : errors) EXPECT_EQ(error, nullptr);
  EXPECT_EQ(count(), 3 * static_cast<int>(Database::kMaxGroupWrites));
  EXPECT_GE(database->stats().transactions - before, 4U);
}

TEST_F(SqliteDatabaseConcurrency, ALongGroupEndsInTime) {
  ManualClock clock;
  open({.clock = &clock});
  const auto before = database->stats().transactions;
  // Each write takes 8 ms: three begin within the 20 ms, then there is a commit.
  const auto errors = write_together(std::vector<std::function<void(Session&)>>(
      9, [&](Session&) { clock.advance(std::chrono::milliseconds(8)); }));
  for (const auto& error : errors) EXPECT_EQ(error, nullptr);
  EXPECT_EQ(database->stats().transactions - before, 4U);
}

TEST_F(SqliteDatabaseConcurrency, AFailedCommitIsEverybodysErrorAndThenOver) {
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

TEST_F(SqliteDatabaseConcurrency, AFullStoreRefusesWritesAndServesReads) {
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

TEST_F(SqliteDatabaseConcurrency, AFileThatCantGrowIsFullAndRecovers) {
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

TEST_F(SqliteDatabaseConcurrency, AnotherWriterIsWaitedForAndThenBusy) {
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

TEST_F(SqliteDatabaseConcurrency, WhatIsNoDatabaseIsUnusable) {
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

TEST_F(SqliteDatabaseConcurrency, TheFileIsItsOwnersOnly) {
  open();
  struct stat file{};
  ASSERT_EQ(stat((dir / "test.db").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
}

TEST_F(SqliteDatabaseConcurrency, StopMovesTheLogIntoTheFile) {
  open();
  database->write_now([](Session& session) { session.execute(kInsert, 1, 1); });
  EXPECT_TRUE(std::filesystem::exists(dir / "test.db-wal"));
  database->stop();
  // The last session to close has done so.
  EXPECT_FALSE(std::filesystem::exists(dir / "test.db-wal"));
  open();
  EXPECT_EQ(count(), 1);
}

}  // namespace
}  // namespace weir::sql

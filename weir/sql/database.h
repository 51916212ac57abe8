// Database: the door to the store. Functions that use a Session run on its own threads, so that no I/O thread
// ever waits for a disk.
//
// Readers are a few threads, each with a session that can't write. On SQLite, writes all go through one
// thread, which puts what is waiting into one transaction, each write in its own savepoint: with FULL
// synchronisation the price of a commit is the disk's flush, and so fifty waiting writes pay it once. A write
// that throws takes back its own work only. On MySQL and MariaDB, whose server gathers commits by itself, a few
// threads write, each write in a transaction of its own. It is serializable, so that a function finds the same
// world on either store: what it has read stays so until it ends. When another writer is in the way of that
// (deadlock 1213, lock wait 1205, and what else the server calls busy), the function's work is undone and it runs
// again.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/base/clock.h"
#include "weir/base/offload.h"
#include "weir/sql/call.h"
#include "weir/sql/migration.h"
#include "weir/sql/session.h"

namespace weir::sql {

struct Options {
  std::string path = {};  // of SQLite's file; its directory must exist
  // Another store than SQLite: sql::mysql("mysql://..") of mysql.h. `path` and `full_sync` mean nothing then.
  std::shared_ptr<const detail::Driver> driver = {};
  int readers = 4;
  // Reads, and apart from them writes, that may wait for a thread; above it calls throw Unavailable.
  std::size_t max_waiting = 10'000;
  // true: what was written survives a power cut (synchronous=FULL). false: it survives a crash of the
  // process, and a power cut may take back the last moments, but never leaves half a transaction (NORMAL).
  bool full_sync = true;
  // How long a write waits for another process to finish its own. On MySQL: a write that others were in the way
  // of isn't tried again later than about that after its first try.
  std::chrono::milliseconds busy_timeout{5'000};
  std::string name = "store";  // of the threads, and in errors
  const Clock* clock = &Clock::system();
};

class Database {
 public:
  // Limits of one transaction of the writer: so many writes, and none begins later than so after the first.
  static constexpr std::size_t kMaxGroupWrites = 256;
  static constexpr std::chrono::milliseconds kMaxGroupTime{20};
  // Limits of trying a write again on MySQL: so many tries in all, within Options::busy_timeout, with waits
  // between them that grow from up to kFirstWriteWait to up to kMaxWriteWait.
  static constexpr int kMaxWriteTries = 50;
  static constexpr std::chrono::milliseconds kFirstWriteWait{2};
  static constexpr std::chrono::milliseconds kMaxWriteWait{200};

  // Opens or creates the file, or connects all sessions to the server. Throws Unusable, with the path or the
  // server's address, when it is no database, can't be opened or refuses the user; Error lost when the server
  // can't be reached; and std::system_error when the system refuses one of the threads.
  explicit Database(Options options);
  // As stop().
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // See migration.h, also for what MySQL can't undo. Blocks; call it before serving.
  void migrate(std::string_view module, std::span<const Migration> migrations);

  // Runs f(Session&) on a reader; the coroutine resumes on its own executor. Each statement sees what was
  // committed when it began; a Transaction in f makes them all see the same. A statement that finds its
  // connection to the server gone is sent once more over a new one, but not within a Transaction, and not
  // after a time-out.
  // Throws what f throws, and Unavailable when too many calls are waiting or the database is stopped.
  template <class F>
  boost::asio::awaitable<std::invoke_result_t<F&, Session&>> read(F f) {
    using R = std::invoke_result_t<F&, Session&>;
    co_return co_await await_completion<R>([this, f = std::move(f)](auto complete) mutable {
      submit_read(detail::make_call<R>(std::move(f), std::move(complete)));
    });
  }

  // Runs f(Session&) on a writer, in a transaction (on SQLite in a savepoint of the group's); resumes after
  // the COMMIT. When f throws, its work is undone and the exception comes here; when the transaction is lost or
  // its COMMIT fails, the Error does, to every write of the group. f and what it holds die on the writer's
  // thread; f must not wait for anything but its session, because other writes wait for it.
  //
  // The effect in the store happens once or not at all. On MySQL f itself may run several times, each time
  // after the work of the time before was undone: it must not move out of its captures, and what it does to
  // anything but its session it has to do anew each time (clear the list that it fills, say). Error lost: nothing
  // was done. Error unknown: the connection went with the COMMIT under way, and only the store's rows tell. Writes
  // that wait at the same time may run side by side and in any order there.
  template <class F>
  boost::asio::awaitable<std::invoke_result_t<F&, Session&>> write(F f) {
    using R = std::invoke_result_t<F&, Session&>;
    co_return co_await await_completion<R>([this, f = std::move(f)](auto complete) mutable {
      submit_write(detail::make_call<R>(std::move(f), std::move(complete)));
    });
  }

  // The same for threads that may block: commands, jobs, consumers; never an I/O thread. From within a
  // function that this database runs they throw Error misuse, because they would wait for themselves: such a
  // function already has a session.
  template <class F>
  std::invoke_result_t<F&, Session&> read_now(F&& f) {
    return wait_for([this](auto call) { submit_read(std::move(call)); }, f);
  }
  template <class F>
  std::invoke_result_t<F&, Session&> write_now(F&& f) {
    return wait_for([this](auto call) { submit_write(std::move(call)); }, f);
  }

  // Finishes what waits, refuses what comes later (Unavailable), closes the file. More than once is harmless.
  void stop();

  struct Stats {
    std::size_t waiting_reads, waiting_writes;
    std::uint64_t writes;        // functions that ran
    std::uint64_t transactions;  // that they were committed or rolled back in
    std::uint64_t repeats;       // runs of a function after its first
  };
  Stats stats() const;
  const Options& options() const;

 private:
  struct State;

  void submit_read(std::unique_ptr<detail::Call> call);
  void submit_write(std::unique_ptr<detail::Call> call);
  void refuse_nested_wait() const;

  template <class Submit, class F>
  std::invoke_result_t<F&, Session&> wait_for(Submit submit, F& f) {
    using R = std::invoke_result_t<F&, Session&>;
    refuse_nested_wait();
    std::promise<Outcome<R>> promise;
    auto done = promise.get_future();
    auto complete = [promise = std::move(promise)](Outcome<R> outcome) mutable {
      promise.set_value(std::move(outcome));
    };
    submit(detail::make_call<R>([&f](Session& session) -> R { return f(session); }, std::move(complete)));
    return done.get().get();
  }

  std::unique_ptr<State> state_;
};

}  // namespace weir::sql

// Database: the door to the store. Functions that use a Session run on its own threads, so that no I/O thread
// ever waits for a disk.
//
// Readers are a few threads, each with a session that can't write. Writes all go through one thread, which
// puts what is waiting into one transaction, each write in its own savepoint: with FULL synchronisation the
// price of a commit is the disk's flush, and so fifty waiting writes pay it once. A write that throws takes
// back its own work only.
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
  int readers = 4;
  // Reads, and apart from them writes, that may wait for a thread; above it calls throw Unavailable.
  std::size_t max_waiting = 10'000;
  // true: what was written survives a power cut (synchronous=FULL). false: it survives a crash of the
  // process, and a power cut may take back the last moments, but never leaves half a transaction (NORMAL).
  bool full_sync = true;
  // How long a write waits for another process to finish its own.
  std::chrono::milliseconds busy_timeout{5'000};
  std::string name = "store";  // of the threads, and in errors
  const Clock* clock = &Clock::system();
};

class Database {
 public:
  // Limits of one transaction of the writer: so many writes, and none begins later than so after the first.
  static constexpr std::size_t kMaxGroupWrites = 256;
  static constexpr std::chrono::milliseconds kMaxGroupTime{20};

  // Opens or creates the file. Throws Unusable, with the path, when it is no database or can't be opened, and
  // std::system_error when the system refuses one of the threads.
  explicit Database(Options options);
  // As stop().
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // See migration.h. Blocks; call it before serving.
  void migrate(std::string_view module, std::span<const Migration> migrations);

  // Runs f(Session&) on a reader; the coroutine resumes on its own executor. Each statement sees what was
  // committed when it began; a Transaction in f makes them all see the same.
  // Throws what f throws, and Unavailable when too many calls are waiting or the database is stopped.
  template <class F>
  boost::asio::awaitable<std::invoke_result_t<F&, Session&>> read(F f) {
    using R = std::invoke_result_t<F&, Session&>;
    co_return co_await await_completion<R>([this, f = std::move(f)](auto complete) mutable {
      submit_read(detail::make_call<R>(std::move(f), std::move(complete)));
    });
  }

  // Runs f(Session&) once, on the writer, in a savepoint of the group's transaction; resumes after the
  // COMMIT. When f throws, its work is undone and the exception comes here; when the transaction is lost or
  // its COMMIT fails, every write of the group throws the Error. f and what it holds die on the writer's
  // thread; f must not wait for anything but its session, because all writes wait for it.
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

#include "weir/sql/database.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "weir/base/backoff.h"
#include "weir/base/fault.h"
#include "weir/sql/call_queue.h"
#include "weir/sql/driver.h"
#include "weir/sql/right_of_way.h"
#include "weir/sql/sqlite.h"
#include "weir/sql/transaction.h"
#include "weir/telemetry/metrics.h"

namespace weir::sql {

namespace {

using detail::Call;
using detail::CallQueue;

// The Database whose thread this is.
thread_local const void* t_inside = nullptr;

using Role = detail::Driver::Role;

Options with_driver(Options options) {
  if (!options.driver)
    options.driver = detail::sqlite_driver(
        {.path = options.path, .full_sync = options.full_sync, .busy_timeout = options.busy_timeout});
  return options;
}

// MySQL's number for it. A write that met one is tried again alone: side by side the same writes could go on
// meeting each other. Not so after a lock wait, whose lock may be another process's, for long.
constexpr int kDeadlock = 1213;

// What the call threw, if it is an Error.
std::optional<Error> thrown_error(const std::exception_ptr& thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (...) {  // the caller gets it as it is
  }
  return std::nullopt;
}

telemetry::Counter& repeated_writes() {
  static auto counter =
      telemetry::counter("weir_store_repeated_writes_total",
                         "Runs of write functions after their first, which others were in the way of");
  return counter;
}

std::optional<int> obstacle_of(const std::optional<Error>& error) {
  if (!error || error->kind() != ErrorKind::busy) return std::nullopt;
  return error->code();
}

// Each caller gets an exception of its own, text included (copies would share it), and nothing of it stays
// here: it is thrown and dies in another thread.
std::exception_ptr copy_of(const std::optional<Error>& failure) {
  return failure ? std::make_exception_ptr(Error(failure->kind(), failure->what(), failure->code()))
                 : nullptr;
}

}  // namespace

struct Database::State {
  explicit State(Options o)
      : options(with_driver(std::move(o))), reads(options.max_waiting), writes(options.max_waiting) {}

  void start();
  void stop();
  std::unique_ptr<Session> open(Role role) const {
    return std::make_unique<Session>(options.driver->open(role));
  }
  void read_loop(Session& session);
  // One transaction for all that waits; one for each.
  void group_loop(Session& session);
  void separate_loop(Session& session);
  void run_separately(Session& session, Call& call);
  std::optional<int> run_once(Session& session, Call& call, std::optional<Error>& failure);
  std::size_t run_transaction(Session& session, std::span<const std::unique_ptr<Call>> calls);
  void run_calls(Session& session, std::span<const std::unique_ptr<Call>> calls, std::size_t& begun);
  void refuse(Call& call, CallQueue::Push why) const;

  template <class Loop>
  std::thread thread(const std::string& suffix, std::unique_ptr<Session> session, Loop loop) {
    return std::thread(
        [this, name = (options.name + suffix).substr(0, 15), session = std::move(session), loop] {
          pthread_setname_np(pthread_self(), name.c_str());
          t_inside = this;
          (this->*loop)(*session);
        });
  }

  const Options options;
  CallQueue reads, writes;
  std::mutex stopping;
  std::vector<std::thread> readers;
  std::vector<std::thread> writers;
  detail::RightOfWay right_of_way;
  std::atomic<std::uint64_t> writes_run{0}, transactions{0}, repeats{0};
};

void Database::State::start() {
  if (options.readers < 1) throw Unusable("a database needs at least one reader");
  const int separate = options.driver->separate_writers();
  // All are opened before a thread starts, so that most failures need no clearing up. SQLite's writer is first:
  // it creates the file and turns its log on.
  std::vector<std::unique_ptr<Session>> write_sessions, read_sessions;
  for (int i = 0; i < std::max(1, separate); ++i) write_sessions.push_back(open(Role::writer));
  for (int i = 0; i < options.readers; ++i) read_sessions.push_back(open(Role::reader));
  writers.reserve(write_sessions.size());
  readers.reserve(read_sessions.size());
  try {
    for (auto& session : write_sessions)
      writers.push_back(
          thread("-write", std::move(session), separate > 0 ? &State::separate_loop : &State::group_loop));
    for (auto& session : read_sessions)
      readers.push_back(thread("-read", std::move(session), &State::read_loop));
  } catch (...) {  // ~State would find threads that nobody has joined, which ends the process
    stop();
    throw;
  }
}

void Database::State::stop() {
  const std::lock_guard lock(stopping);
  reads.stop();
  for (auto& reader : readers) reader.join();
  readers.clear();
  // The writer is last, so that its session closes last and moves the log into the file.
  writes.stop();
  for (auto& writer : writers) writer.join();
  writers.clear();
}

void Database::State::read_loop(Session& session) {
  for (;;) {
    const auto calls = reads.take(1);
    if (calls.empty()) return;
    calls.front()->run(session);
    calls.front()->finish(nullptr);
  }
}

void Database::State::group_loop(Session& session) {
  for (;;) {
    const auto group = writes.take(kMaxGroupWrites);
    if (group.empty()) return;
    std::span<const std::unique_ptr<Call>> left(group);
    while (!left.empty()) left = left.subspan(run_transaction(session, left));
  }
}

// Runs as many of the calls as fit into one transaction, and finishes them; how many those were.
std::size_t Database::State::run_transaction(Session& session, std::span<const std::unique_ptr<Call>> calls) {
  std::size_t begun = 0;
  std::optional<Error> failure;
  try {
    run_calls(session, calls, begun);
  } catch (const Error& error) {
    failure = error;
  } catch (const std::exception& error) {  // memory ran out between the calls
    failure.emplace(ErrorKind::io, error.what());
  }
  // When no transaction could be begun, nobody has run and everybody gets to know.
  const std::size_t finished = begun > 0 ? begun : calls.size();
  writes_run.fetch_add(begun, std::memory_order_relaxed);
  transactions.fetch_add(1, std::memory_order_relaxed);
  for (const auto& call : calls.first(finished)) call->finish(copy_of(failure));
  return finished;
}

// Runs the calls in their savepoints and commits; throws when the transaction as a whole failed, which by
// then is rolled back. `begun` counts those that were run, or were about to be.
void Database::State::run_calls(Session& session, std::span<const std::unique_ptr<Call>> calls,
                                std::size_t& begun) {
  Transaction group(session);
  const SteadyTime end = options.clock->steady_now() + kMaxGroupTime;
  do {
    Call& call = *calls[begun++];
    Transaction own(session);
    if (call.run(session)) own.commit();
  } while (begun < calls.size() && session.in_transaction() && options.clock->steady_now() < end);
  group.commit();
}

void Database::State::separate_loop(Session& session) {
  for (;;) {
    const auto calls = writes.take(1);
    if (calls.empty()) return;
    run_separately(session, *calls.front());
  }
}

// Runs the call in a transaction of its own, again for as long as others are in its way and the limits allow,
// and finishes it.
void Database::State::run_separately(Session& session, Call& call) {
  Backoff backoff(kFirstWriteWait, kMaxWriteWait);
  const SteadyTime end = options.clock->steady_now() + options.busy_timeout;
  std::optional<Error> failure;
  bool alone = false;
  for (int tries = 1;; ++tries) {
    std::optional<int> obstacle;
    {
      const detail::RightOfWay::Hold hold(right_of_way, alone);
      obstacle = run_once(session, call, failure);
    }
    if (!obstacle || tries == kMaxWriteTries || options.clock->steady_now() >= end) break;
    alone = *obstacle == kDeadlock;
    call.forget();
    repeats.fetch_add(1, std::memory_order_relaxed);
    repeated_writes().add();
    std::this_thread::sleep_for(backoff.next());
  }
  writes_run.fetch_add(1, std::memory_order_relaxed);
  call.finish(copy_of(failure));
}

// The store's number for what was in the way, if something was. `failure` is of the transaction; what the
// function threw is with the call.
std::optional<int> Database::State::run_once(Session& session, Call& call, std::optional<Error>& failure) {
  failure.reset();
  std::optional<int> obstacle;
  transactions.fetch_add(1, std::memory_order_relaxed);
  try {
    Transaction own(session);
    const bool returned = call.run(session);
    // The function may have caught the Error that told it so, or turned it into another one.
    obstacle = obstacle_of(session.given_up());
    if (!obstacle) obstacle = obstacle_of(thrown_error(call.error()));
    if (returned) own.commit();
  } catch (const Error& error) {
    failure = error;
    obstacle = obstacle_of(failure);
  } catch (const std::exception& error) {  // memory ran out
    failure.emplace(ErrorKind::io, error.what());
  }
  return obstacle;
}

void Database::State::refuse(Call& call, CallQueue::Push why) const {
  const char* text = why == CallQueue::Push::full ? ": too many calls are waiting" : ": it is stopped";
  call.finish(std::make_exception_ptr(Unavailable(options.name + text)));
}

Database::Database(Options options) : state_(std::make_unique<State>(std::move(options))) {
  state_->start();
}

Database::~Database() {
  stop();
}

void Database::migrate(std::string_view module, std::span<const Migration> migrations) {
  const auto run = [&](Session& session) {
    sql::migrate(session, module, migrations, state_->options.clock->now());
  };
  try {
    if (state_->options.driver->commits_schema()) {
      run(*state_->open(Role::migrator));
    } else {
      write_now(run);
    }
  } catch (const Unusable& error) {
    throw Unusable(state_->options.driver->place() + ": " + error.what());
  }
}

void Database::stop() {
  refuse_nested_wait();
  state_->stop();
}

Database::Stats Database::stats() const {
  return {
      state_->reads.waiting(), state_->writes.waiting(), state_->writes_run.load(std::memory_order_relaxed),
      state_->transactions.load(std::memory_order_relaxed), state_->repeats.load(std::memory_order_relaxed)};
}

const Options& Database::options() const {
  return state_->options;
}

void Database::submit_read(std::unique_ptr<Call> call) {
  const auto push = state_->reads.push(call);
  if (push != CallQueue::Push::taken) state_->refuse(*call, push);
}

void Database::submit_write(std::unique_ptr<Call> call) {
  const auto push = state_->writes.push(call);
  if (push != CallQueue::Push::taken) state_->refuse(*call, push);
}

void Database::refuse_nested_wait() const {
  if (t_inside == state_.get())
    throw Error(ErrorKind::misuse,
                "a function that the database runs must use its session, not wait for another function");
}

}  // namespace weir::sql

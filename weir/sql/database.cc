#include "weir/sql/database.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "weir/base/fault.h"
#include "weir/sql/call_queue.h"
#include "weir/sql/driver.h"
#include "weir/sql/sqlite.h"
#include "weir/sql/transaction.h"

namespace weir::sql {

namespace {

using detail::Call;
using detail::CallQueue;

// The Database whose thread this is.
thread_local const void* t_inside = nullptr;

std::unique_ptr<Session> open_session(const Options& options, bool writes) {
  return std::make_unique<Session>(
      detail::open_sqlite({options.path, writes, options.full_sync, options.busy_timeout}));
}

}  // namespace

struct Database::State {
  explicit State(Options o)
      : options(std::move(o)), reads(options.max_waiting), writes(options.max_waiting) {}

  void start();
  void stop();
  void read_loop(Session& session);
  void write_loop(Session& session);
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
  std::thread writer;
  std::atomic<std::uint64_t> writes_run{0}, transactions{0};
};

void Database::State::start() {
  if (options.readers < 1) throw Unusable("a database needs at least one reader");
  // All are opened before a thread starts, so that most failures need no clearing up. The writer is first: it
  // creates the file and turns its log on.
  auto write_session = open_session(options, true);
  std::vector<std::unique_ptr<Session>> read_sessions;
  read_sessions.reserve(static_cast<std::size_t>(options.readers));
  for (int i = 0; i < options.readers; ++i) read_sessions.push_back(open_session(options, false));
  readers.reserve(read_sessions.size());
  try {
    writer = thread("-write", std::move(write_session), &State::write_loop);
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
  if (writer.joinable()) writer.join();
}

void Database::State::read_loop(Session& session) {
  for (;;) {
    const auto calls = reads.take(1);
    if (calls.empty()) return;
    calls.front()->run(session);
    calls.front()->finish(nullptr);
  }
}

void Database::State::write_loop(Session& session) {
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
  for (const auto& call : calls.first(finished)) {
    // Each gets an exception of its own, text included (copies would share it), and nothing of it stays here:
    // it is thrown and dies in another thread.
    std::exception_ptr error;
    if (failure) error = std::make_exception_ptr(Error(failure->kind(), failure->what()));
    call->finish(std::move(error));
  }
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
  try {
    write_now(
        [&](Session& session) { sql::migrate(session, module, migrations, state_->options.clock->now()); });
  } catch (const Unusable& error) {
    throw Unusable(state_->options.path + ": " + error.what());
  }
}

void Database::stop() {
  refuse_nested_wait();
  state_->stop();
}

Database::Stats Database::stats() const {
  return {state_->reads.waiting(), state_->writes.waiting(),
          state_->writes_run.load(std::memory_order_relaxed),
          state_->transactions.load(std::memory_order_relaxed)};
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

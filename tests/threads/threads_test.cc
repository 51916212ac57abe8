// What the library does when the system gives it no more threads: whoever can't start one of his throws
// std::system_error, and has joined those that he had started.
//
// The pthread_create below stands before the C library's in this program alone, and refuses as that one does
// at the limit of a process or a container.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include "weir/base/blocking_pool.h"
#include "weir/http/access_log.h"
#include "weir/http/server.h"
#include "weir/queue/batch_consumer.h"
#include "weir/queue/embedded_queue.h"
#include "weir/queue/journal.h"
#include "weir/queue/producer.h"
#include "weir/queue/test_support.h"
#include "weir/scheduler/ticker.h"
#include "weir/sql/database.h"
#include "weir/testing/temp_dir.h"

namespace {

// Of how many threads that this one starts the last is refused; 0: none.
thread_local int t_refused_start = 0;
// Threads that were started and haven't come to their end.
std::atomic<int> g_running{0};

struct Start {
  void* (*function)(void*);
  void* argument;
};

void* run_counted(void* of) {
  const std::unique_ptr<Start> start(static_cast<Start*>(of));
  void* const result = start->function(start->argument);
  --g_running;
  return result;
}

}  // namespace

extern "C" {

using CreateThread = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) noexcept;

// The sanitizers' own, which must see every thread. Not there without them.
__attribute__((weak)) CreateThread __interceptor_pthread_create;

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
  static const auto create = __interceptor_pthread_create != nullptr
                                 ? &__interceptor_pthread_create
                                 : reinterpret_cast<CreateThread*>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (t_refused_start > 0 && --t_refused_start == 0) return EAGAIN;
  auto start = std::make_unique<Start>(Start{function, argument});
  ++g_running;
  const int error = create(thread, attributes, run_counted, start.get());
  if (error == 0)
    static_cast<void>(start.release());  // the thread's now
  else
    --g_running;
  return error;
}

}  // extern "C"

namespace weir {
namespace {

// Calls `start` until all of its threads can be started, refusing the first at first, then the second, and so
// on. How many it wanted.
template <class F>
int refuse_each_in_turn(F start) {
  const int before = g_running;
  for (int refused = 1;; ++refused) {
    t_refused_start = refused;
    try {
      start();
      EXPECT_EQ(t_refused_start, 1) << "a refused thread was no error";
      t_refused_start = 0;
      return refused - 1;
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::resource_unavailable_try_again) << error.what();
      EXPECT_EQ(g_running, before) << "after the refusal of thread " << refused;
    }
  }
}

TEST(RefusedThreadsConcurrency, OfABlockingPool) {
  EXPECT_EQ(refuse_each_in_turn([] { const BlockingPool pool("test", 3, 10); }), 3);
}

TEST(RefusedThreadsConcurrency, OfADatabaseWhichClosesItsFile) {
  const TempDir directory;
  const std::string path = directory / "store.db";
  const auto open = [&] {
    EXPECT_FALSE(std::filesystem::exists(path + "-wal")) << "a session of the last try is still open";
    const sql::Database store({.path = path, .readers = 3});
  };
  EXPECT_EQ(refuse_each_in_turn(open), 4);
}

TEST(RefusedThreadsConcurrency, OfAQueue) {
  const TempDir directory;
  EXPECT_EQ(refuse_each_in_turn([&] { queue::EmbeddedQueue queue({.path = directory / "queue.db"}); }), 4);
}

TEST(RefusedThreadsConcurrency, OfAProducerWhoseJournalKeepsTheEvents) {
  const TempDir directory;
  queue::EmbeddedQueue queue({.path = directory / "queue.db"});
  queue.create_topic("t");
  queue::Journal journal({.directory = directory / "", .size = queue::Journal::kMinSize});
  ASSERT_TRUE(journal.append({.topic = "t", .key = "article:42", .payload = "said before"}));
  const auto produce = [&] {
    queue::Producer producer(journal, queue, {});
    EXPECT_TRUE(producer.flush(std::chrono::seconds(20)));
  };
  EXPECT_EQ(refuse_each_in_turn(produce), 1);
  std::int64_t sent = 0;
  for (const std::int64_t end : queue.ends("t")) sent += end;
  EXPECT_EQ(sent, 1);
}

TEST(RefusedThreadsConcurrency, OfABatchConsumerWhichLeavesItsMessagesToAnother) {
  const TempDir directory;
  queue::EmbeddedQueue queue({.path = directory / "queue.db"});
  queue.create_topic("t");
  queue.publish(queue::Records(10));
  queue::Seen seen;
  const auto consume = [&, before = g_running.load()] {
    queue::BatchConsumer consumer(queue, {.topic = "t", .group = "g", .threads = 3}, std::ref(seen));
    try {
      consumer.start();
    } catch (...) {
      EXPECT_EQ(g_running, before) << "although the consumer lives on";
      throw;
    }
    EXPECT_TRUE(queue::eventually([&] { return seen.count() == 10; }));
  };
  EXPECT_EQ(refuse_each_in_turn(consume), 3);
}

TEST(RefusedThreadsConcurrency, OfATicker) {
  const auto tick = [] { scheduler::Ticker ticker("test", std::chrono::hours(1), [](std::stop_token) {}); };
  EXPECT_EQ(refuse_each_in_turn(tick), 1);
}

TEST(RefusedThreadsConcurrency, OfAnAccessLog) {
  EXPECT_EQ(refuse_each_in_turn([] { const http::AccessLog log(2); }), 1);
}

TEST(RefusedThreadsConcurrency, OfAServer) {
  const auto serve = [] {
    const auto nobody = [](std::string_view) { return std::optional<http::Principal>(); };
    http::ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.threads = 3;
    http::Server server(std::move(options), http::Router(), nobody);
    server.start();
  };
  EXPECT_EQ(refuse_each_in_turn(serve), 4);
}

}  // namespace
}  // namespace weir

// The whole way of a count, killed at random moments: journal, sender, queue, two consumers, inbox, counters.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "weir/base/random.h"
#include "weir/counter/counter.h"
#include "weir/queue/producer.h"
#include "weir/queue/test_support.h"
#include "weir/sql/store_fixture.h"
#include "weir/testing/temp_dir.h"

namespace weir::counter {
namespace {

using queue::Message;
using namespace std::chrono_literals;

constexpr std::size_t kKeys = 5;
constexpr Id kClient = 100;
constexpr sql::Migration kTables[] = {{1, "counts of two groups", R"(
CREATE TABLE first_counts (biz TEXT, biz_id INTEGER, n INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (biz, biz_id));
CREATE TABLE second_counts (biz TEXT, biz_id INTEGER, n INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (biz, biz_id));
)",
                                       R"(
CREATE TABLE first_counts (biz VARCHAR(32), biz_id BIGINT, n BIGINT NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (biz, biz_id));
CREATE TABLE second_counts (biz VARCHAR(32), biz_id BIGINT, n BIGINT NOT NULL, version BIGINT NOT NULL, PRIMARY KEY (biz, biz_id));
)"}};

// What the child tells the parent while it lives.
struct Told {
  std::array<std::atomic<std::int64_t>, kKeys> returned;  // events whose publish returned true
  std::atomic<std::int64_t> acked;                        // client events whose publish_acked returned true
};

// A whole house on one directory and store.
class House {
 public:
  House(const TempDir& dir, const sql::TestStore& test_store)
      : store_(test_store.at()),
        queue_({.path = dir / "queue.db", .partitions = 4}),
        journal_({.directory = dir / "", .size = 4 << 20, .lanes = 4}),
        producer_(journal_, queue_, {.linger = 1ms}) {
    store_.migrate("idempotency", idempotency::migrations());
    store_.migrate("test", kTables);
    first_.start();
    second_.start();
  }
  queue::Producer& producer() { return producer_; }

  bool settle() {
    return producer_.flush(20s) && queue::eventually([&] {
             return queue::total_lag(queue_, "t", "first") == 0 &&
                    queue::total_lag(queue_, "t", "second") == 0;
           });
  }
  std::map<Id, std::int64_t> counts(const std::string& table) {
    std::map<Id, std::int64_t> found;
    store_.read_now([&](sql::Session& session) {
      session.each(sql::Query{"test", "counts", "SELECT biz_id, n FROM " + table},
                   [&](const sql::Row& row) { found[row.get<Id>(0)] = row.get<std::int64_t>(1); });
    });
    return found;
  }

 private:
  queue::BatchConsumer::Options options(const std::string& group) {
    return {.topic = "t", .group = group, .max_batch = 300, .max_wait = 1ms, .retry_first = 1ms};
  }
  queue::BatchConsumer::Handler handler(const idempotency::Inbox& inbox, const Counter& counter) {
    return [&](std::span<const Message> batch) { count_batch(store_, inbox, counter, batch); };
  }

  sql::Database store_;
  queue::EmbeddedQueue queue_;
  queue::Journal journal_;
  queue::Producer producer_;
  idempotency::Inbox first_inbox_{{.consumer = "first"}}, second_inbox_{{.consumer = "second"}};
  Counter first_counter_{{.table = "first_counts", .column = "n"}};
  Counter second_counter_{{.table = "second_counts", .column = "n"}};
  queue::BatchConsumer first_{queue_, options("first"), handler(first_inbox_, first_counter_)};
  queue::BatchConsumer second_{queue_, options("second"), handler(second_inbox_, second_counter_)};
};

// Client events are numbered; each is published twice, as a client does that lost the answer.
boost::asio::awaitable<void> publish_acked(queue::Producer& producer, Told& told) {
  for (;;) {
    const std::string id = std::to_string(told.acked + 1);
    bool taken = co_await producer.publish_acked({"t", "client:100", "", id});
    taken = co_await producer.publish_acked({"t", "client:100", "", id}) || taken;
    if (taken) told.acked.fetch_add(1);
  }
}

[[noreturn]] void live(const TempDir& dir, const sql::TestStore& test_store, Told& told) {
  House house(dir, test_store);
  boost::asio::io_context io;
  boost::asio::co_spawn(io, publish_acked(house.producer(), told), boost::asio::detached);
  std::thread other([&] { io.run(); });
  for (std::size_t i = 0;; ++i) {
    const std::string key = "article:" + std::to_string(i % kKeys + 1);
    if (house.producer().publish({"t", key, ""})) told.returned[i % kKeys].fetch_add(1);
    if (i % 64 == 0) std::this_thread::sleep_for(100us);
  }
}

class CountCrash : public sql::OnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, CountCrash, sql::each_store(), sql::name_of_store);

TEST_P(CountCrash, EachEventThatWasTakenCountsExactlyOnceThroughKills) {
  const std::uint64_t seed = secure_random64();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  void* shared = ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& told = *new (shared) Told{};
  TempDir dir;
  constexpr int kKills = 15;
  for (int kill = 0; kill < kKills; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) live(dir, *test_store, told);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random.below(200)));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }
  {
    House house(dir, *test_store);
    ASSERT_TRUE(house.settle());
    for (const char* table : {"first_counts", "second_counts"}) {
      auto counts = house.counts(table);
      // The last append of a life may have been taken without the child living to tell.
      std::int64_t untold = 0;
      for (std::size_t i = 0; i < kKeys; ++i) {
        const std::int64_t counted = counts[static_cast<Id>(i + 1)];
        EXPECT_GE(counted, told.returned[i]) << table << " article:" << i + 1;
        untold += counted - told.returned[i];
      }
      EXPECT_LE(untold, kKills) << table;
      // A client's event that was taken so is published again by the next life, and counts once.
      const std::int64_t untold_client_events = counts[kClient] - told.acked;
      EXPECT_GE(untold_client_events, 0) << table;
      EXPECT_LE(untold_client_events, 1) << table;
    }
    EXPECT_EQ(house.counts("first_counts"), house.counts("second_counts"));
    std::printf("%lld reads and %lld client events\n", static_cast<long long>(told.returned[0] * kKeys),
                static_cast<long long>(told.acked));
    EXPECT_GT(told.acked, 0);
    EXPECT_GT(told.returned[0], 100);
  }
  ::munmap(shared, sizeof(Told));
}

}  // namespace
}  // namespace weir::counter

// Counting read events: the whole pipeline (journal, sender, embedded queue, consumer with its inbox,
// counters) against the same counts written by bare sqlite3, one transaction an event, at the same
// durability.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/rows.h"
#include "weir/base/random.h"
#include "weir/counter/counter.h"
#include "weir/queue/embedded_queue.h"
#include "weir/queue/producer.h"

namespace weir::bench {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;
using Tally = std::map<Id, std::int64_t>;

constexpr std::size_t kEvents = 100'000;
constexpr std::size_t kArticles = 10'000;
constexpr auto kPeerAtMost = 60s;
const char* const kPeer = "sqlite3, a transaction an event";
const char* const kTable =
    "CREATE TABLE interactions (biz TEXT NOT NULL, biz_id INTEGER NOT NULL, read_count INTEGER NOT NULL "
    "DEFAULT 0, "
    "version INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (biz, biz_id)) WITHOUT ROWID";
const char* const kOne =
    "INSERT INTO interactions (biz, biz_id, read_count) VALUES (?, ?, 1) ON CONFLICT (biz, biz_id) "
    "DO UPDATE SET read_count = read_count + 1, version = version + 1";

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Article ids as readers choose them: Zipf with exponent 1.
std::vector<Id> zipf(std::size_t count) {
  std::vector<double> upto;
  double sum = 0;
  for (std::size_t rank = 1; rank <= kArticles; ++rank)
    upto.push_back(sum += 1.0 / static_cast<double>(rank));
  Random random(1);
  std::vector<Id> ids;
  for (std::size_t i = 0; i < count; ++i) {
    const auto found = std::lower_bound(upto.begin(), upto.end(), random.unit() * sum);
    ids.push_back(1 + found - upto.begin());
  }
  return ids;
}

Tally tally_of(std::span<const Id> ids) {
  Tally tally;
  for (const Id id : ids) ++tally[id];
  return tally;
}

class WorkDir {
 public:
  explicit WorkDir(const std::string& name) : path_(std::filesystem::current_path() / ("counting-" + name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~WorkDir() { std::filesystem::remove_all(path_); }
  WorkDir(const WorkDir&) = delete;
  WorkDir& operator=(const WorkDir&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void check(int result) {
  if (result != SQLITE_OK) throw std::runtime_error(sqlite3_errstr(result));
}

struct Measured {
  double rate = 0;    // events a second, from the first to the last commit
  double cpu_us = 0;  // of the whole process, an event
  bool right = false;
};

// One transaction an event.
Measured peer(std::span<const Id> ids, bool full_sync) {
  const WorkDir dir("peer");
  sqlite3* db = nullptr;
  check(sqlite3_open((dir / "peer.db").c_str(), &db));
  check(sqlite3_exec(db, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr));
  check(sqlite3_exec(db, full_sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", nullptr,
                     nullptr, nullptr));
  check(sqlite3_exec(db, kTable, nullptr, nullptr, nullptr));
  sqlite3_stmt* one = nullptr;
  check(sqlite3_prepare_v2(db, kOne, -1, &one, nullptr));
  const double cpu_before = cpu_seconds();
  const auto begin = SteadyClock::now();
  std::size_t done = 0;
  for (; done < ids.size() && (done % 100 != 0 || SteadyClock::now() - begin < kPeerAtMost); ++done) {
    sqlite3_bind_text(one, 1, "article", -1, SQLITE_STATIC);
    sqlite3_bind_int64(one, 2, ids[done]);
    if (sqlite3_step(one) != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(db));
    sqlite3_reset(one);
  }
  Measured measured;
  measured.rate = static_cast<double>(done) / seconds_since(begin);
  measured.cpu_us = (cpu_seconds() - cpu_before) * 1e6 / static_cast<double>(done);
  sqlite3_finalize(one);
  Tally counted;
  check(sqlite3_prepare_v2(db, "SELECT biz_id, read_count FROM interactions", -1, &one, nullptr));
  while (sqlite3_step(one) == SQLITE_ROW)
    counted[sqlite3_column_int64(one, 0)] = sqlite3_column_int64(one, 1);
  sqlite3_finalize(one);
  sqlite3_close(db);
  measured.right = counted == tally_of(ids.first(done));
  return measured;
}

constexpr sql::Migration kTables[] = {
    {1, "interactions",
     "CREATE TABLE interactions (biz TEXT NOT NULL, biz_id INTEGER NOT NULL, read_count INTEGER NOT NULL "
     "DEFAULT 0, "
     "version INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (biz, biz_id)) WITHOUT ROWID;"
     "CREATE TABLE seen_again (biz TEXT NOT NULL, biz_id INTEGER NOT NULL, read_count INTEGER NOT NULL "
     "DEFAULT 0, "
     "version INTEGER NOT NULL DEFAULT 1, PRIMARY KEY (biz, biz_id)) WITHOUT ROWID"}};

// The pipeline with one group, or with two.
Measured ours(std::span<const Id> ids, queue::Acks acks, int groups) {
  const WorkDir dir("ours");
  const bool full_sync = acks == queue::Acks::all;
  sql::Database store({.path = dir / "weir.db", .full_sync = full_sync});
  store.migrate("idempotency", idempotency::migrations());
  store.migrate("bench", kTables);
  queue::EmbeddedQueue embedded({.path = dir / "queue.db", .full_sync = full_sync});
  queue::Journal journal({.directory = dir / ""});
  queue::Producer producer(journal, embedded, {.acks = acks});
  const idempotency::Inbox inboxes[] = {idempotency::Inbox({.consumer = "interaction"}),
                                        idempotency::Inbox({.consumer = "history"})};
  const counter::Counter counters[] = {counter::Counter({.table = "interactions"}),
                                       counter::Counter({.table = "seen_again"})};
  std::vector<std::unique_ptr<queue::BatchConsumer>> consumers;
  for (int i = 0; i < groups; ++i)
    consumers.push_back(std::make_unique<queue::BatchConsumer>(
        embedded, queue::BatchConsumer::Options{.topic = "read_events", .group = inboxes[i].consumer()},
        [&, i](std::span<const queue::Message> batch) {
          counter::count_batch(store, inboxes[i], counters[i], batch);
        }));
  for (auto& consumer : consumers) consumer->start();
  std::vector<std::string> keys;
  for (const Id id : ids) keys.push_back(counter::format_subject("article", id));

  const double cpu_before = cpu_seconds();
  const auto begin = SteadyClock::now();
  for (const std::string& key : keys)
    while (!producer.publish({"read_events", key, "12345678"})) std::this_thread::sleep_for(1ms);
  producer.flush(60s);
  const auto lag = [&] {
    std::int64_t sum = 0;
    for (const auto& one : embedded.lag()) sum += one.lag;
    return sum;
  };
  while (lag() > 0) std::this_thread::sleep_for(1ms);
  Measured measured;
  measured.rate = static_cast<double>(ids.size()) / seconds_since(begin);
  measured.cpu_us = (cpu_seconds() - cpu_before) * 1e6 / static_cast<double>(ids.size());
  measured.right = true;
  for (int i = 0; i < groups; ++i) {
    Tally counted;
    store.read_now([&](sql::Session& session) {
      session.each(sql::Query{"bench", "counts",
                              i == 0 ? "SELECT biz_id, read_count FROM interactions"
                                     : "SELECT biz_id, read_count FROM seen_again"},
                   [&](const sql::Row& row) { counted[row.get<Id>(0)] = row.get<std::int64_t>(1); });
    });
    measured.right = measured.right && counted == tally_of(ids);
  }
  return measured;
}

Row compare(const std::string& name, const Measured& mine, const Measured& theirs, double bar) {
  const double ratio = mine.rate / theirs.rate;
  return {name,        "events/s", mine.rate, kPeer,
          theirs.rate, ratio,      bar,       ratio >= bar && mine.right && theirs.right};
}

double thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Processor time of an append, while a sender keeps up, and of a write(2) of as many bytes.
Row appending() {
  constexpr int kRounds = 100, kAppends = 10'000;
  const WorkDir dir("append");
  queue::Journal journal({.directory = dir / ""});
  std::vector<queue::Record> records;
  const int file = ::open((dir / "plain").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  double append_ns = 0, write_ns = 0;
  bool ok = file >= 0;
  for (int round = 0; round < kRounds; ++round) {
    double begin = thread_cpu_ns();
    for (int i = 0; i < kAppends; ++i)
      ok = journal.append({"read_events", "article:4242", "12345678"}).has_value() && ok;
    append_ns += thread_cpu_ns() - begin;
    const std::string record(journal.waiting_bytes() / kAppends, 'x');
    journal.read(records, kAppends, std::size_t{64} << 20);
    journal.release();
    begin = thread_cpu_ns();
    for (int i = 0; i < kAppends; ++i)
      ok = ::write(file, record.data(), record.size()) == static_cast<ssize_t>(record.size()) && ok;
    write_ns += thread_cpu_ns() - begin;
  }
  ::close(file);
  constexpr double kAll = double{kRounds} * kAppends;
  return {"processor time of an append to the journal",
          "ns",
          append_ns / kAll,
          "write(2)",
          write_ns / kAll,
          write_ns / append_ns,
          std::nullopt,
          ok};
}

std::vector<Row> measure() {
  const auto ids = zipf(kEvents);
  const Measured on_disk = peer(ids, true), committed = peer(ids, false);
  std::vector<Row> rows;
  rows.push_back(compare("counting 100,000 reads, acks = all", ours(ids, queue::Acks::all, 1), on_disk, 20));
  rows.push_back(
      compare("counting 100,000 reads, acks = 1", ours(ids, queue::Acks::leader, 1), committed, 5));
  const Measured much = ours(zipf(1'000'000), queue::Acks::leader, 2);
  rows.push_back({"processor time of a counted read, two groups, acks = 1", "us", much.cpu_us, kPeer,
                  committed.cpu_us, committed.cpu_us / much.cpu_us, std::nullopt, much.right});
  rows.push_back(appending());
  return rows;
}

}  // namespace
}  // namespace weir::bench

int main() {
  weir::bench::print(weir::bench::measure());
}

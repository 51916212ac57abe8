#include "weir/queue/embedded_queue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/queue/embedded_subscription.h"
#include "weir/queue/partition.h"
#include "weir/queue/record_batch.h"
#include "weir/queue/topic_metrics.h"
#include "weir/telemetry/log.h"

namespace weir::queue {
namespace {

constexpr std::array kMigrations{sql::Migration{1, "topics, batches and offsets", R"(
CREATE TABLE queue_topics (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE queue_partitions (
  topic INTEGER NOT NULL,
  number INTEGER NOT NULL,
  next_offset INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (topic, number)
) WITHOUT ROWID;
CREATE TABLE queue_batches (
  id INTEGER PRIMARY KEY,
  topic INTEGER NOT NULL,
  partition INTEGER NOT NULL,
  last_offset INTEGER NOT NULL,
  count INTEGER NOT NULL,
  written_at INTEGER NOT NULL,
  records BLOB NOT NULL
);
CREATE UNIQUE INDEX queue_batches_position ON queue_batches (topic, partition, last_offset);
CREATE TABLE queue_offsets (
  topic INTEGER NOT NULL,
  consumer_group TEXT NOT NULL,
  partition INTEGER NOT NULL,
  next_offset INTEGER NOT NULL,
  PRIMARY KEY (topic, consumer_group, partition)
) WITHOUT ROWID;
)"}};

const sql::Query kAddTopic{"queue", "add_topic",
                           "INSERT INTO queue_topics (name) VALUES (?) ON CONFLICT DO NOTHING"};
const sql::Query kFindTopic{"queue", "find_topic", "SELECT id FROM queue_topics WHERE name = ?"};
const sql::Query kTopics{"queue", "topics", "SELECT name FROM queue_topics ORDER BY name"};
const sql::Query kAddPartition{
    "queue", "add_partition",
    "INSERT INTO queue_partitions (topic, number) VALUES (?, ?) ON CONFLICT DO NOTHING"};
const sql::Query kEnds{"queue", "ends",
                       "SELECT next_offset FROM queue_partitions WHERE topic = ? ORDER BY number"};
const sql::Query kAllEnds{"queue", "all_ends",
                          "SELECT t.name, p.number, p.next_offset FROM queue_partitions p "
                          "JOIN queue_topics t ON t.id = p.topic"};
const sql::Query kTakeOffsets{"queue", "take_offsets",
                              "UPDATE queue_partitions SET next_offset = next_offset + ? "
                              "WHERE topic = ? AND number = ? RETURNING next_offset"};
const sql::Query kAddBatch{
    "queue", "add_batch",
    "INSERT INTO queue_batches (topic, partition, last_offset, count, written_at, records) "
    "VALUES (?, ?, ?, ?, ?, ?)"};
const sql::Query kFetch{
    "queue", "fetch",
    "SELECT last_offset, count, records FROM queue_batches "
    "WHERE topic = ? AND partition = ? AND last_offset >= ? ORDER BY last_offset LIMIT ?"};
const sql::Query kSubscribeEarliest{
    "queue", "subscribe",
    "INSERT INTO queue_offsets (topic, consumer_group, partition, next_offset) "
    "SELECT p.topic, ?, p.number, coalesce((SELECT b.last_offset - b.count + 1 FROM queue_batches b "
    "WHERE b.topic = p.topic AND b.partition = p.number ORDER BY b.last_offset LIMIT 1), p.next_offset) "
    "FROM queue_partitions p WHERE p.topic = ? ON CONFLICT DO NOTHING"};
const sql::Query kSubscribeLatest{
    "queue", "subscribe",
    "INSERT INTO queue_offsets (topic, consumer_group, partition, next_offset) "
    "SELECT topic, ?, number, next_offset FROM queue_partitions WHERE topic = ? "
    "ON CONFLICT DO NOTHING"};
const sql::Query kCommitted{"queue", "committed",
                            "SELECT next_offset FROM queue_offsets WHERE topic = ? AND consumer_group = ? "
                            "ORDER BY partition"};
const sql::Query kCommit{"queue", "commit",
                         "UPDATE queue_offsets SET next_offset = max(next_offset, ?) "
                         "WHERE topic = ? AND consumer_group = ? AND partition = ?"};
const sql::Query kLag{"queue", "lag",
                      "SELECT t.name, o.consumer_group, o.partition, p.next_offset - o.next_offset "
                      "FROM queue_offsets o JOIN queue_topics t ON t.id = o.topic "
                      "JOIN queue_partitions p ON p.topic = o.topic AND p.number = o.partition "
                      "ORDER BY t.name, o.consumer_group, o.partition"};
// The oldest rows only: were the clock set back for a while, the younger ones wait until it is their time.
const sql::Query kPrune{
    "queue", "prune",
    "DELETE FROM queue_batches WHERE id IN (SELECT id FROM queue_batches ORDER BY id LIMIT ?) "
    "AND written_at < ?"};

}  // namespace

struct EmbeddedQueue::Topic {
  struct Group {
    std::vector<std::int64_t> committed;
    std::vector<telemetry::Gauge> lag;
  };

  explicit Topic(std::string topic_name)
      : name(std::move(topic_name)),
        published(topic_metrics::published(name)),
        dropped(topic_metrics::dropped(name)) {}

  const std::string name;
  std::int64_t id = 0;
  std::uint32_t partitions = 0;
  std::vector<std::int64_t> ends;  // guarded by State::mutex, as is:
  std::map<std::string, Group> groups;
  telemetry::Counter published;
  telemetry::Counter dropped;  // made here so that it is there at 0
};

struct EmbeddedQueue::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t news = 0;
  bool stopping = false;
  std::map<std::string, std::shared_ptr<Topic>, std::less<>> topics;

  void show_lag() const {
    const std::lock_guard lock(mutex);
    for (const auto& [name, topic] : topics)
      for (auto& [group_name, group] : topic->groups)
        for (std::size_t partition = 0; partition < group.committed.size(); ++partition)
          group.lag[partition].set(static_cast<double>(topic->ends[partition] - group.committed[partition]));
  }
};

EmbeddedQueue::EmbeddedQueue(Options options)
    : options_(std::move(options)),
      state_(std::make_unique<State>()),
      database_({.path = options_.path,
                 .readers = kReaders,
                 .full_sync = options_.full_sync,
                 .name = "queue",
                 .clock = options_.clock}) {
  database_.migrate("queue", kMigrations);
  for (const auto& name : topics()) create_topic(name);
  lag_hook_ = telemetry::on_scrape([state = state_.get()] { state->show_lag(); });
  housekeeper_ = std::thread([this] { keep_house(); });
}

EmbeddedQueue::~EmbeddedQueue() {
  stop();
}

void EmbeddedQueue::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  wake();
  if (housekeeper_.joinable()) housekeeper_.join();
  database_.stop();
}

// --- Topics ------------------------------------------------------------------------------------------------

void EmbeddedQueue::create_topic(const std::string& name) {
  topic(name);
}

std::shared_ptr<EmbeddedQueue::Topic> EmbeddedQueue::topic(std::string_view name) {
  {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->topics.find(name);
    if (found != state_->topics.end()) return found->second;
  }
  auto fresh = std::make_shared<Topic>(std::string(name));
  database_.write_now([&](sql::Session& session) {
    session.execute(kAddTopic, fresh->name);
    fresh->id = session.one(kFindTopic, sql::first<std::int64_t>, fresh->name).value();
    for (std::uint32_t number = 0; number < options_.partitions; ++number)
      session.execute(kAddPartition, fresh->id, number);
    fresh->ends = session.all(kEnds, sql::first<std::int64_t>, fresh->id);
    fresh->partitions = static_cast<std::uint32_t>(fresh->ends.size());
  });
  const std::lock_guard lock(state_->mutex);
  return state_->topics.emplace(fresh->name, fresh).first->second;
}

std::vector<std::string> EmbeddedQueue::topics() {
  return database_.read_now(
      [](sql::Session& session) { return session.all(kTopics, sql::first<std::string>); });
}

std::uint32_t EmbeddedQueue::partitions(const std::string& name) {
  return topic(name)->partitions;
}

std::vector<std::int64_t> EmbeddedQueue::ends(const std::string& name) {
  const auto of = topic(name);
  const std::lock_guard lock(state_->mutex);
  return of->ends;
}

// --- Publishing --------------------------------------------------------------------------------------------

namespace {

// What one publish adds to one topic.
template <class Topic>
struct Outgoing {
  std::shared_ptr<Topic> topic;
  std::vector<BatchWriter> partitions;
  std::vector<std::int64_t> ends;
  std::int64_t count = 0;
};

}  // namespace

void EmbeddedQueue::publish(std::span<const Record> records) {
  std::vector<Outgoing<Topic>> all;
  Outgoing<Topic>* of = nullptr;
  for (const Record& record : records) {
    if (of == nullptr || of->topic->name != record.topic) {
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const auto& some) { return some.topic->name == record.topic; });
      if (found != all.end()) {
        of = &*found;
      } else {
        auto known = topic(record.topic);
        const auto partitions = known->partitions;
        of = &all.emplace_back(Outgoing<Topic>{std::move(known), std::vector<BatchWriter>(partitions),
                                               std::vector<std::int64_t>(partitions), 0});
      }
    }
    of->partitions[partition_of(record.key, of->topic->partitions)].add(record);
    ++of->count;
  }
  const WallTime now = options_.clock->now();
  database_.write_now([&](sql::Session& session) {
    for (auto& outgoing : all) {
      for (std::uint32_t number = 0; number < outgoing.partitions.size(); ++number) {
        BatchWriter& batch = outgoing.partitions[number];
        if (batch.count() == 0) continue;
        outgoing.ends[number] =
            session.one(kTakeOffsets, sql::first<std::int64_t>, batch.count(), outgoing.topic->id, number)
                .value();
        session.execute(kAddBatch, outgoing.topic->id, number, outgoing.ends[number] - 1, batch.count(), now,
                        batch.finish());
      }
    }
  });
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& outgoing : all) {
      auto& ends = outgoing.topic->ends;
      for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = std::max(ends[i], outgoing.ends[i]);
    }
  }
  for (auto& outgoing : all) outgoing.topic->published.add(static_cast<double>(outgoing.count));
  wake();
}

// --- Groups ------------------------------------------------------------------------------------------------

void EmbeddedQueue::subscribe(const std::string& name, const std::string& group, From from) {
  const auto of = topic(name);
  Topic::Group fresh;
  fresh.committed = database_.write_now([&](sql::Session& session) {
    session.execute(from == From::earliest ? kSubscribeEarliest : kSubscribeLatest, group, of->id);
    return session.all(kCommitted, sql::first<std::int64_t>, of->id, group);
  });
  for (std::size_t partition = 0; partition < fresh.committed.size(); ++partition)
    fresh.lag.push_back(topic_metrics::lag(name, group, static_cast<std::uint32_t>(partition)));
  const std::lock_guard lock(state_->mutex);
  of->groups.insert_or_assign(group, std::move(fresh));
}

std::unique_ptr<Subscription> EmbeddedQueue::join(const std::string& name, const std::string& group,
                                                  Share share) {
  return std::make_unique<detail::EmbeddedSubscription>(*this, name, group, share);
}

std::vector<std::int64_t> EmbeddedQueue::committed(const std::string& name, const std::string& group) {
  const auto of = topic(name);
  return database_.read_now([&](sql::Session& session) {
    return session.all(kCommitted, sql::first<std::int64_t>, of->id, group);
  });
}

void EmbeddedQueue::commit(const std::string& name, const std::string& group,
                           std::span<const Offset> offsets) {
  const auto of = topic(name);
  database_.write_now([&](sql::Session& session) {
    for (const Offset& offset : offsets)
      session.execute(kCommit, offset.next, of->id, group, offset.partition);
  });
  const std::lock_guard lock(state_->mutex);
  const auto found = of->groups.find(group);
  if (found == of->groups.end()) return;
  for (const Offset& offset : offsets) {
    auto& committed = found->second.committed[offset.partition];
    committed = std::max(committed, offset.next);
  }
}

std::vector<StoredBatch> EmbeddedQueue::fetch(const std::string& name, std::uint32_t partition,
                                              std::int64_t offset, int max_batches) {
  const auto of = topic(name);
  return database_.read_now([&](sql::Session& session) {
    return session.all(
        kFetch,
        [](const sql::Row& row) {
          const auto count = row.get<std::int64_t>(1);
          return StoredBatch{row.get<std::int64_t>(0) - count + 1, count, row.get<sql::Blob>(2)};
        },
        of->id, partition, offset, max_batches);
  });
}

std::vector<Lag> EmbeddedQueue::lag() {
  return database_.read_now([](sql::Session& session) {
    return session.all(kLag, [](const sql::Row& row) {
      return Lag{row.get<std::string>(0), row.get<std::string>(1), row.get<std::uint32_t>(2),
                 row.get<std::int64_t>(3)};
    });
  });
}

// --- News and housekeeping ---------------------------------------------------------------------------------

std::uint64_t EmbeddedQueue::news() const {
  const std::lock_guard lock(state_->mutex);
  return state_->news;
}

bool EmbeddedQueue::wait_for_news(std::uint64_t seen, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_until(lock, until, [&] { return state_->news != seen || state_->stopping; });
  return !state_->stopping;
}

void EmbeddedQueue::wake() {
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->news;
  }
  state_->changed.notify_all();
}

// Looks for what other processes have published.
void EmbeddedQueue::refresh_ends() {
  bool grown = false;
  database_.read_now([&](sql::Session& session) {
    session.each(kAllEnds, [&](const sql::Row& row) {
      const std::lock_guard lock(state_->mutex);
      const auto found = state_->topics.find(row.get<std::string_view>(0));
      const auto number = row.get<std::uint32_t>(1);
      if (found == state_->topics.end() || number >= found->second->ends.size()) return;
      auto& end = found->second->ends[number];
      const auto now = row.get<std::int64_t>(2);
      grown = grown || now > end;
      end = std::max(end, now);
    });
  });
  if (grown) wake();
}

bool EmbeddedQueue::prune_step() {
  const WallTime oldest = options_.clock->now() - options_.retention;
  const auto deleted = database_.write_now(
      [&](sql::Session& session) { return session.execute(kPrune, kPruneRows, oldest).rows; });
  return deleted == kPruneRows;
}

void EmbeddedQueue::keep_house() {
  const auto pause = [this](std::chrono::milliseconds time) {
    std::unique_lock lock(state_->mutex);
    return !state_->changed.wait_for(lock, time, [this] { return state_->stopping; });
  };
  auto next_prune = std::chrono::steady_clock::now() + options_.prune_every;
  while (pause(kForeignLook)) {
    try {
      refresh_ends();
      if (std::chrono::steady_clock::now() < next_prune) continue;
      while (prune_step())
        if (!pause(kPrunePause)) return;
      next_prune = std::chrono::steady_clock::now() + options_.prune_every;
    } catch (const std::exception& error) {
      telemetry::swallowed("queue.housekeeping", error);
    }
  }
}

}  // namespace weir::queue

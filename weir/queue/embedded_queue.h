// EmbeddedQueue: a durable queue of topics, partitions and consumer groups in a SQLite file of its own.
//
// It keeps record batches, not a row an event: a publish writes one blob for each partition that it touches.
// A partition's offsets are dense and only grow; a group has one committed offset for each partition. What is
// older than the retention is deleted in small steps, consumed or not, by a thread of the queue.
//
// Errors are sql::Error (an Unavailable).
// Metrics: weir_queue_published_total{topic}, weir_queue_lag{topic,group,partition},
// weir_queue_damaged_total{where="queue"}.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/clock.h"
#include "weir/queue/event.h"
#include "weir/queue/queue.h"
#include "weir/sql/database.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue {

// The stored records of some consecutive offsets of one partition.
struct StoredBatch {
  std::int64_t first_offset = 0;
  std::int64_t count = 0;
  sql::Blob records;
};

class EmbeddedQueue final : public Queue {
 public:
  struct Options {
    std::string path;
    std::uint32_t partitions = 8;  // of topics that are created; an existing topic may grow, never shrink
    bool full_sync = false;        // a publish is on the disk when it returns (acks = all)
    std::chrono::seconds retention = std::chrono::hours(72);
    std::chrono::milliseconds prune_every{60'000};
    const Clock* clock = &Clock::system();
  };
  // Rows that one step of pruning deletes at most, so that it never holds the writer up, and the pause
  // between steps: up to 3,200 rows a second, eight times what a busy producer writes.
  static constexpr int kPruneRows = 64;
  static constexpr std::chrono::milliseconds kPrunePause{20};
  // How often what other processes (the commands) have published is looked for.
  static constexpr std::chrono::milliseconds kForeignLook{1000};

  // Throws Unusable for a file that is no database, or is from the future, and std::system_error when the
  // system refuses one of the threads.
  explicit EmbeddedQueue(Options options);
  ~EmbeddedQueue() override;

  void create_topic(const std::string& topic) override;
  std::vector<std::string> topics() override;
  std::uint32_t partitions(const std::string& topic) override;
  // In one transaction: all or none.
  void publish(std::span<const Record> records) override;
  void subscribe(const std::string& topic, const std::string& group, From from = From::earliest) override;
  std::unique_ptr<Subscription> join(const std::string& topic, const std::string& group,
                                     Share share = {}) override;
  std::vector<Lag> lag() override;
  bool available() const noexcept override { return true; }  // a failing disk shows in what is published
  void stop() override;

  // The offset that the group reads next, by partition.
  std::vector<std::int64_t> committed(const std::string& topic, const std::string& group);
  // Moves the group on; offsets only grow, a commit that comes late changes nothing.
  struct Offset {
    std::uint32_t partition;
    std::int64_t next;
  };
  void commit(const std::string& topic, const std::string& group, std::span<const Offset> offsets);
  // The offset that the next event will get, by partition, as far as this process knows. No SQL.
  std::vector<std::int64_t> ends(const std::string& topic);
  // The batches that hold `offset` and what follows, at most `max_batches`, in order. When the retention has
  // taken the offset, it begins later.
  std::vector<StoredBatch> fetch(const std::string& topic, std::uint32_t partition, std::int64_t offset,
                                 int max_batches);

  // Deletes at most kPruneRows batches that are past the retention; true when there may be more.
  bool prune_step();

  // News: a number that changes with each publish of this process, and with those of others within
  // kForeignLook.
  std::uint64_t news() const;
  // Waits until news() is no longer `seen`, `wake` is called or the time is over. False when the queue was
  // stopped.
  bool wait_for_news(std::uint64_t seen, std::chrono::steady_clock::time_point until);
  void wake();

 private:
  struct Topic;
  struct State;
  static constexpr int kReaders = 2;

  std::shared_ptr<Topic> topic(std::string_view name);
  void refresh_ends();
  void keep_house();

  const Options options_;
  const std::unique_ptr<State> state_;
  sql::Database database_;
  telemetry::ScrapeHook lag_hook_;
  std::thread housekeeper_;
};

}  // namespace weir::queue

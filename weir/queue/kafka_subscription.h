// A member of a consumer group of Kafka: a detail of KafkaQueue.
//
// Partitions come and go inside take() and keep(), which serve librdkafka's callbacks: never while a handler runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "weir/queue/kafka_client.h"
#include "weir/queue/queue.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue::detail {

class KafkaSubscription;

// The members that a queue has, so that it can end their waiting. Outlives them.
class KafkaMembers {
 public:
  void add(KafkaSubscription& member);
  void remove(KafkaSubscription& member);
  void stop();

 private:
  std::mutex mutex_;
  bool stopped_ = false;
  std::set<KafkaSubscription*> members_;
};

class KafkaSubscription final : public Subscription {
 public:
  struct Options {
    std::string bootstrap, client_id, topic, group;
    std::chrono::milliseconds max_poll{60'000};  // from take() or keep() to the next, else the member is out
  };
  // How long a take() waits for a first message before it says that there was none.
  static constexpr std::chrono::milliseconds kIdle{1'000};
  // After that long without a sign of life a member's partitions go to the others.
  static constexpr std::chrono::milliseconds kSession{9'000};
  // How long the destructor waits for the broker to let the member go; its session ends by itself then.
  static constexpr std::chrono::milliseconds kLeave{3'000};

  KafkaSubscription(Options options, KafkaMembers& members);
  ~KafkaSubscription() override;

  bool take(std::vector<Message>& messages, const Limits& limits) override;
  void commit() override;
  bool keep() noexcept override;
  void rewind() override;
  void interrupt() noexcept override;

  // Like interrupt(), and take() says that the queue was stopped.
  void stop() noexcept;

 private:
  using Received = std::unique_ptr<rd_kafka_message_t, KafkaDeleter<rd_kafka_message_destroy>>;
  static constexpr std::int64_t kUnknown = -1;

  // One of the partitions that are ours. Offsets are unknown until its first message has come.
  struct Part {
    std::int64_t committed = kUnknown;  // what Kafka has
    std::int64_t done = kUnknown;  // what commit() was called for: more than `committed` if Kafka refused it
    std::int64_t next = kUnknown;  // behind what was taken
    bool seek = false;             // to `done`, before anything more is taken
  };
  using Parts = std::map<std::int32_t, Part>;

  // What librdkafka's callbacks are given.
  struct Link {
    KafkaSubscription* self;
    std::atomic<bool> assigned{false};  // has got an assignment, be it an empty one
    std::atomic<bool> fragile{false};   // has joined the group, and not got one yet
  };

  static KafkaHandle make_client(const Options& options, Link& link);
  static void on_log(const rd_kafka_t* client, int level, const char* facility, const char* text);
  static void on_rebalance(rd_kafka_t* client, rd_kafka_resp_err_t what,
                           rd_kafka_topic_partition_list_t* partitions, void* link);
  void serve_while(auto condition);
  void assign(rd_kafka_topic_partition_list_t* partitions);
  void revoke(rd_kafka_topic_partition_list_t* partitions);
  void commit_done(const rd_kafka_topic_partition_list_t* partitions);
  void set_paused(bool paused);
  void seek();
  Received receive(std::chrono::milliseconds at_most);
  void gather(std::vector<Message>& messages, const Limits& limits);
  bool accept(Received received, std::vector<Message>& messages);
  Message message_of(rd_kafka_message_t& received);
  void read_headers(rd_kafka_message_t& received, Message& message);
  KafkaPartitions list_of(const Parts& parts) const;
  rd_kafka_resp_err_t commit_to_kafka(rd_kafka_topic_partition_list_t* offsets);

  const Options options_;
  KafkaMembers& members_;
  telemetry::Counter damaged_;
  std::atomic<bool> interrupted_{false}, stopped_{false};
  std::unique_ptr<Link> link_;
  KafkaHandle client_;
  KafkaEvents events_;  // the client's own, to wake who waits for it
  Parts parts_;
  std::vector<Received> held_;              // what the messages taken last look at
  std::deque<Received> ahead_;              // came while nothing was taken
  std::vector<Message>* taking_ = nullptr;  // what take() has so far
  std::string trouble_;                     // why nothing can be read
  bool paused_ = false, lost_ = false;
};

}  // namespace weir::queue::detail

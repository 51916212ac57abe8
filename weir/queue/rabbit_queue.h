// RabbitQueue: topics in a RabbitMQ broker (library weir::rabbitmq).
//
//   queue::RabbitQueue queue({.url = "amqp://weir:secret@mq:5672/weir"});
//
// How a topic lies there:
// - A topic is a durable exchange of its name; messages are persistent, and published with confirms. The routing
//   key is the partition's number.
// - A group has a durable queue for each partition, TOPIC.GROUP.N, bound to that key: the exchange copies to each
//   group. The queue has a single active consumer, so a partition is read by one member at a time, in order; the
//   other members stand by, and one of them takes over when that one is gone.
// - What another program publishes with a routing key that is no partition goes by the alternate exchange
//   TOPIC.others, a fanout, to partition 0 of every group.
// - What the broker drops from a queue (older than the retention, or refused because it can't be a record) goes by
//   the fanout exchange TOPIC.GROUP.discarded to a queue of that name, which keeps it for the retention once more.
// - The queue weir.catalog knows the topics, their partitions and their groups, for all processes; whoever
//   changes it holds the exclusive queue weir.catalog.lock meanwhile. A topic that grows gets the queues of
//   all its groups first.
//
// What differs from other queues:
// - A group gets what is published after subscribe() made its queues: From::earliest reaches back no further. A
//   record of a topic that has no group isn't taken (Unavailable), because nobody would keep it.
// - A member's offsets are numbers that only grow as long as it lives; they mean nothing to others.
// - Balance: a process' members deal its partitions among themselves and stand by for each other. Between
//   processes nothing is dealt: the one that came first has a partition until it goes.
// - A process goes on with the partitions that it found, when another one makes the topic grow.
// - lag() doesn't see what other processes have taken and not committed.
// - A broker ends a consumer that hasn't committed for consumer_timeout (30 minutes); the messages come again.
//
// When the connection is lost, publish() connects again with backoff, sends again what wasn't confirmed, and
// gives up after publish_timeout; a member gets again what it hadn't committed. A broker that takes nothing
// because memory or disk run short (connection.blocked) is waited for as long.
//
// Metrics: weir_queue_published_total{topic}, weir_queue_lag{topic,group,partition} (brought up to date
// by a thread of the queue), weir_queue_damaged_total{where="rabbitmq"}.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/clock.h"
#include "weir/queue/queue.h"

namespace weir::queue {

class RabbitQueue final : public Queue {
 public:
  // Of which kind the exchanges of topics are. One that is there can't be changed: asking for another kind is
  // Unusable when the topic is named first.
  enum class Exchange {
    direct,
    // The routing key is "N.KEY", cut at 255 bytes, so that other programs can bind queues of their own to keys
    // by pattern ("*.article.#" for keys like article.42).
    topic,
  };
  struct Options {
    std::string url = {};          // see rabbit_url.h
    std::uint32_t partitions = 8;  // of topics that are created; an existing topic may grow, never shrink
    std::chrono::seconds retention = std::chrono::hours(72);  // a queue that is there keeps the one it has
    Exchange exchange = Exchange::direct;
    // Above 1: quorum queues, with that many replicas if the cluster has the brokers; else classic ones, each on one
    // broker. Queues that are there stay what they are. (weir.catalog is on one broker always; while that one is
    // away, what is known to a process goes on.)
    std::uint32_t replication = 1;
    // Messages that a member holds of a partition at most, taken and not committed or read ahead: it bounds the
    // memory. A member that doesn't commit gets no more than that.
    std::uint16_t prefetch = 1'000;
    std::chrono::milliseconds connect_timeout{3'000};  // for the socket, the handshake, and each request
    std::chrono::milliseconds publish_timeout{5'000};  // for a publish as a whole
    // How long the connection may be silent; one that is silent for twice that is lost.
    std::chrono::seconds heartbeat{10};
    const Clock* clock = &Clock::system();
  };
  // Backoff between attempts to connect.
  static constexpr std::chrono::milliseconds kRetryFirst{50}, kRetryMax{2'000};
  // How often the gauges of lag are brought up to date.
  static constexpr std::chrono::milliseconds kLagEvery{2'000};

  // A first call, or the housekeeper a moment later, connects. Throws Unusable for options that can't be meant, and
  // std::system_error when the system refuses one of the threads.
  explicit RabbitQueue(Options options);
  ~RabbitQueue() override;

  // Names of topics and groups: together at most 200 bytes, a topic's doesn't begin with "amq.", and a group's has
  // no '.'; Unusable otherwise.
  void create_topic(const std::string& topic) override;
  std::vector<std::string> topics() override;
  std::uint32_t partitions(const std::string& topic) override;
  void publish(std::span<const Record> records) override;
  void subscribe(const std::string& topic, const std::string& group, From from = From::earliest) override;
  std::unique_ptr<Subscription> join(const std::string& topic, const std::string& group,
                                     Share share = {}) override;
  std::vector<Lag> lag() override;
  bool available() const noexcept override;
  void stop() override;

 private:
  struct State;
  struct Topic;

  std::shared_ptr<Topic> topic(std::string_view name);
  std::shared_ptr<Topic> make(const std::string& topic, const std::string& group);
  void keep_house();

  const std::unique_ptr<State> state_;
  std::thread housekeeper_;
};

}  // namespace weir::queue

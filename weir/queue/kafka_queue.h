// KafkaQueue: the door of queue::Queue on a Kafka cluster, through librdkafka.
//
// Publishing waits for all delivery reports; a record is where Java's default partitioner would put it. With
// acks = all an idempotent producer keeps the order of each key through every retry, and through records that are
// published again after an Unavailable: their first copies are in order. With acks 1 the leader alone has to have
// them, with acks 0 nobody: what a dying broker had taken is lost then.
//
// A member of a group gets whole partitions from the broker (cooperative-sticky, so that a member that comes or goes
// stops nobody else). It commits by itself, and only forward. When it dies, its partitions are read again within 15 s.
// Messages of other clients are welcome; kafka_record.h says what a message looks like and how foreign ones are taken.
//
// lag() asks the cluster; the metric is as of kLookEvery ago at most. Markers of transactions count as messages there.
//
// Errors: Unavailable when Kafka can't be reached or doesn't confirm in time; Unusable for names, URLs and
// replications that can't be meant. While no broker can be reached each call takes its time-out to say so.
// Metrics: weir_queue_published_total{topic}, weir_queue_lag{topic,group,partition},
// weir_queue_deliveries_total{outcome}, weir_queue_damaged_total{where="kafka"}.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/queue/event.h"
#include "weir/queue/queue.h"

namespace weir::queue {

class KafkaQueue final : public Queue {
 public:
  struct Options {
    std::string url;  // see KafkaAddress
    std::string client_id = "weir";
    std::uint32_t partitions = 8;   // of topics that are created; an existing topic may grow, never shrink
    std::uint32_t replication = 1;  // of topics that are created
    Acks acks = Acks::all;
    std::chrono::seconds retention = std::chrono::hours(72);  // of topics that are created
    // Until a publish fails that Kafka doesn't confirm.
    std::chrono::milliseconds publish_timeout{5'000};
    // How long records may gather in the client before they are sent.
    std::chrono::milliseconds linger{1};
    // Records that the client holds; publishing waits while there are as many.
    std::size_t max_waiting = 100'000;
    // A member that calls neither take() nor keep() for so long is taken for stuck, and its partitions go to others.
    std::chrono::milliseconds max_poll{60'000};
  };
  static constexpr std::chrono::milliseconds kLookEvery{2'000};

  // Doesn't wait for a broker. Throws Unusable for a URL that is none, and std::system_error when the system refuses
  // the thread.
  explicit KafkaQueue(Options options);
  ~KafkaQueue() override;

  void create_topic(const std::string& topic) override;
  std::vector<std::string> topics() override;
  std::uint32_t partitions(const std::string& topic) override;
  void publish(std::span<const Record> records) override;
  // Commits where the group begins, unless it has committed already or has members.
  void subscribe(const std::string& topic, const std::string& group, From from = From::earliest) override;
  std::unique_ptr<Subscription> join(const std::string& topic, const std::string& group,
                                     Share share = {}) override;
  std::vector<Lag> lag() override;
  bool available() const noexcept override;
  void stop() override;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Throws Unusable for what Kafka doesn't take as a topic's name: 1 to 249 of a-z A-Z 0-9 . _ - and not . or ..
void check_kafka_topic(std::string_view name);

}  // namespace weir::queue

// KafkaSender: writes records to Kafka and waits until they are there. A detail of KafkaQueue.
//
// One client of librdkafka, made when it is needed. Of what is published at once, Kafka has, of each partition, the
// first records up to some point and none behind it: a record that fails, or isn't confirmed in time, gives up the
// client with all that it still holds, and the next call makes another. What a caller publishes again after that may
// be there twice, but its first copies are in their order. (With acks = all an idempotent producer that refuses gaps
// sees to that; else there is one request at a time.)
//
// Metric: weir_queue_deliveries_total{outcome} with delivered, timed_out and refused, in records; a record that is
// published again is counted again.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "weir/queue/event.h"
#include "weir/queue/kafka_client.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue::detail {

class KafkaSender {
 public:
  struct Options {
    std::string bootstrap, client_id;
    Acks acks = Acks::all;
    std::chrono::milliseconds timeout{5'000};  // of one publish
    std::chrono::milliseconds linger{1};
    std::size_t max_waiting = 100'000;  // records that librdkafka may hold
  };
  // How long a client that was given up may take to say so for each record.
  static constexpr std::chrono::milliseconds kGiveUp{2'000};

  explicit KafkaSender(Options options);
  ~KafkaSender();
  KafkaSender(const KafkaSender&) = delete;
  KafkaSender& operator=(const KafkaSender&) = delete;

  // How it went: `failed` records of all weren't confirmed, because of `why`, which is nothing when the time was
  // over.
  struct Outcome {
    std::size_t failed = 0;
    rd_kafka_resp_err_t why = RD_KAFKA_RESP_ERR_NO_ERROR;
  };
  // The topics must be there. Returns when all records are confirmed or have failed; waits while librdkafka is full.
  // Thread-safe.
  Outcome publish(std::span<const Record> records);

  // Ends all waiting, from now on.
  void stop();

 private:
  class Connection;

  std::shared_ptr<Connection> connection();

  const Options options_;
  telemetry::Counter delivered_, timed_out_, refused_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::shared_ptr<Connection> connection_;
};

}  // namespace weir::queue::detail

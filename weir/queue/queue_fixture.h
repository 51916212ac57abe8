// The queues that the contract of queue::Queue is tested on, each a row of kQueues. For tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "weir/queue/embedded_queue.h"
#include "weir/queue/kafka_fixture.h"
#include "weir/queue/queue.h"
#include "weir/queue/rabbit_fixture.h"
#include "weir/testing/temp_dir.h"

namespace weir::queue {

// A broker, or a file, that is there for one test at least.
class TestQueue {
 public:
  TestQueue() = default;
  virtual ~TestQueue() = default;
  TestQueue(const TestQueue&) = delete;
  TestQueue& operator=(const TestQueue&) = delete;

  // More than one may be opened, at once and later, each as if by a process of its own.
  virtual std::unique_ptr<Queue> open(std::uint32_t partitions) = 0;
};

class EmbeddedTestQueue final : public TestQueue {
 public:
  std::unique_ptr<Queue> open(std::uint32_t partitions) override {
    EmbeddedQueue::Options options;
    options.path = dir_ / "queue.db";
    options.partitions = partitions;
    return std::make_unique<EmbeddedQueue>(std::move(options));
  }

 private:
  TempDir dir_;
};

class RabbitTestQueue final : public TestQueue {
 public:
  explicit RabbitTestQueue(RabbitQueue::Options options) : options_(std::move(options)) {
    options_.prefetch = 10'000;  // tests take much before they commit
  }
  std::unique_ptr<Queue> open(std::uint32_t partitions) override { return open_rabbit(partitions, options_); }

 private:
  RabbitQueue::Options options_;
};

class KafkaTestQueue final : public TestQueue {
 public:
  explicit KafkaTestQueue(std::string url) : url_(std::move(url)) {}
  std::unique_ptr<Queue> open(std::uint32_t partitions) override {
    KafkaQueue::Options options;
    options.url = url_;
    options.partitions = partitions;
    return std::make_unique<KafkaQueue>(std::move(options));
  }

 private:
  const std::string url_;
};

struct QueueKind {
  const char* name;
  // Null when what it needs can't be had from outside: the tests are skipped then.
  std::unique_ptr<TestQueue> (*make)();
  friend void PrintTo(const QueueKind& kind, std::ostream* out) { *out << kind.name; }
};
inline const std::array kQueues{
    QueueKind{"Embedded",
              []() -> std::unique_ptr<TestQueue> { return std::make_unique<EmbeddedTestQueue>(); }},
    QueueKind{"RabbitMQ",
              []() -> std::unique_ptr<TestQueue> {
                return std::make_unique<RabbitTestQueue>(RabbitQueue::Options{});
              }},
    QueueKind{"RabbitMQTopicExchangeAndQuorum",
              []() -> std::unique_ptr<TestQueue> {
                return std::make_unique<RabbitTestQueue>(
                    RabbitQueue::Options{.exchange = RabbitQueue::Exchange::topic, .replication = 3});
              }},
    QueueKind{"Kafka",
              []() -> std::unique_ptr<TestQueue> {
                const KafkaServer* server = shared_kafka();
                return server == nullptr ? nullptr : std::make_unique<KafkaTestQueue>(server->url());
              }},
};
inline std::string name_of_queue(const testing::TestParamInfo<QueueKind>& info) {
  return info.param.name;
}

// Of a topic or a group that no other test has: brokers live for the whole program.
inline std::string fresh_name(const std::string& what) {
  static std::atomic<int> last{0};
  return what + std::to_string(++last);
}

}  // namespace weir::queue

// The Kafka that the tests of one program share. For tests.
#pragma once

#include <iostream>
#include <memory>

#include "weir/queue/kafka_queue.h"
#include "weir/testing/kafka_server.h"

namespace weir::queue {

// One broker, started when the first asks for it. Null when its jars can't be fetched, which is said loudly each time.
inline KafkaServer* shared_kafka() {
  static std::string why;
  static const std::unique_ptr<KafkaServer> server = []() -> std::unique_ptr<KafkaServer> {
    try {
      return std::make_unique<KafkaServer>();
    } catch (const KafkaServer::Unreachable& error) {
      why = error.what();
      return nullptr;
    }
  }();
  if (!server) std::cerr << "NOT TESTED WITH KAFKA: " << why << std::endl;
  return server.get();
}

}  // namespace weir::queue

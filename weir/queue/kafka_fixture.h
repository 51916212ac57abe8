// The Kafka that the tests of one program share. For tests.
#pragma once

#include <iostream>
#include <memory>

#include "weir/queue/kafka_queue.h"
#include "weir/testing/kafka_server.h"
#include "weir/testing/sanitized.h"

namespace weir::queue {

// One broker, started when the first asks for it. Null when its jars can't be fetched, which is said loudly each time, and
// under the thread sanitizer: librdkafka starts its threads by thrd_create, which the sanitizer doesn't see and dies of.
inline KafkaServer* shared_kafka() {
#if WEIR_THREAD_SANITIZED
  std::cerr << "NOT TESTED WITH KAFKA: the thread sanitizer doesn't know librdkafka's threads" << std::endl;
  return nullptr;
#else
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
#endif
}

}  // namespace weir::queue

// What the tests of RabbitQueue share. For tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "weir/queue/rabbit_queue.h"
#include "weir/testing/rabbitmq_server.h"

namespace weir::queue {

// The broker of this test program. Call it from the main thread first: it ends with the thread that started it.
inline RabbitmqServer& rabbitmq() {
  static RabbitmqServer server;
  return server;
}

inline std::unique_ptr<RabbitQueue> open_rabbit(std::uint32_t partitions = 4,
                                                RabbitQueue::Options options = {}) {
  if (options.url.empty()) options.url = rabbitmq().url();
  options.partitions = partitions;
  return std::make_unique<RabbitQueue>(std::move(options));
}

}  // namespace weir::queue

// What a topic and its groups are in a broker: the exchanges, queues and bindings that rabbit_queue.h tells of.
// Internal. Making what is there already changes nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/queue/rabbit_connection.h"
#include "weir/queue/rabbit_queue.h"

namespace weir::queue::detail {

// How things are made that aren't there.
struct RabbitShape {
  std::chrono::milliseconds retention;
  RabbitQueue::Exchange exchange;
  std::uint32_t replication;
};

// Throws Unusable for names that can't be, see RabbitQueue::create_topic.
void check_topic_name(std::string_view topic);
void check_group_name(std::string_view topic, std::string_view group);

std::string queue_name(std::string_view topic, std::string_view group, std::uint32_t partition);
std::string discarded_name(std::string_view topic, std::string_view group);
// By which a record finds its partition.
void set_routing_key(std::string& key, RabbitQueue::Exchange kind, std::uint32_t partition,
                     std::string_view record_key);

// Throws Unusable for an exchange that is there and differs: messages would go astray.
void make_topic(RabbitConnection& connection, const RabbitShape& shape, const std::string& topic);
// The topic must have been made.
void make_group(RabbitConnection& connection, const RabbitShape& shape, const std::string& topic,
                const std::string& group, std::uint32_t partitions);

}  // namespace weir::queue::detail

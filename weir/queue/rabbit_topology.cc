#include "weir/queue/rabbit_topology.h"

#include <array>
#include <vector>

#include "weir/queue/event.h"
#include "weir/telemetry/log.h"

namespace weir::queue::detail {
namespace {

// AMQP's names have 255 bytes; what is left is for what names are put together with.
constexpr std::size_t kMaxNames = 200;
constexpr std::size_t kMaxRoutingKey = 255;

amqp_table_entry_t text(const char* name, const std::string& value) {
  amqp_table_entry_t entry;
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = to_bytes(value);
  return entry;
}

amqp_table_entry_t number(const char* name, std::int64_t value) {
  amqp_table_entry_t entry;
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_I64;
  entry.value.value.i64 = value;
  return entry;
}

amqp_table_entry_t yes(const char* name) {
  amqp_table_entry_t entry;
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entry.value.value.boolean = 1;
  return entry;
}

std::string others_name(std::string_view topic) {
  return std::string(topic) + ".others";
}

// A queue can't be changed: one that was made with another retention, say, is used as it is; true then.
bool make_queue(RabbitConnection& connection, const std::string& name,
                const std::vector<amqp_table_entry_t>& arguments) {
  try {
    connection.declare_queue(name, arguments);
    return false;
  } catch (const RabbitConnection::Refused& refused) {
    if (refused.code() != RabbitConnection::kOtherArguments) throw;
    log::debug("{}", refused.what());
    return true;
  }
}

}  // namespace

void check_topic_name(std::string_view topic) {
  if (topic.empty()) throw Unusable("a topic has no name");
  if (topic.starts_with("amq.")) throw Unusable("names that begin with amq. are the broker's own");
  if (topic.size() > kMaxNames) throw Unusable("the name of a topic is longer than 200 bytes");
}

void check_group_name(std::string_view topic, std::string_view group) {
  check_topic_name(topic);
  if (group.empty()) throw Unusable("a group has no name");
  // Else a.b of topic c and b of topic c.a would be the same queues.
  if (group.find('.') != std::string_view::npos)
    throw Unusable("the name of a group has a dot: " + std::string(group));
  if (topic.size() + group.size() > kMaxNames)
    throw Unusable("the names of a topic and its group are longer than 200 bytes");
}

std::string queue_name(std::string_view topic, std::string_view group, std::uint32_t partition) {
  return std::string(topic) + '.' + std::string(group) + '.' + std::to_string(partition);
}

std::string discarded_name(std::string_view topic, std::string_view group) {
  return std::string(topic) + '.' + std::string(group) + ".discarded";
}

void set_routing_key(std::string& key, RabbitQueue::Exchange kind, std::uint32_t partition,
                     std::string_view record_key) {
  key = std::to_string(partition);
  if (kind == RabbitQueue::Exchange::direct) return;
  key.push_back('.');
  key.append(record_key.substr(0, kMaxRoutingKey - key.size()));
}

void make_topic(RabbitConnection& connection, const RabbitShape& shape, const std::string& topic) {
  const std::string others = others_name(topic);
  connection.declare_exchange(others, "fanout");
  const std::array arguments{text("alternate-exchange", others)};
  try {
    connection.declare_exchange(topic, shape.exchange == RabbitQueue::Exchange::topic ? "topic" : "direct",
                                arguments);
  } catch (const RabbitConnection::Refused& refused) {
    if (refused.code() != RabbitConnection::kOtherArguments) throw;
    throw Unusable("the exchange " + topic +
                   " was made in another way than is configured: " + refused.what());
  }
}

void make_group(RabbitConnection& connection, const RabbitShape& shape, const std::string& topic,
                const std::string& group, std::uint32_t partitions) {
  const std::string discarded = discarded_name(topic, group);
  const bool quorum = shape.replication > 1;
  const std::string kind = quorum ? "quorum" : "classic";
  std::vector<amqp_table_entry_t> arguments{number("x-message-ttl", shape.retention.count()),
                                            text("x-queue-type", kind)};
  if (quorum) arguments.push_back(number("x-quorum-initial-group-size", shape.replication));
  connection.declare_exchange(discarded, "fanout");
  bool differs = make_queue(connection, discarded, arguments);
  connection.bind(discarded, discarded, "");
  arguments.push_back(text("x-dead-letter-exchange", discarded));
  arguments.push_back(yes("x-single-active-consumer"));
  const char* pattern = shape.exchange == RabbitQueue::Exchange::topic ? ".#" : "";
  for (std::uint32_t partition = 0; partition < partitions; ++partition) {
    const std::string name = queue_name(topic, group, partition);
    differs = make_queue(connection, name, arguments) || differs;
    connection.bind(name, topic, std::to_string(partition) + pattern);
  }
  connection.bind(queue_name(topic, group, 0), others_name(topic), "");
  if (differs)
    log::warn("queues of {} for {} stay as they were made, with another retention or kind than is configured",
              topic, group);
}

}  // namespace weir::queue::detail

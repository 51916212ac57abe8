#include "weir/queue/kafka_admin.h"

#include <algorithm>
#include <thread>

#include "weir/base/fault.h"

namespace weir::queue::detail {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Metadata = std::unique_ptr<const rd_kafka_metadata_t, KafkaDeleter<rd_kafka_metadata_destroy>>;

constexpr std::chrono::seconds kKnownWithin{10};
// For an answer while no broker could be reached lately: long enough for a connection.
constexpr std::chrono::milliseconds kWhileAway{1'000};
// Who stops the queue waits for such a look.
constexpr std::chrono::milliseconds kLook{2'000};
constexpr std::chrono::milliseconds kLookAgain{20};
// The timestamps by which Kafka's protocol asks for the ends of a partition.
constexpr std::int64_t kAskFirst = -2, kAskEnd = -1;

KafkaPartitions partition_list(const std::string& topic, std::uint32_t count, std::int64_t offset) {
  KafkaPartitions list(rd_kafka_topic_partition_list_new(static_cast<int>(count)));
  for (std::uint32_t number = 0; number < count; ++number)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), static_cast<std::int32_t>(number))->offset =
        offset;
  return list;
}

// A partition that is just being made, or whose leader changes: another moment it can be asked.
bool is_moving(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
         error == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE || error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

}  // namespace

KafkaAdmin::KafkaAdmin(const std::string& bootstrap, const std::string& client_id) {
  KafkaConfig config(bootstrap, client_id);
  rd_kafka_conf_set_opaque(config.raw(), this);
  rd_kafka_conf_set_error_cb(config.raw(), [](rd_kafka_t*, int error, const char*, void* admin) {
    static_cast<KafkaAdmin*>(admin)->note(static_cast<rd_kafka_resp_err_t>(error));
  });
  // A consumer that is of no group: unlike a producer it doesn't make the topics that it asks about.
  client_ = config.make(RD_KAFKA_CONSUMER);
}

void KafkaAdmin::note(rd_kafka_resp_err_t error) {
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || error == RD_KAFKA_RESP_ERR__TRANSPORT ||
      error == RD_KAFKA_RESP_ERR__TIMED_OUT)
    reached_ = false;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) reached_ = true;
}

int KafkaAdmin::patience() const {
  return to_millis(reached_ ? kKafkaAnswer : kWhileAway);
}

void KafkaAdmin::look() {
  rd_kafka_poll(client_.get(), 0);  // serves the callback
  const rd_kafka_metadata_t* found = nullptr;
  const auto error =
      rd_kafka_metadata(client_.get(), 0, nullptr, &found, std::min(patience(), to_millis(kLook)));
  note(error);
  throw_unless_done("reach Kafka", error);
  rd_kafka_metadata_destroy(found);
}

std::optional<std::uint32_t> KafkaAdmin::partitions(const std::string& topic) {
  const KafkaTopic handle(rd_kafka_topic_new(client_.get(), topic.c_str(), nullptr));
  if (!handle) throw Unusable("Kafka's client refuses the topic " + topic);
  const rd_kafka_metadata_t* found = nullptr;
  const auto error = rd_kafka_metadata(client_.get(), 0, handle.get(), &found, patience());
  note(error);
  throw_unless_done("ask Kafka about topic " + topic, error);
  const Metadata metadata(found);
  if (metadata->topic_cnt != 1) throw_away("ask Kafka about topic " + topic, "it wasn't in the answer");
  const auto& about = metadata->topics[0];
  if (about.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) return std::nullopt;
  // A topic that is just being made has partitions without a leader.
  if (about.err != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
    throw_unless_done("ask Kafka about topic " + topic, about.err);
  return static_cast<std::uint32_t>(about.partition_cnt);
}

std::vector<std::string> KafkaAdmin::topics() {
  const rd_kafka_metadata_t* found = nullptr;
  const auto error = rd_kafka_metadata(client_.get(), 1, nullptr, &found, patience());
  note(error);
  throw_unless_done("ask Kafka for its topics", error);
  const Metadata metadata(found);
  std::vector<std::string> names;
  for (int i = 0; i < metadata->topic_cnt; ++i)
    if (std::string name = metadata->topics[i].topic; !name.starts_with("__"))
      names.push_back(std::move(name));
  std::ranges::sort(names);
  return names;
}

// --- Requests of the administration -------------------------------------------------------------------------

// Calls ask(client, options, events), and waits for the answer.
template <class Ask>
KafkaEvent KafkaAdmin::ask(const std::string& what, rd_kafka_admin_op_t operation, Ask ask) {
  const KafkaEvents events(rd_kafka_queue_new(client_.get()));
  const std::unique_ptr<rd_kafka_AdminOptions_t, KafkaDeleter<rd_kafka_AdminOptions_destroy>> options(
      rd_kafka_AdminOptions_new(client_.get(), operation));
  std::array<char, 256> why;
  throw_unless_done(
      what, rd_kafka_AdminOptions_set_request_timeout(options.get(), patience(), why.data(), why.size()));
  ask(client_.get(), options.get(), events.get());
  KafkaEvent event(rd_kafka_queue_poll(events.get(), 2 * patience()));
  const auto error = event ? rd_kafka_event_error(event.get()) : RD_KAFKA_RESP_ERR__TIMED_OUT;
  note(error);
  throw_unless_done(what, error);
  return event;
}

void KafkaAdmin::create(const std::string& topic, const NewTopic& as) {
  std::array<char, 512> why;
  const std::string what = "make topic " + topic;
  const std::unique_ptr<rd_kafka_NewTopic_t, KafkaDeleter<rd_kafka_NewTopic_destroy>> order(
      rd_kafka_NewTopic_new(topic.c_str(), static_cast<int>(as.partitions), static_cast<int>(as.replication),
                            why.data(), why.size()));
  if (!order) throw Unusable("can't " + what + ": " + why.data());
  for (const auto& [name, value] : as.settings)
    throw_unless_done(what, rd_kafka_NewTopic_set_config(order.get(), name.c_str(), value.c_str()));
  rd_kafka_NewTopic_t* orders[] = {order.get()};
  const auto event =
      ask(what, RD_KAFKA_ADMIN_OP_CREATETOPICS, [&](auto* client, auto* options, auto* events) {
        rd_kafka_CreateTopics(client, orders, 1, options, events);
      });
  std::size_t count = 0;
  const auto* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  const auto error = rd_kafka_topic_result_error(results[0]);
  const char* text = rd_kafka_topic_result_error_string(results[0]);
  if (error == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR)
    throw Unusable("can't " + what + " with replication " + std::to_string(as.replication) + ": " + text);
  if (error == RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION || error == RD_KAFKA_RESP_ERR_INVALID_CONFIG ||
      error == RD_KAFKA_RESP_ERR_INVALID_PARTITIONS)
    throw Unusable("can't " + what + ": " + text);
  if (error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) throw_unless_done(what, error);
  const auto until = SteadyClock::now() + kKnownWithin;
  while (partitions(topic).value_or(0) == 0 && SteadyClock::now() < until)
    std::this_thread::sleep_for(kLookAgain);
}

void KafkaAdmin::grow(const std::string& topic, std::uint32_t to) {
  std::array<char, 512> why;
  const std::string what = "give topic " + topic + " more partitions";
  const std::unique_ptr<rd_kafka_NewPartitions_t, KafkaDeleter<rd_kafka_NewPartitions_destroy>> order(
      rd_kafka_NewPartitions_new(topic.c_str(), to, why.data(), why.size()));
  if (!order) throw Unusable("can't " + what + ": " + why.data());
  rd_kafka_NewPartitions_t* orders[] = {order.get()};
  const auto event =
      ask(what, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, [&](auto* client, auto* options, auto* events) {
        rd_kafka_CreatePartitions(client, orders, 1, options, events);
      });
  std::size_t count = 0;
  const auto* results =
      rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event.get()), &count);
  // Another node may have done it meanwhile.
  const auto until = SteadyClock::now() + kKnownWithin;
  while (partitions(topic).value_or(0) < to) {
    if (rd_kafka_topic_result_error(results[0]) != RD_KAFKA_RESP_ERR_NO_ERROR)
      throw_away(what, rd_kafka_topic_result_error_string(results[0]));
    if (SteadyClock::now() >= until) throw_away(what, "they don't appear");
    std::this_thread::sleep_for(kLookAgain);
  }
}

// --- Offsets ------------------------------------------------------------------------------------------------

std::vector<std::int64_t> KafkaAdmin::committed(const std::string& topic, const std::string& group,
                                                std::uint32_t count) {
  const std::string what = "ask Kafka where group " + group + " is";
  const auto list = partition_list(topic, count, RD_KAFKA_OFFSET_INVALID);
  const std::unique_ptr<rd_kafka_ListConsumerGroupOffsets_t,
                        KafkaDeleter<rd_kafka_ListConsumerGroupOffsets_destroy>>
      order(rd_kafka_ListConsumerGroupOffsets_new(group.c_str(), list.get()));
  rd_kafka_ListConsumerGroupOffsets_t* orders[] = {order.get()};
  const auto event =
      ask(what, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, [&](auto* client, auto* options, auto* events) {
        rd_kafka_ListConsumerGroupOffsets(client, orders, 1, options, events);
      });
  std::size_t groups = 0;
  const auto* results = rd_kafka_ListConsumerGroupOffsets_result_groups(
      rd_kafka_event_ListConsumerGroupOffsets_result(event.get()), &groups);
  if (const auto* error = rd_kafka_group_result_error(results[0]); error != nullptr)
    throw_unless_done(what, rd_kafka_error_code(error));
  std::vector<std::int64_t> found(count, -1);
  const auto* answer = rd_kafka_group_result_partitions(results[0]);
  for (int i = 0; answer != nullptr && i < answer->cnt; ++i) {
    const auto& one = answer->elems[i];
    throw_unless_done(what, one.err);
    if (one.offset >= 0 && static_cast<std::uint32_t>(one.partition) < count)
      found[static_cast<std::size_t>(one.partition)] = one.offset;
  }
  return found;
}

bool KafkaAdmin::commit(const std::string& topic, const std::string& group, std::span<const Offset> offsets) {
  const std::string what = "make group " + group + " known to Kafka";
  const KafkaPartitions list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
  for (const Offset& offset : offsets)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), static_cast<std::int32_t>(offset.partition))
        ->offset = offset.next;
  const std::unique_ptr<rd_kafka_AlterConsumerGroupOffsets_t,
                        KafkaDeleter<rd_kafka_AlterConsumerGroupOffsets_destroy>>
      order(rd_kafka_AlterConsumerGroupOffsets_new(group.c_str(), list.get()));
  rd_kafka_AlterConsumerGroupOffsets_t* orders[] = {order.get()};
  const auto event =
      ask(what, RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, [&](auto* client, auto* options, auto* events) {
        rd_kafka_AlterConsumerGroupOffsets(client, orders, 1, options, events);
      });
  std::size_t groups = 0;
  const auto* results = rd_kafka_AlterConsumerGroupOffsets_result_groups(
      rd_kafka_event_AlterConsumerGroupOffsets_result(event.get()), &groups);
  const auto refused = [](rd_kafka_resp_err_t error) {
    return error == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID || error == RD_KAFKA_RESP_ERR_NON_EMPTY_GROUP ||
           error == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS || error == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION;
  };
  if (const auto* error = rd_kafka_group_result_error(results[0]); error != nullptr) {
    if (refused(rd_kafka_error_code(error))) return false;
    throw_unless_done(what, rd_kafka_error_code(error));
  }
  const auto* answer = rd_kafka_group_result_partitions(results[0]);
  for (int i = 0; answer != nullptr && i < answer->cnt; ++i) {
    if (refused(answer->elems[i].err)) return false;
    throw_unless_done(what, answer->elems[i].err);
  }
  return true;
}

std::vector<std::int64_t> KafkaAdmin::offsets(const std::string& topic, std::uint32_t count, Edge edge) {
  const std::string what = "ask Kafka how far topic " + topic + " goes";
  const auto until = SteadyClock::now() + kKafkaAnswer;
  for (;;) {
    const auto list = partition_list(topic, count, edge == Edge::first ? kAskFirst : kAskEnd);
    auto error = rd_kafka_offsets_for_times(client_.get(), list.get(), patience());
    note(error);
    std::vector<std::int64_t> found(count, 0);
    for (int i = 0; i < list->cnt; ++i) {
      const auto& one = list->elems[i];
      if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) error = one.err;
      found[static_cast<std::size_t>(one.partition)] = one.offset;
    }
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return found;
    if (!is_moving(error) || SteadyClock::now() >= until) throw_unless_done(what, error);
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace weir::queue::detail

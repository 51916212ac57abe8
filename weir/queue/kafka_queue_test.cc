#include "weir/queue/kafka_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "weir/base/fault.h"
#include "weir/queue/kafka_client.h"
#include "weir/queue/kafka_fixture.h"
#include "weir/queue/kafka_record.h"
#include "weir/queue/kafka_url.h"
#include "weir/queue/partition.h"
#include "weir/queue/queue_fixture.h"
#include "weir/queue/test_support.h"
#include "weir/testing/metrics.h"
#include "weir/testing/redis_server.h"

namespace weir::queue {
namespace {

using namespace std::chrono_literals;

TEST(KafkaTopic, NamesAreChecked) {
  for (const std::string name : {"a", "read_events", "read_events.interaction.dead", "A-9._", "..."})
    EXPECT_NO_THROW(check_kafka_topic(name)) << name;
  EXPECT_NO_THROW(check_kafka_topic(std::string(249, 'x')));
  for (const std::string name : {"", ".", "..", "a b", "a/b", "a:b", "caf\xc3\xa9", "a\n"})
    EXPECT_THROW(check_kafka_topic(name), Unusable) << name;
  EXPECT_THROW(check_kafka_topic(std::string(250, 'x')), Unusable);
}

TEST(KafkaQueueAway, NothingWaitsLongerThanItsTimeOut) {
  KafkaQueue::Options options;
  options.url = "kafka://127.0.0.1:" + std::to_string(redis::TestServer::free_port());
  options.publish_timeout = 200ms;
  const auto begin = std::chrono::steady_clock::now();
  KafkaQueue queue(options);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s) << "it waited for a broker";
  EXPECT_THROW(queue.topics(), Unavailable);
  EXPECT_FALSE(queue.available());
  EXPECT_THROW(queue.publish(Records(1)), Unavailable);
}

class KafkaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << "Kafka can't be had";
  }

  KafkaQueue::Options options(std::uint32_t partitions = 4) const {
    KafkaQueue::Options made;
    made.url = server_->url();
    made.partitions = partitions;
    return made;
  }
  // Members that a test holds together are each as if of a process of their own.
  std::unique_ptr<Subscription> join(KafkaQueue& queue) { return queue.join(topic_, group_); }

  KafkaServer* const server_ = shared_kafka();
  const std::string topic_ = fresh_name("topic"), group_ = fresh_name("group");
};
using KafkaQueueTest = KafkaTest;
class KafkaQueueConcurrency : public KafkaTest {};

// Takes until there are `count`, or for 30 seconds.
struct Taken {
  explicit Taken(const Message& from)
      : message(from), key(from.key), payload(from.payload), event_id(from.event_id) {}
  Message message;
  std::string key, payload, event_id;
};
std::vector<Taken> take(Subscription& member, std::size_t count, std::chrono::seconds patience = 30s) {
  std::vector<Taken> taken;
  std::vector<Message> messages;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (taken.size() < count && std::chrono::steady_clock::now() < until) {
    messages.clear();
    member.take(messages, {.messages = count - taken.size(), .max_wait = 10ms});
    for (const Message& message : messages) taken.emplace_back(message);
  }
  return taken;
}

TEST_F(KafkaQueueTest, AFullClientMakesThePublisherWait) {
  auto some = options();
  some.max_waiting = 100;
  KafkaQueue queue(some);
  queue.subscribe(topic_, group_);
  queue.publish(Records(5'000, topic_));
  EXPECT_EQ(take(*join(queue), 5'000).size(), 5'000U);
}

TEST_F(KafkaQueueTest, WithFewerAcksEverythingArrivesToo) {
  for (const Acks acks : {Acks::none, Acks::leader}) {
    auto some = options();
    some.acks = acks;
    KafkaQueue queue(some);
    queue.subscribe(topic_, group_);
    queue.publish(Records(1'000, topic_));
    const auto member = join(queue);
    EXPECT_EQ(take(*member, 1'000).size(), 1'000U);
    member->commit();
  }
}

TEST_F(KafkaQueueTest, AReplicationThatTheClusterCannotGiveIsAnError) {
  auto some = options();
  some.replication = 3;
  KafkaQueue queue(some);
  try {
    queue.create_topic(topic_);
    FAIL();
  } catch (const Unusable& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("replication 3"));
    EXPECT_THAT(error.what(), testing::HasSubstr(topic_));
  }
  EXPECT_THROW(queue.create_topic("a b"), Unusable);
}

TEST_F(KafkaQueueTest, TheMetricOfLagIsThereAtZeroAndFollows) {
  KafkaQueue queue(options());
  queue.subscribe(topic_, group_);
  const std::vector<std::string> mine{"topic=\"" + topic_ + "\"", "group=\"" + group_ + "\""};
  EXPECT_EQ(metric("weir_queue_lag", mine), 0);
  const double before = metric("weir_queue_deliveries_total", {"outcome=\"delivered\""});
  queue.publish(Records(70, topic_));
  EXPECT_EQ(metric("weir_queue_deliveries_total", {"outcome=\"delivered\""}), before + 70);
  EXPECT_TRUE(eventually([&] { return metric("weir_queue_lag", mine) == 70; }));
  EXPECT_TRUE(queue.available());
}

TEST_F(KafkaQueueTest, ATopicThatSomebodyDeletesIsMadeAgain) {
  auto some = options();
  some.publish_timeout = 2s;
  KafkaQueue queue(some);
  queue.publish(Records(10, topic_));
  {
    detail::KafkaConfig config(KafkaAddress::parse(server_->url()).bootstrap(), "test");
    const auto client = config.make(RD_KAFKA_PRODUCER);
    const detail::KafkaEvents events(rd_kafka_queue_new(client.get()));
    rd_kafka_DeleteTopic_t* order = rd_kafka_DeleteTopic_new(topic_.c_str());
    rd_kafka_DeleteTopics(client.get(), &order, 1, nullptr, events.get());
    ASSERT_NE(detail::KafkaEvent(rd_kafka_queue_poll(events.get(), 10'000)), nullptr);
    rd_kafka_DeleteTopic_destroy(order);
  }
  EXPECT_TRUE(eventually([&] {
    try {
      queue.publish(Records(10, topic_));
      return true;
    } catch (const Unavailable&) {
      return false;
    }
  }));
  EXPECT_THAT(queue.topics(), testing::Contains(topic_));
}

// What another client writes.
struct Foreign {
  std::optional<std::string> key, value;
  std::vector<std::pair<std::string, std::string>> headers;
};

class ForeignClient {
 public:
  explicit ForeignClient(const KafkaServer& server)
      : client_(detail::KafkaConfig(KafkaAddress::parse(server.url()).bootstrap(), "foreign")
                    .make(RD_KAFKA_PRODUCER)) {}
  ~ForeignClient() { EXPECT_EQ(rd_kafka_flush(client_.get(), 10'000), RD_KAFKA_RESP_ERR_NO_ERROR); }

  void write(const std::string& topic, const Foreign& message) {
    rd_kafka_headers_t* headers = rd_kafka_headers_new(1);
    for (const auto& [name, value] : message.headers)
      rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                          static_cast<ssize_t>(value.size()));
    std::array<rd_kafka_vu_t, 6> fields{};
    fields[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    fields[0].u.cstr = topic.c_str();
    fields[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    fields[1].u.i = RD_KAFKA_MSG_F_COPY;
    fields[2].vtype = RD_KAFKA_VTYPE_KEY;
    if (message.key) fields[2].u.mem = {const_cast<char*>(message.key->data()), message.key->size()};
    fields[3].vtype = RD_KAFKA_VTYPE_VALUE;
    if (message.value) fields[3].u.mem = {const_cast<char*>(message.value->data()), message.value->size()};
    fields[4].vtype = RD_KAFKA_VTYPE_HEADERS;
    fields[4].u.headers = headers;
    fields[5].vtype = RD_KAFKA_VTYPE_PARTITION;
    fields[5].u.i32 = 0;
    ASSERT_EQ(detail::KafkaError(rd_kafka_produceva(client_.get(), fields.data(), fields.size())), nullptr);
  }

 private:
  detail::KafkaHandle client_;
};

TEST_F(KafkaQueueTest, MessagesOfOtherClientsAreTakenAsTheyAre) {
  KafkaQueue queue(options(1));
  queue.subscribe(topic_, group_);
  Record ours;
  ours.producer = 77;
  ours.lane = 5;
  ours.sequence = 9;
  ours.appended_at = from_micros(123'456'789);
  const auto bytes = detail::encode_identity(ours);
  const std::string identity(bytes.data(), bytes.size());
  const double damaged = metric("weir_queue_damaged_total", {"where=\"kafka\""});
  {
    ForeignClient client(*server_);
    client.write(topic_, {std::nullopt, std::nullopt, {}});
    client.write(topic_, {"article:1", "payload", {{"event_id", "their-1"}, {"trace", "x"}}});
    client.write(topic_, {"article:1", "payload", {{"weir", identity}}});
    client.write(topic_, {"article:1", "payload", {{"weir", identity.substr(1)}, {"event_id", "their-2"}}});
    client.write(topic_, {"article:1", "payload", {{"weir", ""}}});
    client.write(topic_, {"article:1", "payload", {{"weir", "\x02" + identity.substr(1)}}});
    client.write(
        topic_,
        {std::string(40'000, 'k'), std::string(900'000, 'v'), {{"event_id", std::string(1'000, 'i')}}});
    client.write(topic_, {"article:1", "last", {{"weir", "twice"}, {"weir", identity}}});
  }
  const auto begin = Clock::system().now();
  const auto taken = take(*join(queue), 8);
  ASSERT_EQ(taken.size(), 8U);
  for (const std::size_t foreign : {0, 1, 3, 4, 5, 6}) {
    SCOPED_TRACE(foreign);
    const Message& message = taken[foreign].message;
    EXPECT_EQ(message.producer, 0U);
    EXPECT_EQ(message.lane, 0U);
    EXPECT_EQ(message.sequence, 0U);
    EXPECT_LT(std::chrono::abs(message.appended_at - begin), 60s) << "as Kafka's timestamp says";
  }
  for (const std::size_t mine : {2, 7}) {
    EXPECT_EQ(taken[mine].message.producer, 77U);
    EXPECT_EQ(taken[mine].message.lane, 5U);
    EXPECT_EQ(taken[mine].message.sequence, 9U);
    EXPECT_EQ(taken[mine].message.appended_at, ours.appended_at);
  }
  EXPECT_EQ(taken[0].key, "");
  EXPECT_EQ(taken[0].payload, "");
  EXPECT_EQ(taken[1].event_id, "their-1");
  EXPECT_EQ(taken[3].event_id, "their-2");
  EXPECT_EQ(taken[6].key, std::string(detail::kMaxForeignKeyBytes, 'k'));
  EXPECT_EQ(taken[6].payload, std::string(detail::kMaxForeignPayloadBytes, 'v'));
  EXPECT_EQ(taken[6].event_id, std::string(1'000, 'i'));
  EXPECT_EQ(taken[7].payload, "last");
  EXPECT_EQ(metric("weir_queue_damaged_total", {"where=\"kafka\""}), damaged + 3);
}

}  // namespace
}  // namespace weir::queue

// What RabbitQueue has beyond the contract of queues: the broker's things, and other programs that use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "weir/base/fault.h"
#include "weir/queue/partition.h"
#include "weir/queue/queue_fixture.h"
#include "weir/queue/rabbit_catalog.h"
#include "weir/queue/rabbit_connection.h"
#include "weir/queue/rabbit_topology.h"
#include "weir/queue/test_support.h"
#include "weir/telemetry/metrics.h"
#include "weir/testing/metrics.h"

namespace weir::queue {
namespace {

using detail::RabbitConnection;
using testing::HasSubstr;
using namespace std::chrono_literals;

// Another program.
struct Stranger : RabbitConnection {
  Stranger() : RabbitConnection({RabbitAddress::parse(rabbitmq().url()), 5s, 10s}) {}

  void say(const std::string& exchange, const std::string& key, std::string_view body,
           std::string_view id = {}) {
    amqp_basic_properties_t properties{};
    if (!id.empty()) {
      properties._flags = AMQP_BASIC_MESSAGE_ID_FLAG;
      properties.message_id = detail::to_bytes(id);
    }
    publish(exchange, key, false, properties, body);
  }
};

template <class F>
std::string unavailable(F f) {
  try {
    f();
  } catch (const Unavailable& error) {
    return error.what();
  }
  return "done";
}

class RabbitQueueTest : public testing::Test {
 protected:
  // The payloads and keys of the next messages, until there are as many.
  std::vector<std::string> take(Subscription& member, std::size_t count) {
    std::vector<std::string> found;
    std::vector<Message> messages;
    for (int tries = 0; tries < 20 && found.size() < count; ++tries) {
      messages.clear();
      member.take(messages, {.max_wait = 10ms});
      for (const Message& message : messages)
        found.push_back(std::string(message.key) + "=" + std::string(message.payload));
    }
    return found;
  }

  const std::string topic_ = fresh_name("topic");
  const std::string group_ = fresh_name("group");
};

TEST_F(RabbitQueueTest, WhatNobodyWouldGetIsntTaken) {
  const auto queue = open_rabbit();
  EXPECT_THAT(unavailable([&] { queue->publish(Records(10, topic_)); }), HasSubstr("no group would get it"));
  queue->subscribe(topic_, group_);
  queue->publish(Records(10, topic_));
  EXPECT_EQ(total_lag(*queue, topic_, group_), 10);
}

TEST_F(RabbitQueueTest, MessagesOfOtherProgramsAreConsumedByEachGroup) {
  const auto queue = open_rabbit();
  const std::string other = fresh_name("group");
  queue->subscribe(topic_, group_);
  queue->subscribe(topic_, other);
  Stranger stranger;
  stranger.say(topic_, "3", "to partition 3", "id-1");
  stranger.say(topic_, "article:42", "by its own key");
  stranger.say(topic_, "", "without a key");
  for (const std::string& group : {group_, other}) {
    const auto member = queue->join(topic_, group);
    EXPECT_THAT(take(*member, 3), testing::UnorderedElementsAre(
                                      "3=to partition 3", "article:42=by its own key", "=without a key"));
  }
}

// What the program prints. Without amqp-tools (Debian's package) it is nothing.
std::string output(const std::string& command) {
  std::FILE* const program = ::popen(command.c_str(), "r");
  std::string text(1'000, ' ');
  text.resize(std::fread(text.data(), 1, text.size(), program));
  ::pclose(program);
  return text;
}

TEST_F(RabbitQueueTest, TheToolsOfAmqpReadWhatIsPublishedAndAreRead) {
  const auto queue = open_rabbit(2);
  queue->subscribe(topic_, group_);
  const std::string url = " --url='" + rabbitmq().url() + "' ";
  output("amqp-publish" + url + "-e " + topic_ + " -r 0 -p -H 'key: article:42' -b 'from the tool'");
  const auto member = queue->join(topic_, group_);
  EXPECT_THAT(take(*member, 1), testing::ElementsAre("article:42=from the tool"));
  member->commit();
  const std::string reader = fresh_name("reader");
  queue->subscribe(topic_, reader);
  const std::vector<Record> records{{topic_, "article:42", "from Weir", "", 1, 0, 1, from_micros(1)}};
  queue->publish(records);
  const auto partition = partition_of("article:42", 2);
  EXPECT_EQ(output("amqp-get" + url + "-q " + detail::queue_name(topic_, reader, partition)), "from Weir");
}

TEST_F(RabbitQueueTest, AMessageThatCantBeARecordIsDiscardedAndTheOthersGoOn) {
  const auto queue = open_rabbit(1);
  queue->subscribe(topic_, group_);
  const auto damaged = [] { return metric("weir_queue_damaged_total", {"rabbitmq"}); };
  const auto member = queue->join(topic_, group_);
  const double before = damaged();
  Stranger stranger;
  stranger.say(topic_, "0", "first");
  stranger.say(topic_, "0", std::string(detail::kMaxRabbitBody + 1, 'x'));
  stranger.say(topic_, "0", "", std::string(kMaxEventIdBytes + 1, 'i'));
  stranger.say(topic_, "0", "last");
  EXPECT_THAT(take(*member, 2), testing::ElementsAre("0=first", "0=last"));
  member->commit();
  EXPECT_TRUE(eventually([&] { return stranger.depth(detail::discarded_name(topic_, group_)) == 2; }));
  EXPECT_EQ(damaged(), before + 2);
  EXPECT_EQ(total_lag(*queue, topic_, group_), 0);
}

TEST_F(RabbitQueueTest, WhatTheRetentionTakesIsKeptAsDiscarded) {
  const auto queue = open_rabbit(1, {.retention = 1s});
  queue->subscribe(topic_, group_);
  queue->publish(Records(5, topic_));
  Stranger stranger;
  EXPECT_TRUE(eventually([&] { return stranger.depth(detail::discarded_name(topic_, group_)) == 5; }));
  EXPECT_EQ(total_lag(*queue, topic_, group_), 0);
}

TEST_F(RabbitQueueTest, AQueueWithOtherArgumentsIsUsedAsItIs) {
  open_rabbit(2)->subscribe(topic_, group_);
  const auto queue = open_rabbit(2, {.retention = 1h, .replication = 3});
  queue->subscribe(topic_, group_);
  queue->publish(Records(10, topic_));
  EXPECT_EQ(take(*queue->join(topic_, group_), 10).size(), 10U);
}

TEST_F(RabbitQueueTest, ATopicThatGrowsGrowsForTheGroupsOfOthersFirst) {
  const auto old = open_rabbit(1);
  old->subscribe(topic_, group_);
  const auto queue = open_rabbit(4);
  queue->create_topic(topic_);
  queue->publish(Records(40, topic_, 40));  // nobody has subscribed with four
  Stranger stranger;
  for (std::uint32_t partition = 0; partition < 4; ++partition)
    EXPECT_GT(stranger.depth(detail::queue_name(topic_, group_, partition)).value_or(0), 0) << partition;
  EXPECT_EQ(take(*queue->join(topic_, group_), 40).size(), 40U);
  EXPECT_EQ(open_rabbit(2)->partitions(topic_), 4U);
}

TEST_F(RabbitQueueTest, ProgramsCanBindQueuesToKeysByPatternWhenTheExchangeIsATopic) {
  const auto queue = open_rabbit(4, {.exchange = RabbitQueue::Exchange::topic});
  queue->subscribe(topic_, group_);
  Stranger stranger;
  const std::string theirs = fresh_name("theirs");
  stranger.declare_queue(theirs, {});
  stranger.bind(theirs, topic_, "*.article.#");
  const std::string long_key(kMaxKeyBytes, 'k');
  const std::vector<Record> records{{.topic = topic_, .key = "article.1", .payload = "a", .event_id = {}},
                                    {.topic = topic_, .key = "course.1", .payload = "b", .event_id = {}},
                                    {.topic = topic_, .key = long_key, .payload = "c", .event_id = {}},
                                    {.topic = topic_, .key = "", .payload = "d", .event_id = {}}};
  queue->publish(records);
  EXPECT_THAT(take(*queue->join(topic_, group_), 4),
              testing::UnorderedElementsAre("article.1=a", "course.1=b", long_key + "=c", "=d"));
  EXPECT_EQ(stranger.depth(theirs), 1);
}

TEST_F(RabbitQueueTest, AnExchangeOfAnotherKindIsRefused) {
  open_rabbit(1)->subscribe(topic_, group_);
  const auto queue = open_rabbit(1, {.exchange = RabbitQueue::Exchange::topic});
  EXPECT_THROW(queue->create_topic(topic_), Unusable);
  const auto other = open_rabbit(1);
  other->publish(Records(1, topic_));  // the catalog's lock was released
  EXPECT_EQ(take(*other->join(topic_, group_), 1).size(), 1U);
  other->create_topic(fresh_name("topic"));
}

TEST_F(RabbitQueueTest, AGroupThatLosesItsQueuesGetsNewOnes) {
  const auto queue = open_rabbit(1);
  queue->subscribe(topic_, group_);
  const auto member = queue->join(topic_, group_);
  Stranger stranger;
  stranger.delete_queue(detail::queue_name(topic_, group_, 0));
  EXPECT_TRUE(eventually([&] { return unavailable([&] { queue->publish(Records(1, topic_)); }) == "done"; }));
  std::vector<std::string> found;
  EXPECT_TRUE(
      eventually([&] { return unavailable([&] { found = take(*member, 1); }) == "done" && !found.empty(); }));
}

TEST_F(RabbitQueueTest, OffsetsOfAMemberOnlyGrowAndLagIsShown) {
  const auto queue = open_rabbit(2);
  queue->subscribe(topic_, group_);
  queue->publish(Records(30, topic_));
  EXPECT_TRUE(eventually([&] { return metric("weir_queue_lag", {topic_, group_}) == 30; }));
  const auto member = queue->join(topic_, group_);
  std::int64_t last = -1;
  std::vector<Message> messages;
  for (std::size_t count = 0; count < 30; count += messages.size()) {
    messages.clear();
    member->take(messages, {.messages = 7, .max_wait = 10ms});
    for (const Message& message : messages) EXPECT_GT(message.offset, std::exchange(last, message.offset));
    member->commit();
  }
  EXPECT_TRUE(eventually([&] { return metric("weir_queue_lag", {topic_, group_}) == 0; }));
  EXPECT_TRUE(queue->available());
}

TEST_F(RabbitQueueTest, AMemberThatDoesntCommitGetsNoMoreThanThePrefetch) {
  const auto queue = open_rabbit(1, {.prefetch = 20});
  queue->subscribe(topic_, group_);
  queue->publish(Records(50, topic_));
  const auto member = queue->join(topic_, group_);
  std::vector<Message> messages;
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(member->take(messages, {.max_wait = 20s}));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s) << "more can't come: it doesn't wait";
  EXPECT_EQ(messages.size(), 20U);
  member->commit();
  EXPECT_EQ(take(*member, 20).size(), 20U);
}

TEST_F(RabbitQueueTest, NamesAreChecked) {
  const auto queue = open_rabbit();
  EXPECT_THROW(queue->create_topic(""), Unusable);
  EXPECT_THROW(queue->create_topic(std::string(201, 't')), Unusable);
  EXPECT_THROW(queue->subscribe(topic_, "a.b"), Unusable);
  EXPECT_THROW(queue->subscribe(topic_, ""), Unusable);
  EXPECT_THROW(queue->subscribe(std::string(190, 't'), std::string(20, 'g')), Unusable);
  EXPECT_THROW((void)queue->join(topic_, "a.b"), Unusable);
  EXPECT_THROW(queue->create_topic("amq.mine"), Unusable);
}

TEST_F(RabbitQueueTest, AWrongPasswordIsToldAndNotShown) {
  auto url = rabbitmq().url();
  url.replace(url.find("guest:guest"), 11, "guest:hunter2");
  RabbitQueue queue({.url = url});
  const std::string text = unavailable([&] { queue.create_topic(topic_); });
  EXPECT_THAT(text, HasSubstr("ACCESS_REFUSED"));
  EXPECT_THAT(text, testing::Not(HasSubstr("hunter2")));
  EXPECT_FALSE(queue.available());
}

TEST_F(RabbitQueueTest, NobodyListens) {
  RabbitQueue queue({.url = "amqp://127.0.0.1:1", .publish_timeout = 300ms});
  EXPECT_NE(unavailable([&] { queue.publish(Records(1, topic_)); }), "done");
  EXPECT_NE(unavailable([&] { queue.subscribe(topic_, group_); }), "done");
  EXPECT_FALSE(queue.available());
}

TEST(RabbitCatalogConcurrency, WhoeverAddsAtOnceLosesNothing) {
  const std::string topic = fresh_name("topic");
  (void)rabbitmq();
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&, i] {
      const auto queue = open_rabbit(static_cast<std::uint32_t>(i + 1));
      queue->subscribe(topic, "group" + std::to_string(i));
      queue->create_topic(topic + "." + std::to_string(i));
    });
  for (auto& thread : threads) thread.join();
  Stranger stranger;
  const auto catalog = detail::RabbitCatalog::visit(stranger, [](auto&) { return false; });
  EXPECT_EQ(catalog.topics().at(topic).partitions, 6U);
  EXPECT_EQ(catalog.topics().at(topic).groups.size(), 6U);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(catalog.topics().contains(topic + "." + std::to_string(i))) << i;
    for (std::uint32_t partition = 0; partition < 6; ++partition)
      EXPECT_EQ(stranger.depth(detail::queue_name(topic, "group" + std::to_string(i), partition)), 0);
  }
}

}  // namespace
}  // namespace weir::queue

// What every queue behind the door promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "weir/base/fault.h"
#include "weir/queue/batch_consumer.h"
#include "weir/queue/dead_letter.h"
#include "weir/queue/partition.h"
#include "weir/queue/queue_fixture.h"
#include "weir/queue/test_support.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kPartitions = 4;
constexpr std::string_view kAnyBytes{"\0\x01 \xff\xfe\r\n{}", 9};

// A message whose bytes outlive the next take().
struct Taken {
  explicit Taken(const Message& from)
      : message(from), key(from.key), payload(from.payload), event_id(from.event_id) {}
  Message message;
  std::string key, payload, event_id;
};

// Takes until there are `count`, or for 30 seconds.
std::vector<Taken> take(Subscription& member, std::size_t count, Subscription::Limits limits = {}) {
  std::vector<Taken> taken;
  std::vector<Message> messages;
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (taken.size() < count && std::chrono::steady_clock::now() < until) {
    messages.clear();
    limits.messages = std::min(limits.messages, count - taken.size());
    if (!member.take(messages, limits)) break;
    for (const Message& message : messages) taken.emplace_back(message);
  }
  return taken;
}

std::map<std::string, std::vector<std::string>> by_key(const std::vector<Taken>& taken) {
  std::map<std::string, std::vector<std::string>> found;
  for (const Taken& one : taken) found[one.key].push_back(one.payload);
  return found;
}

std::vector<std::string> sorted_payloads(const std::vector<Taken>& taken) {
  std::vector<std::string> found;
  for (const Taken& one : taken) found.push_back(one.payload);
  std::ranges::sort(found);
  return found;
}

class QueueContract : public testing::TestWithParam<QueueKind> {
 protected:
  void SetUp() override {
    if (!store_) GTEST_SKIP() << "what it needs can't be had from outside";
  }
  std::unique_ptr<Queue> open(std::uint32_t partitions = kPartitions) { return store_->open(partitions); }
  // Of records 0, 1, 2 .. with keys k0 .. k9.
  Records records(std::size_t count) const { return Records(count, topic_); }

  const std::string topic_ = fresh_name("topic");
  const std::string group_ = fresh_name("group");

 private:
  const std::unique_ptr<TestQueue> store_ = GetParam().make();
};
class QueueContractConcurrency : public QueueContract {};

TEST_P(QueueContract, AMessageArrivesWithAllThatItIs) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  const std::string longest_key(kMaxKeyBytes, 'k'), longest_id(kMaxEventIdBytes, '~');
  const std::string largest(kMaxPayloadBytes, '\xee');
  const std::vector<Record> records{
      {topic_, "article:42", "payload", "event-1", 18446744073709551615ULL, 4294967295U,
       18446744073709551615ULL, from_micros(1'767'225'600'123'456)},
      {topic_, "k", "", "", 1, 0, 1, from_micros(1)},
      {topic_, kAnyBytes, kAnyBytes, "", 2, 3, 4, from_micros(1'767'225'600'000'001)},
      {topic_, longest_key, largest, longest_id, 3, 2, 1, from_micros(1'700'000'000'000'000)},
  };
  queue->publish(records);
  const auto member = queue->join(topic_, group_, {});
  const auto taken = take(*member, records.size());
  ASSERT_EQ(taken.size(), records.size());
  for (const Record& record : records) {
    SCOPED_TRACE(record.producer);
    const auto found =
        std::ranges::find(taken, record.producer, [](const Taken& one) { return one.message.producer; });
    ASSERT_NE(found, taken.end());
    EXPECT_EQ(found->key, record.key);
    EXPECT_EQ(found->payload, record.payload);
    EXPECT_EQ(found->event_id, record.event_id);
    EXPECT_EQ(found->message.lane, record.lane);
    EXPECT_EQ(found->message.sequence, record.sequence);
    EXPECT_EQ(found->message.appended_at, record.appended_at);
    EXPECT_EQ(found->message.topic, topic_);
    EXPECT_EQ(found->message.partition, partition_of(record.key, kPartitions));
  }
}

TEST_P(QueueContract, KeepsOrderByKeyAcrossPublishesAndStarts) {
  {
    const auto queue = open();
    queue->subscribe(topic_, group_);
    queue->publish(records(100));
  }
  const auto queue = open();
  EXPECT_THAT(queue->topics(), testing::Contains(topic_));
  EXPECT_EQ(queue->partitions(topic_), kPartitions);
  queue->publish(records(50));
  const auto member = queue->join(topic_, group_, {});
  const auto taken = by_key(take(*member, 150));
  ASSERT_EQ(taken.size(), 10U);
  for (const auto& [key, payloads] : taken) {
    ASSERT_EQ(payloads.size(), 15U) << key;
    const std::size_t digit = static_cast<std::size_t>(key.back() - '0');
    for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(payloads[i], std::to_string(i % 10 * 10 + digit)) << key;
  }
}

TEST_P(QueueContract, EachGroupGetsEverything) {
  const auto queue = open();
  const std::string other = fresh_name("group");
  queue->subscribe(topic_, group_);
  queue->subscribe(topic_, other);
  queue->publish(records(300));
  for (const std::string& group : {group_, other}) {
    const auto member = queue->join(topic_, group, {});
    EXPECT_EQ(take(*member, 300).size(), 300U);
    member->commit();
  }
}

TEST_P(QueueContract, AGroupThatIsNewMayBeginAtTheEndAndOneThatIsKnownStaysWhereItIs) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  queue->publish(records(20));
  const std::string late = fresh_name("late");
  queue->subscribe(topic_, late, From::latest);
  queue->subscribe(topic_, group_, From::latest);
  queue->publish(records(10));
  queue->subscribe(topic_, late, From::earliest);
  EXPECT_EQ(take(*queue->join(topic_, group_, {}), 30).size(), 30U);
  const auto of_late = take(*queue->join(topic_, late, {}), 10);
  std::vector<std::string> last_ten;
  for (int i = 0; i < 10; ++i) last_ten.push_back(std::to_string(i));
  EXPECT_EQ(sorted_payloads(of_late), last_ten);
}

TEST_P(QueueContract, WhatIsCommittedIsDoneWithAndTheRestComesAgain) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  queue->publish(records(200));
  std::set<std::string> first, second;
  {
    const auto member = queue->join(topic_, group_, {});
    for (const Taken& one : take(*member, 120)) first.insert(one.payload);
    member->commit();
    EXPECT_EQ(take(*member, 30).size(), 30U);  // and never committed
  }
  const auto member = queue->join(topic_, group_, {});
  for (const Taken& one : take(*member, 80)) second.insert(one.payload);
  EXPECT_EQ(first.size(), 120U);
  EXPECT_EQ(second.size(), 80U);
  first.merge(second);
  EXPECT_EQ(first.size(), 200U);
  member->commit();
  member->commit();
}

TEST_P(QueueContract, RewindGivesAgainWhatWasNotCommittedInItsOrder) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  queue->publish(records(100));
  const auto member = queue->join(topic_, group_, {});
  ASSERT_EQ(take(*member, 40).size(), 40U);
  member->commit();
  const auto once = take(*member, 35);
  EXPECT_TRUE(member->keep());
  member->rewind();
  const auto again = take(*member, 60);
  ASSERT_EQ(again.size(), 60U);
  member->commit();
  auto known = by_key(again);
  for (const auto& [key, payloads] : by_key(once)) {
    auto& of_key = known[key];
    ASSERT_GE(of_key.size(), payloads.size());
    of_key.resize(payloads.size());
    EXPECT_EQ(of_key, payloads) << key;
  }
}

TEST_P(QueueContract, ATakeKeepsToItsLimits) {
  const auto queue = open(1);
  queue->subscribe(topic_, group_);
  const std::string payload(10'000, 'x');
  std::vector<Record> large;
  for (std::uint64_t i = 1; i <= 100; ++i)
    large.push_back({topic_, "k", payload, "", 7, 0, i, from_micros(1)});
  for (std::size_t i = 0; i < large.size(); i += 10) queue->publish(std::span(large).subspan(i, 10));
  const auto member = queue->join(topic_, group_, {});
  std::vector<Message> messages;
  std::size_t sum = 0, takes = 0;
  while (sum < large.size()) {
    messages.clear();
    ASSERT_TRUE(member->take(messages, {.messages = 15, .bytes = 1'000'000, .max_wait = 50ms}));
    EXPECT_LE(messages.size(), 15U);
    sum += messages.size();
    takes += messages.empty() ? 0 : 1;
  }
  EXPECT_EQ(sum, 100U);
  EXPECT_GE(takes, 7U);
  member->rewind();
  for (sum = 0, takes = 0; sum < large.size(); takes += messages.empty() ? 0 : 1) {
    messages.clear();
    ASSERT_TRUE(member->take(messages, {.messages = 1'000, .bytes = 150'000, .max_wait = 50ms}));
    EXPECT_LE(messages.size(), 40U) << "of ten kilobytes each";
    sum += messages.size();
  }
  EXPECT_EQ(sum, 100U);
  EXPECT_GE(takes, 3U);
}

TEST_P(QueueContract, ManyAndLargeRecordsGoInOnePublishAndSeveralTopicsToo) {
  const auto queue = open();
  const std::string other = fresh_name("other");
  queue->subscribe(topic_, group_);
  queue->subscribe(other, group_);
  const std::string largest(kMaxPayloadBytes, 'x');
  std::vector<std::string> keys;
  for (int i = 0; i < 97; ++i) keys.push_back("key" + std::to_string(i));
  std::vector<Record> all;
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    const std::string_view topic = i % 2 == 0 ? std::string_view(topic_) : std::string_view(other);
    const std::string_view payload = i % 200 == 0 ? std::string_view(largest) : "small";
    all.push_back(
        {topic, keys[i % keys.size()], payload, "", 9, 0, i, from_micros(static_cast<std::int64_t>(i))});
  }
  queue->publish(all);
  for (const std::string& topic : {topic_, other}) {
    const auto taken = take(*queue->join(topic, group_, {}), 5'000);
    ASSERT_EQ(taken.size(), 5'000U);
    std::map<std::string, std::uint64_t> last;
    std::set<std::uint64_t> sequences;
    for (const Taken& one : taken) {
      EXPECT_LT(last[one.key], one.message.sequence);
      last[one.key] = one.message.sequence;
      sequences.insert(one.message.sequence);
    }
    EXPECT_EQ(sequences.size(), 5'000U);
  }
}

TEST_P(QueueContract, LagIsWhatAGroupHasNotCommitted) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  const auto lag = [&] { return total_lag(*queue, topic_, group_); };
  EXPECT_EQ(lag(), 0);
  queue->publish(records(60));
  EXPECT_TRUE(eventually([&] { return lag() == 60; }));
  const auto member = queue->join(topic_, group_, {});
  ASSERT_EQ(take(*member, 45).size(), 45U);
  member->commit();
  EXPECT_TRUE(eventually([&] { return lag() == 15; }));
  ASSERT_EQ(take(*member, 15).size(), 15U);
  member->commit();
  EXPECT_TRUE(eventually([&] { return lag() == 0; }));
}

TEST_P(QueueContract, CountsWhatItTookAndShowsZerosBefore) {
  const auto queue = open();
  const auto value = [&](const std::string& name) {
    const std::string text = telemetry::scrape(), line = name + "{topic=\"" + topic_ + "\"} ";
    const auto at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  };
  queue->create_topic(topic_);
  EXPECT_EQ(value("weir_queue_published_total"), 0);
  EXPECT_EQ(value("weir_queue_dropped_total"), 0);
  queue->subscribe(topic_, group_);  // a queue may refuse what no group would get
  queue->publish(records(42));
  EXPECT_EQ(value("weir_queue_published_total"), 42);
}

TEST_P(QueueContract, TopicsGrowToMorePartitionsAndNeverShrink) {
  open(2)->create_topic(topic_);
  EXPECT_EQ(open(1)->partitions(topic_), 2U);
  const auto queue = open(3);
  queue->create_topic(topic_);
  EXPECT_EQ(queue->partitions(topic_), 3U);
  queue->subscribe(topic_, group_);
  queue->publish(records(50));
  EXPECT_EQ(take(*queue->join(topic_, group_, {}), 50).size(), 50U);
}

TEST_P(QueueContractConcurrency, MembersOfAGroupShareItsPartitions) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  std::mutex mutex;
  std::set<std::string> seen;
  std::atomic<bool> done{false};
  std::vector<std::unique_ptr<Subscription>> members;
  for (std::uint32_t number = 0; number < 2; ++number)
    members.push_back(queue->join(topic_, group_, {.number = number, .of = 2}));
  std::vector<std::thread> threads;
  std::array<std::atomic<std::size_t>, 2> counts{};
  for (std::size_t number = 0; number < 2; ++number)
    threads.emplace_back([&, number] {
      std::vector<Message> messages;
      while (!done && members[number]->take(messages, {.max_wait = 1ms})) {
        counts[number] += messages.size();
        {
          const std::lock_guard lock(mutex);
          for (const Message& message : messages) seen.emplace(message.payload);
        }
        messages.clear();
        members[number]->commit();
      }
    });
  // A broker may take some seconds to deal the partitions to both.
  std::size_t round = 0;
  for (; round < 20 || ((counts[0] == 0 || counts[1] == 0) && round < 3'000); ++round) {
    std::vector<std::pair<std::string, std::string>> texts;
    for (std::size_t i = 0; i < 40; ++i)
      texts.emplace_back("k" + std::to_string(i), std::to_string(round) + "." + std::to_string(i));
    std::vector<Record> some;
    for (const auto& [key, payload] : texts)
      some.push_back({topic_, key, payload, "", 5, 0, round * 40 + some.size() + 1, from_micros(1)});
    queue->publish(some);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return seen.size() == round * 40;
  }));
  done = true;
  for (auto& member : members) member->interrupt();
  for (auto& thread : threads) thread.join();
  EXPECT_GT(counts[0], 0U);
  EXPECT_GT(counts[1], 0U);
}

TEST_P(QueueContractConcurrency, InterruptEndsATakeAndAllLaterOnes) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  const auto member = queue->join(topic_, group_, {});
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    member->interrupt();
  });
  std::vector<Message> messages;
  const auto begin = std::chrono::steady_clock::now();
  while (member->take(messages, {.max_wait = 60s}) && std::chrono::steady_clock::now() < begin + 5ms)
    continue;
  other.join();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(member->take(messages, {}));
  EXPECT_TRUE(messages.empty());
}

TEST_P(QueueContractConcurrency, StopEndsATake) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  const auto member = queue->join(topic_, group_, {});
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    queue->stop();
  });
  std::vector<Message> messages;
  while (member->take(messages, {})) continue;
  other.join();
}

TEST_P(QueueContractConcurrency, ManyMayPublishAtOnce) {
  const auto queue = open();
  queue->subscribe(topic_, group_);
  std::vector<std::thread> threads;
  for (std::uint64_t producer = 1; producer <= 4; ++producer)
    threads.emplace_back([&, producer] {
      for (std::uint64_t first = 1; first <= 200; first += 20) {
        std::vector<Record> some;
        const std::string key = "p" + std::to_string(producer);
        for (std::uint64_t i = first; i < first + 20; ++i)
          some.push_back({topic_, key, "x", "", producer, 0, i, from_micros(1)});
        queue->publish(some);
      }
    });
  for (auto& thread : threads) thread.join();
  std::map<std::uint64_t, std::uint64_t> last;
  for (const Taken& one : take(*queue->join(topic_, group_, {}), 800)) {
    EXPECT_EQ(last[one.message.producer] + 1, one.message.sequence);
    last[one.message.producer] = one.message.sequence;
  }
  EXPECT_EQ(last, (std::map<std::uint64_t, std::uint64_t>{{1, 200}, {2, 200}, {3, 200}, {4, 200}}));
}

BatchConsumer::Options quick(const std::string& topic, const std::string& group) {
  return {
      .topic = topic, .group = group, .max_wait = 1ms, .threads = 2, .retry_first = 1ms, .retry_max = 4ms};
}

TEST_P(QueueContractConcurrency, AConsumerGetsEverythingInOrderByKeyAndGoesOnWhereItWas) {
  const auto queue = open();
  Seen seen;
  for (int start = 0; start < 3; ++start) {
    BatchConsumer consumer(*queue, quick(topic_, group_), std::ref(seen));
    consumer.start();
    for (int i = 0; i < 5; ++i) queue->publish(records(100));
    ASSERT_TRUE(eventually([&] { return seen.count() >= 500U * static_cast<unsigned>(start + 1); }));
    ASSERT_TRUE(eventually([&] { return total_lag(*queue, topic_, group_) == 0; }));
  }
  EXPECT_EQ(seen.count(), 1'500U);
  const auto of_k3 = seen.of("k3");
  ASSERT_EQ(of_k3.size(), 150U);
  for (std::size_t i = 0; i < 150; ++i) EXPECT_EQ(of_k3[i], std::to_string((i % 10) * 10 + 3));
}

TEST_P(QueueContractConcurrency, AConsumerRetriesWhileTheWorldIsAwayAndStaysAMember) {
  const auto queue = open(1);
  Seen seen;
  std::atomic<int> calls{0};
  auto options = quick(topic_, group_);
  options.retry_first = options.retry_max = 1500ms;
  BatchConsumer consumer(*queue, options, [&](std::span<const Message> batch) {
    if (++calls <= 2) throw Unavailable("away");
    seen(batch);
  });
  consumer.start();
  queue->publish(records(10));
  ASSERT_TRUE(eventually([&] { return total_lag(*queue, topic_, group_) == 0 && seen.count() >= 10; }));
  EXPECT_EQ(seen.count(), 10U);
}

TEST_P(QueueContractConcurrency, WhatAConsumerParksWaitsInTheDeadLetterTopicWithItsId) {
  const auto queue = open();
  Seen seen;
  BatchConsumer consumer(*queue, quick(topic_, group_), [&](std::span<const Message> batch) {
    for (const Message& message : batch)
      if (message.payload == "13") throw std::runtime_error("can't read it");
    seen(batch);
  });
  consumer.start();
  queue->publish(records(100));
  ASSERT_TRUE(eventually([&] { return seen.count() == 99; }));
  const std::string dead = dead_letter_topic(topic_, group_);
  const auto member = queue->join(dead, std::string(kParkedGroup), {});
  const auto parked = take(*member, 1);
  ASSERT_EQ(parked.size(), 1U);
  const auto letter = decode_dead_letter(parked[0].payload);
  ASSERT_TRUE(letter);
  EXPECT_EQ(letter->reason, "can't read it");
  EXPECT_EQ(letter->payload, "13");
  EXPECT_EQ(letter->topic, topic_);
  EXPECT_EQ(letter->group, group_);
  EXPECT_EQ(parked[0].key, "k3");
  EXPECT_EQ(parked[0].message.producer, 7U);
  EXPECT_EQ(parked[0].message.sequence, 14U);
}

INSTANTIATE_TEST_SUITE_P(Each, QueueContract, testing::ValuesIn(kQueues), name_of_queue);
INSTANTIATE_TEST_SUITE_P(Each, QueueContractConcurrency, testing::ValuesIn(kQueues), name_of_queue);

}  // namespace
}  // namespace weir::queue

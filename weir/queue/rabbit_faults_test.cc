// RabbitQueue when the broker, or the way to it, fails under load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "weir/base/fault.h"
#include "weir/queue/batch_consumer.h"
#include "weir/queue/journal.h"
#include "weir/queue/producer.h"
#include "weir/queue/queue_fixture.h"
#include "weir/queue/rabbit_topology.h"
#include "weir/queue/test_support.h"
#include "weir/testing/tcp_proxy.h"
#include "weir/testing/temp_dir.h"

namespace weir::queue {
namespace {

using SteadyClock = std::chrono::steady_clock;
using testing::HasSubstr;
using namespace std::chrono_literals;

// Publishes records 1, 2, 3 .. of some keys in batches, each until the queue has taken it, as a Producer does.
class Load {
 public:
  static constexpr std::uint64_t kKeys = 20, kBatch = 100;

  Load(Queue& queue, std::string topic)
      : queue_(queue), topic_(std::move(topic)), thread_([this] { run(); }) {}
  ~Load() { stop(); }

  // Ends when the last batch was taken; how many records that makes.
  std::uint64_t stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return taken_;
  }
  std::uint64_t taken() const { return taken_; }
  // Batches that weren't taken at once, and the longest time that publish() needed to say so.
  int refused() const { return refused_; }
  SteadyClock::duration slowest() const { return slowest_.load(); }

  static std::string key_of(std::uint64_t number) { return "key" + std::to_string(number % kKeys); }

 private:
  void run() {
    while (!stopping_) {
      std::vector<std::pair<std::string, std::string>> texts;
      std::vector<Record> batch;
      for (std::uint64_t i = 1; i <= kBatch; ++i)
        texts.emplace_back(key_of(taken_ + i), std::to_string(taken_ + i));
      for (std::uint64_t i = 0; i < kBatch; ++i)
        batch.push_back({topic_, texts[i].first, texts[i].second, {}, 7, 0, taken_ + i + 1, from_micros(1)});
      while (!publish(batch)) std::this_thread::sleep_for(5ms);
      taken_ += kBatch;
      std::this_thread::sleep_for(1ms);
    }
  }

  bool publish(const std::vector<Record>& batch) {
    const auto began = SteadyClock::now();
    try {
      queue_.publish(batch);
      return true;
    } catch (const Unavailable&) {
      ++refused_;
      slowest_ = std::max(slowest_.load(), SteadyClock::now() - began);
      return false;
    }
  }

  Queue& queue_;
  const std::string topic_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<int> refused_{0};
  std::atomic<SteadyClock::duration> slowest_{SteadyClock::duration::zero()};
  std::thread thread_;
};

// What consumers have got, by the order of first appearances.
class Ledger {
 public:
  void operator()(std::span<const Message> batch) {
    const std::lock_guard lock(mutex_);
    for (const Message& message : batch) {
      const std::uint64_t number = std::stoull(std::string(message.payload));
      if (!seen_.insert(number).second) {
        ++repeated_;
        continue;
      }
      std::uint64_t& last = last_[std::string(message.key)];
      if (number < last) ++disordered_;
      last = number;
    }
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }
  int disordered() const { return disordered_; }
  int repeated() const { return repeated_; }

 private:
  mutable std::mutex mutex_;
  std::set<std::uint64_t> seen_;
  std::map<std::string, std::uint64_t> last_;
  std::atomic<int> disordered_{0}, repeated_{0};
};

class RabbitFaultsConcurrency : public testing::Test {
 protected:
  BatchConsumer::Options consumer() const {
    return {.topic = topic_,
            .group = group_,
            .max_wait = 10ms,
            .threads = 2,
            .retry_first = 5ms,
            .retry_max = 100ms};
  }
  // All that was published has arrived, each key in its order.
  static void expect_all(const Ledger& ledger, std::uint64_t published) {
    EXPECT_TRUE(eventually([&] { return ledger.size() >= published; }))
        << ledger.size() << " of " << published;
    EXPECT_EQ(ledger.size(), published);
    EXPECT_EQ(ledger.disordered(), 0);
    std::cout << published << " published, " << ledger.repeated() << " delivered again" << std::endl;
  }

  const std::string topic_ = fresh_name("topic");
  const std::string group_ = fresh_name("group");
};

TEST_F(RabbitFaultsConcurrency, ConnectionsThatAreCutUnderLoadLoseNothing) {
  TcpProxy proxy(rabbitmq().port());
  const auto queue = open_rabbit(4, {.url = RabbitmqServer::url(proxy.port())});
  Ledger ledger;
  BatchConsumer consumers(*queue, consumer(), std::ref(ledger));
  consumers.start();
  Load load(*queue, topic_);
  for (int cut = 0; cut < 15; ++cut) {
    std::this_thread::sleep_for(200ms);
    proxy.cut();
  }
  EXPECT_TRUE(eventually([&, before = load.taken()] { return load.taken() > before; }));
  const std::uint64_t published = load.stop();
  expect_all(ledger, published);
  EXPECT_EQ(load.refused(), 0) << "publish connects again by itself";
  EXPECT_TRUE(eventually([&] { return total_lag(*queue, topic_, group_) == 0; }));
}

TEST_F(RabbitFaultsConcurrency, ABrokerThatIsKilledAndStartedLosesNothing) {
  const auto queue = open_rabbit(4, {.publish_timeout = 500ms});
  Ledger ledger;
  BatchConsumer consumers(*queue, consumer(), std::ref(ledger));
  consumers.start();
  Load load(*queue, topic_);
  EXPECT_TRUE(eventually([&] { return load.taken() >= 1'000 && ledger.size() >= 500; }));
  rabbitmq().kill();
  EXPECT_TRUE(eventually([&] { return load.refused() >= 2; }));
  EXPECT_FALSE(queue->available());
  rabbitmq().start();
  EXPECT_TRUE(eventually([&, before = load.taken()] { return load.taken() > before + 1'000; }));
  const std::uint64_t published = load.stop();
  expect_all(ledger, published);
  EXPECT_LT(load.slowest(), 5s);
  EXPECT_TRUE(queue->available());
}

TEST_F(RabbitFaultsConcurrency, WhileTheBrokerIsAwayEventsWaitInTheJournal) {
  const TempDir directory;
  const auto queue = open_rabbit(4, {.publish_timeout = 500ms});
  Journal journal({.directory = directory / "", .size = 16 << 20, .lanes = 4});
  Producer producer(journal, *queue, {.linger = 1ms, .retry_max = 100ms});
  Ledger ledger;
  std::mutex mutex;
  std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>> ids;
  BatchConsumer consumers(*queue, consumer(), [&](std::span<const Message> batch) {
    {
      const std::lock_guard lock(mutex);
      for (const Message& message : batch) ids.emplace(message.producer, message.lane, message.sequence);
    }
    ledger(batch);  // last: what it has is looked at
  });
  consumers.start();
  std::uint64_t published = 0;
  const auto publish = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = Load::key_of(++published), payload = std::to_string(published);
      EXPECT_TRUE(producer.publish({.topic = topic_, .key = key, .payload = payload}));
    }
  };
  publish(2'000);
  EXPECT_TRUE(eventually([&] { return ledger.size() > 0; }));
  rabbitmq().kill();
  for (int i = 0; i < 10; ++i) {
    publish(500);
    std::this_thread::sleep_for(50ms);
  }
  rabbitmq().start();
  publish(1'000);
  EXPECT_TRUE(producer.flush(20s));
  expect_all(ledger, published);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(ids.size(), published) << "sent again with the ids that they had";
}

TEST_F(RabbitFaultsConcurrency, ABrokerThatStandsStillLosesNothingAndHoldsNobodyUp) {
  const auto queue =
      open_rabbit(4, {.connect_timeout = 500ms, .publish_timeout = 1s, .heartbeat = std::chrono::seconds(2)});
  Ledger ledger;
  BatchConsumer consumers(*queue, consumer(), std::ref(ledger));
  consumers.start();
  Load load(*queue, topic_);
  EXPECT_TRUE(eventually([&] { return load.taken() >= 1'000 && ledger.size() >= 500; }));
  rabbitmq().pause();
  std::this_thread::sleep_for(10s);
  EXPECT_GE(load.refused(), 3);
  EXPECT_LT(load.slowest(), 4s);
  EXPECT_FALSE(queue->available());
  rabbitmq().resume();
  EXPECT_TRUE(eventually([&, before = load.taken()] { return load.taken() > before + 1'000; }));
  const std::uint64_t published = load.stop();
  expect_all(ledger, published);
}

TEST_F(RabbitFaultsConcurrency, AMemberThatIsGoneIsFollowedByTheOneThatStandsBy) {
  TcpProxy proxy(rabbitmq().port());
  const auto queue = open_rabbit(4);
  const auto doomed =
      open_rabbit(4, {.url = RabbitmqServer::url(proxy.port()), .heartbeat = std::chrono::seconds(1)});
  doomed->subscribe(topic_, group_);
  queue->publish(Records(100, topic_));
  const auto active = doomed->join(topic_, group_);
  std::vector<Message> messages;
  while (messages.size() < 60) ASSERT_TRUE(active->take(messages, {.messages = 60 - messages.size()}));
  const auto standby = queue->join(topic_, group_);
  std::vector<Message> theirs;
  ASSERT_TRUE(standby->take(theirs, {}));
  EXPECT_TRUE(theirs.empty()) << "each partition has one member at a time";
  EXPECT_TRUE(active->keep());
  proxy.freeze(true);
  const auto frozen = SteadyClock::now();
  Ledger ledger;
  while (ledger.size() < 100 && SteadyClock::now() < frozen + 15s) {
    theirs.clear();
    ASSERT_TRUE(standby->take(theirs, {}));
    ledger(theirs);
    standby->commit();
  }
  EXPECT_EQ(ledger.size(), 100U) << "what wasn't committed comes again";
  EXPECT_EQ(ledger.disordered(), 0);
  EXPECT_LT(SteadyClock::now() - frozen, 10s);
  EXPECT_TRUE(eventually([&] { return !active->keep(); })) << "it knows by the heartbeats";
  active->commit();  // is nothing
  active->rewind();
  EXPECT_TRUE(active->keep());
  EXPECT_TRUE(eventually([&] { return total_lag(*queue, topic_, group_) == 0; }));
  proxy.freeze(false);
}

TEST_F(RabbitFaultsConcurrency, WhatALostConnectionDeliveredIsVoidAndComesAgainInItsOrder) {
  TcpProxy proxy(rabbitmq().port());
  const auto queue = open_rabbit(1, {.url = RabbitmqServer::url(proxy.port())});
  queue->subscribe(topic_, group_);
  queue->publish(Records(100, topic_, 1));
  const auto member = queue->join(topic_, group_);
  std::vector<Message> messages;
  while (messages.size() < 30) ASSERT_TRUE(member->take(messages, {.messages = 30 - messages.size()}));
  member->commit();
  const std::int64_t offset = messages.back().offset;
  messages.clear();
  while (messages.size() < 30) ASSERT_TRUE(member->take(messages, {.messages = 30 - messages.size()}));
  proxy.cut();
  EXPECT_TRUE(eventually([&] { return !member->keep(); }));
  EXPECT_EQ(messages.back().payload, "59") << "the views are valid all the same";
  member->commit();  // its tags mean nothing any more, or something else
  std::vector<std::string> payloads;
  const auto until = SteadyClock::now() + 10s;
  while (payloads.size() < 70 && SteadyClock::now() < until) {
    messages.clear();
    try {
      ASSERT_TRUE(member->take(messages, {}));
    } catch (const Unavailable&) {  // it is connecting
      std::this_thread::sleep_for(10ms);
    }
    for (const Message& message : messages) {
      EXPECT_GT(message.offset, offset);
      payloads.emplace_back(message.payload);
    }
  }
  // The broker may not have got the first commit before the cut.
  ASSERT_GE(payloads.size(), 70U);
  for (std::size_t i = 1; i < payloads.size(); ++i)
    EXPECT_EQ(std::stoi(payloads[i]), std::stoi(payloads[i - 1]) + 1);
  EXPECT_EQ(payloads.back(), "99");
}

TEST_F(RabbitFaultsConcurrency, ABrokerThatTakesNothingIsBackPressureAndNotAHang) {
  const auto queue = open_rabbit(1, {.publish_timeout = 1s});
  queue->subscribe(topic_, group_);
  queue->publish(Records(10, topic_));
  const auto member = queue->join(topic_, group_);
  rabbitmq().control({"set_vm_memory_high_watermark", "0"});
  std::vector<std::string> faults;
  for (int i = 0; i < 3; ++i) {
    const auto began = SteadyClock::now();
    try {
      queue->publish(Records(10, topic_));
      ADD_FAILURE() << "it was taken";
    } catch (const Unavailable& error) {
      faults.emplace_back(error.what());
    }
    EXPECT_LT(SteadyClock::now() - began, 4s);
  }
  EXPECT_THAT(faults, testing::Each(HasSubstr("takes nothing")));
  Ledger ledger;
  std::vector<Message> messages;
  while (ledger.size() < 10) {
    ASSERT_TRUE(member->take(messages, {}));
    ledger(messages);
    member->commit();
    messages.clear();
  }
  rabbitmq().control({"set_vm_memory_high_watermark", "0.4"});
  EXPECT_TRUE(eventually([&] {
    try {
      queue->publish(Records(10, topic_));
      return true;
    } catch (const Unavailable&) {
      return false;
    }
  }));
  EXPECT_LE(total_lag(*queue, topic_, group_), 20) << "one batch that waited in the connection, and this one";
}

TEST_F(RabbitFaultsConcurrency, WhatTheBrokerRefusesIsNotTaken) {
  const auto queue = open_rabbit(1);
  queue->subscribe(topic_, group_);
  rabbitmq().control(
      {"set_policy", topic_, '^' + topic_ + "\\.", R"({"max-length": 5, "overflow": "reject-publish"})"});
  std::string fault;
  EXPECT_TRUE(eventually([&] {  // the policy takes a moment
    try {
      queue->publish(Records(50, topic_));
    } catch (const Unavailable& error) {
      fault = error.what();
    }
    return !fault.empty();
  }));
  EXPECT_THAT(fault, HasSubstr("refused"));
  EXPECT_TRUE(queue->available()) << "it is there";
  rabbitmq().control({"clear_policy", topic_});
  EXPECT_TRUE(eventually([&] {
    try {
      queue->publish(Records(50, topic_));
      return true;
    } catch (const Unavailable&) {
      return false;
    }
  }));
}

TEST_F(RabbitFaultsConcurrency, StopEndsAPublishThatWaits) {
  TcpProxy proxy(rabbitmq().port());
  const auto queue = open_rabbit(1, {.url = RabbitmqServer::url(proxy.port()), .publish_timeout = 60s});
  queue->subscribe(topic_, group_);
  queue->publish(Records(10, topic_));
  proxy.freeze(true);
  std::string fault;
  std::thread publisher([&] {
    try {
      queue->publish(Records(10, topic_));
    } catch (const Unavailable& error) {
      fault = error.what();
    }
  });
  std::this_thread::sleep_for(100ms);
  const auto began = SteadyClock::now();
  queue->stop();
  publisher.join();
  EXPECT_LT(SteadyClock::now() - began, 10s);
  EXPECT_NE(fault, "");
  EXPECT_THROW(queue->publish(Records(1, topic_)), Unavailable);
  EXPECT_THROW(queue->create_topic(fresh_name("topic")), Unavailable);
}

}  // namespace
}  // namespace weir::queue

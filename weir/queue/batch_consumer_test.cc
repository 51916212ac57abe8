#include "weir/queue/batch_consumer.h"

#include <gtest/gtest.h>

#include "weir/base/fault.h"
#include "weir/queue/dead_letter.h"
#include "weir/queue/record_batch.h"
#include "weir/queue/test_support.h"
#include "weir/telemetry/metrics.h"
#include "weir/testing/temp_dir.h"

namespace weir::queue {
namespace {

using namespace std::chrono_literals;

BatchConsumer::Options quick(const std::string& group) {
  return {.topic = "t", .group = group, .max_wait = 1ms, .retry_first = 1ms, .retry_max = 4ms};
}

double outcome(const std::string& group, const std::string& what) {
  return telemetry::counter("weir_queue_consumed_total", "Messages that a group was given, by how it went",
                            {{"topic", "t"}, {"group", group}, {"outcome", what}})
      .value();
}

struct Letters {
  std::vector<DeadLetter> letters;
  std::vector<std::string> keys;
  std::vector<std::uint64_t> sequences;
};

Letters dead_letters(EmbeddedQueue& queue, const std::string& group) {
  Letters found;
  const std::string topic = dead_letter_topic("t", group);
  for (std::uint32_t partition = 0; partition < queue.partitions(topic); ++partition)
    for (const auto& batch : queue.fetch(topic, partition, 0, 1'000)) {
      BatchReader reader(batch.records);
      for (Record record; reader.next(record);) {
        found.letters.push_back(decode_dead_letter(record.payload).value());
        found.keys.emplace_back(record.key);
        found.sequences.push_back(record.sequence);
      }
    }
  return found;
}

bool consumed(EmbeddedQueue& queue, const std::string& group) {
  return eventually([&] { return total_lag(queue, "t", group) == 0; });
}

TEST(BatchConsumerConcurrency, TwoGroupsEachGetEverythingInOrderByKey) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db"});
  Seen first, second;
  auto options = quick("first");
  options.threads = 3;
  BatchConsumer one(queue, options, std::ref(first));
  one.start();
  std::optional<BatchConsumer> two;
  for (int i = 0; i < 10; ++i) {
    queue.publish(Records(500));
    if (i == 5) {
      two.emplace(queue, quick("second"), std::ref(second));
      two->start();
    }
  }
  ASSERT_TRUE(consumed(queue, "first"));
  ASSERT_TRUE(consumed(queue, "second"));
  for (const Seen* seen : {&first, &second}) {
    EXPECT_EQ(seen->count(), 5'000u);
    const auto of_k3 = seen->of("k3");
    ASSERT_EQ(of_k3.size(), 500u);
    for (std::size_t i = 0; i < 500; ++i) EXPECT_EQ(of_k3[i], std::to_string((i % 50) * 10 + 3));
  }
  EXPECT_EQ(outcome("first", "ok"), 5'000);
}

TEST(BatchConsumerConcurrency, BatchesAreBoundedByNumberAndGatherForATime) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db"});
  queue.publish(Records(1'000));
  auto options = quick("bounded");
  options.max_batch = 300;
  Seen seen;
  BatchConsumer consumer(queue, options, std::ref(seen));
  consumer.start();
  ASSERT_TRUE(consumed(queue, "bounded"));
  EXPECT_EQ(seen.count(), 1'000u);
  EXPECT_EQ(seen.largest(), 300u);
  EXPECT_EQ(seen.calls(), 4u);

  auto patient = quick("patient");
  patient.max_wait = 60s;
  patient.max_batch = 1'010;
  Seen gathered;
  BatchConsumer waiting(queue, patient, std::ref(gathered));
  waiting.start();
  for (int i = 0; i < 10; ++i) queue.publish(Records(1));  // the tenth completes the batch
  ASSERT_TRUE(consumed(queue, "patient"));
  EXPECT_EQ(gathered.calls(), 1u);
  EXPECT_EQ(gathered.largest(), 1'010u);
}

TEST(BatchConsumerConcurrency, GoesOnWhereItWasAndRepeatsWhatWasNotCommitted) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
  queue.publish(Records(10));
  Seen before;
  {
    BatchConsumer consumer(queue, quick("g"), std::ref(before));
    consumer.start();
    ASSERT_TRUE(consumed(queue, "g"));
  }
  queue.publish(Records(7));
  std::atomic<bool> called{false};
  {
    // The world is away and the consumer is stopped: nothing is committed.
    BatchConsumer consumer(queue, quick("g"), [&](auto) {
      called = true;
      throw Unavailable("away");
    });
    consumer.start();
    ASSERT_TRUE(eventually([&] { return called.load(); }));
  }
  EXPECT_EQ(total_lag(queue, "t", "g"), 7);
  Seen after;
  BatchConsumer consumer(queue, quick("g"), std::ref(after));
  consumer.start();
  ASSERT_TRUE(consumed(queue, "g"));
  EXPECT_EQ(before.count(), 10u);
  EXPECT_EQ(after.count(), 7u);
}

TEST(BatchConsumerConcurrency, RetriesTheSameBatchWhileTheWorldIsAway) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
  queue.publish(Records(10));
  using enum sql::ErrorKind;
  // The last two: the store's server restarts, also while the COMMIT is under way.
  constexpr std::array kAway{full, full, busy, io, corrupt, lost, unknown};
  std::size_t calls = 0;
  Seen seen;
  BatchConsumer consumer(queue, quick("away"), [&](std::span<const Message> batch) {
    EXPECT_EQ(batch.size(), 10u);
    if (calls++ < kAway.size()) throw sql::Error(kAway[calls - 1], "the store is in trouble");
    seen(batch);
  });
  consumer.start();
  ASSERT_TRUE(consumed(queue, "away"));
  EXPECT_EQ(calls, 8u);
  EXPECT_EQ(seen.count(), 10u);
  EXPECT_EQ(outcome("away", "retried"), 70);
  EXPECT_EQ(outcome("away", "dead"), 0);
}

// The poisonous message is first, in the middle, last, and alone in its batch.
TEST(BatchConsumerConcurrency, IsolatesAPoisonousMessageAndParksIt) {
  int test = 0;
  for (const std::size_t poison : {0u, 4u, 9u}) {
    for (const std::size_t batch_size : {10u, 1u}) {
      TempDir dir;
      EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
      queue.publish(Records(10));
      const std::string group = "poison" + std::to_string(++test);
      auto options = quick(group);
      options.max_batch = batch_size;
      Seen seen;
      int alone = 0;
      BatchConsumer consumer(queue, options, [&](std::span<const Message> batch) {
        for (const Message& message : batch)
          if (message.payload == std::to_string(poison)) {
            if (batch.size() == 1) ++alone;
            throw std::runtime_error("can't read it");
          }
        seen(batch);
      });
      consumer.start();
      ASSERT_TRUE(consumed(queue, group));
      EXPECT_EQ(alone, 3);
      EXPECT_EQ(seen.count(), 9u);
      EXPECT_TRUE(seen.of("k" + std::to_string(poison)).empty());
      const auto dead = dead_letters(queue, group);
      ASSERT_EQ(dead.letters.size(), 1u);
      EXPECT_EQ(dead.letters[0].reason, "can't read it");
      EXPECT_EQ(dead.letters[0].topic, "t");
      EXPECT_EQ(dead.letters[0].group, group);
      EXPECT_EQ(dead.letters[0].offset, static_cast<std::int64_t>(poison));
      EXPECT_EQ(dead.letters[0].payload, std::to_string(poison));
      EXPECT_EQ(dead.keys[0], "k" + std::to_string(poison));
      EXPECT_EQ(dead.sequences[0], poison + 1);
      EXPECT_EQ(outcome(group, "ok"), 9);
      EXPECT_EQ(outcome(group, "dead"), 1);
    }
  }
}

TEST(BatchConsumerConcurrency, AllPoisonousAreAllParkedAndAConstraintIsPoison) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db"});
  queue.publish(Records(50));
  BatchConsumer consumer(queue, quick("all"), [](std::span<const Message>) {
    throw sql::Error(sql::ErrorKind::constraint, "CHECK failed");
  });
  consumer.start();
  ASSERT_TRUE(consumed(queue, "all"));
  EXPECT_EQ(dead_letters(queue, "all").letters.size(), 50u);
}

TEST(BatchConsumerConcurrency, ParksWhatTheHandlerNamesWithoutRetrying) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
  queue.publish(Records(10));
  Seen seen;
  int calls = 0;
  BatchConsumer consumer(queue, quick("park"), [&](std::span<const Message> batch) {
    if (++calls == 1) throw Park({2, 7, 2}, "too old");
    seen(batch);
  });
  consumer.start();
  ASSERT_TRUE(consumed(queue, "park"));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(seen.count(), 8u);
  const auto dead = dead_letters(queue, "park");
  EXPECT_EQ(dead.keys, (std::vector<std::string>{"k2", "k7"}));
}

TEST(BatchConsumerConcurrency, GoesOnWhereTheRetentionHasTakenWhatItWanted) {
  TempDir dir;
  ManualClock clock;
  EmbeddedQueue queue(
      {.path = dir / "queue.db", .partitions = 1, .retention = std::chrono::hours(1), .clock = &clock});
  queue.subscribe("t", "slow");
  queue.publish(Records(5));
  clock.advance(2h);
  queue.prune_step();
  queue.publish(Records(3));
  Seen seen;
  BatchConsumer consumer(queue, quick("slow"), std::ref(seen));
  consumer.start();
  ASSERT_TRUE(consumed(queue, "slow"));
  EXPECT_EQ(seen.count(), 3u);
}

TEST(BatchConsumerConcurrency, SkipsAndReportsADamagedBatch) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
  for (int i = 0; i < 3; ++i) queue.publish(Records(5));
  {
    sql::Database file({.path = dir / "queue.db"});
    file.write_now([](sql::Session& session) {
      session.execute(sql::Query{"test", "damage",
                                 "UPDATE queue_batches SET records = zeroblob(99) WHERE last_offset = 9"});
    });
  }
  const auto damaged =
      telemetry::counter("weir_queue_damaged_total", "Places where stored events were damaged and skipped",
                         {{"where", "queue"}});
  const double before = damaged.value();
  Seen seen;
  BatchConsumer consumer(queue, quick("damaged"), std::ref(seen));
  consumer.start();
  ASSERT_TRUE(consumed(queue, "damaged"));
  EXPECT_EQ(seen.count(), 10u);
  EXPECT_EQ(damaged.value(), before + 1);
}

// A queue that can't be reached at first, and whose members are told that what they took has gone.
struct Faults {
  std::atomic<int> away{0};    // calls of subscribe() and join() that fail
  std::atomic<int> losses{0};  // calls of keep() that say so
};

class FaultySubscription final : public Subscription {
 public:
  FaultySubscription(std::unique_ptr<Subscription> behind, Faults& faults)
      : behind_(std::move(behind)), faults_(faults) {}
  bool take(std::vector<Message>& messages, const Limits& limits) override {
    return behind_->take(messages, limits);
  }
  void commit() override { behind_->commit(); }
  bool keep() noexcept override { return faults_.losses-- <= 0; }
  void rewind() override { behind_->rewind(); }
  void interrupt() noexcept override { behind_->interrupt(); }

 private:
  const std::unique_ptr<Subscription> behind_;
  Faults& faults_;
};

class FaultyQueue final : public Queue {
 public:
  FaultyQueue(Queue& behind, Faults& faults) : behind_(behind), faults_(faults) {}
  void create_topic(const std::string& topic) override { behind_.create_topic(topic); }
  std::vector<std::string> topics() override { return behind_.topics(); }
  std::uint32_t partitions(const std::string& topic) override { return behind_.partitions(topic); }
  void publish(std::span<const Record> records) override { behind_.publish(records); }
  void subscribe(const std::string& topic, const std::string& group, From from) override {
    if (faults_.away-- > 0) throw Unavailable("no broker");
    behind_.subscribe(topic, group, from);
  }
  std::unique_ptr<Subscription> join(const std::string& topic, const std::string& group,
                                     Share share) override {
    if (faults_.away-- > 0) throw Unavailable("no broker");
    return std::make_unique<FaultySubscription>(behind_.join(topic, group, share), faults_);
  }
  std::vector<Lag> lag() override { return behind_.lag(); }
  bool available() const noexcept override { return behind_.available(); }
  void stop() override { behind_.stop(); }

 private:
  Queue& behind_;
  Faults& faults_;
};

TEST(BatchConsumerConcurrency, AQueueThatIsAwayAtTheStartIsTriedAgain) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db"});
  Faults faults;
  faults.away = 9;
  FaultyQueue late(queue, faults);
  Seen seen;
  auto options = quick("late");
  options.threads = 2;
  BatchConsumer consumer(late, options, std::ref(seen));
  consumer.start();
  queue.publish(Records(100));
  ASSERT_TRUE(eventually([&] { return seen.count() == 100; }));
  faults.away = 1'000'000;
  BatchConsumer hopeless(late, quick("never"), std::ref(seen));
  hopeless.start();
  hopeless.stop();
}

TEST(BatchConsumerConcurrency, WhatWentToAnotherMemberIsDroppedAndComesAgainWhenItComesBack) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
  Faults faults;
  faults.losses = 2;
  FaultyQueue losing(queue, faults);
  queue.publish(Records(10));
  std::vector<std::size_t> sizes;
  Seen seen;
  BatchConsumer consumer(losing, quick("lost"), [&](std::span<const Message> batch) {
    sizes.push_back(batch.size());
    // Two tries end in the loss of the partition, then one in the world's coming back.
    if (sizes.size() <= 3) throw Unavailable("away");
    seen(batch);
  });
  consumer.start();
  ASSERT_TRUE(consumed(queue, "lost"));
  EXPECT_EQ(sizes, (std::vector<std::size_t>{10, 10, 10, 10}));
  EXPECT_EQ(seen.count(), 10U);
  EXPECT_EQ(outcome("lost", "retried"), 10) << "once; what came again was no retry";
}

TEST(BatchConsumerConcurrency, StopFinishesTheBatchInHand) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
  queue.publish(Records(10));
  std::atomic<bool> in_hand{false}, finish{false};
  BatchConsumer consumer(queue, quick("stop"), [&](auto) {
    in_hand = true;
    eventually([&] { return finish.load(); });
  });
  consumer.start();
  ASSERT_TRUE(eventually([&] { return in_hand.load(); }));
  std::thread stopper([&] { consumer.stop(); });
  finish = true;
  stopper.join();
  EXPECT_EQ(total_lag(queue, "t", "stop"), 0);
}

TEST(BatchConsumerConcurrency, EndsWhenTheQueueWasStoppedFirst) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db"});
  BatchConsumer consumer(queue, quick("orphan"), [](auto) {});
  consumer.start();
  queue.stop();
  consumer.stop();
}

TEST(BatchConsumerConcurrency, StopsAtOnceWhenThereIsNothingToDo) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db"});
  BatchConsumer consumer(queue, quick("idle"), [](auto) {});
  consumer.start();
  std::this_thread::sleep_for(5ms);  // let it fall asleep
  const auto begin = std::chrono::steady_clock::now();
  consumer.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, EmbeddedQueue::kForeignLook / 2);
}

}  // namespace
}  // namespace weir::queue

#include "weir/queue/producer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "weir/queue/test_support.h"
#include "weir/testing/io_threads.h"
#include "weir/testing/temp_dir.h"

namespace weir::queue {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

struct House {
  explicit House(Producer::Options options = {}, std::size_t journal_size = Journal::kMinSize)
      : journal({.directory = dir / "", .size = journal_size}),
        queue({.path = dir / "queue.db", .full_sync = options.acks == Acks::all}),
        producer(journal, queue, options) {}
  std::int64_t in_queue(const std::string& topic) {
    std::int64_t sum = 0;
    for (const auto end : queue.ends(topic)) sum += end;
    return sum;
  }
  bool publish_acked(const Event& event) { return run_here(producer.publish_acked(event)); }
  TempDir dir;
  Journal journal;
  EmbeddedQueue queue;
  Producer producer;
};

TEST(Acks, AreReadAsKafkaWritesThem) {
  EXPECT_EQ(parse_acks("0"), Acks::none);
  EXPECT_EQ(parse_acks("1"), Acks::leader);
  EXPECT_EQ(parse_acks("all"), Acks::all);
  EXPECT_EQ(parse_acks("-1"), Acks::all);
  EXPECT_EQ(parse_acks(""), std::nullopt);
  EXPECT_EQ(parse_acks("2"), std::nullopt);
}

TEST(ProducerConcurrency, MovesEventsSoonWithoutBeingAsked) {
  House house;
  house.queue.create_topic("t");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(house.producer.publish({"t", "k", "hello"}));
  ASSERT_TRUE(eventually([&] { return house.in_queue("t") == 1; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_TRUE(eventually([&] { return house.journal.waiting_bytes() == 0; }));
}

TEST(ProducerConcurrency, AckedPublishesAreInTheQueueWhenTheyReturn) {
  for (const Acks acks : {Acks::leader, Acks::all}) {
    House house({.acks = acks, .linger = std::chrono::hours(1)});  // nobody waits for the linger
    for (int i = 1; i <= 20; ++i) {
      ASSERT_TRUE(house.publish_acked({"t", "k", "x"}));
      ASSERT_EQ(house.in_queue("t"), i);
    }
  }
}

TEST(ProducerConcurrency, WithoutAcksThePublishReturnsFromTheJournal) {
  House house({.acks = Acks::none, .linger = std::chrono::hours(1)});
  house.producer.flush(1s);  // the sender is resting now
  ASSERT_TRUE(house.publish_acked({"t", "k", "x"}));
  EXPECT_TRUE(house.producer.flush(20s));
  EXPECT_EQ(house.in_queue("t"), 1);
}

TEST(ProducerConcurrency, NothingIsSentBeforeItsGroupsAreKnown) {
  std::atomic<int> tries{0};
  Producer::Options options{.linger = 1ms, .retry_first = 1ms, .retry_max = 2ms};
  options.prepare = [&](Queue& queue) {
    if (++tries < 4) throw Unavailable("no broker");
    queue.subscribe("t", "late", From::latest);
  };
  House house(options);
  ASSERT_TRUE(house.producer.publish({"t", "k", "x"}));
  ASSERT_TRUE(eventually([&] { return total_lag(house.queue, "t", "late") == 1; }));
  ASSERT_TRUE(house.publish_acked({"t", "k", "y"}));
  EXPECT_EQ(tries, 4);
}

TEST(ProducerConcurrency, ManyCoroutinesAreAllAnswered) {
  House house({.linger = std::chrono::hours(1)}, 8 << 20);
  asio::io_context io;
  std::atomic<int> answered{0};
  for (int i = 0; i < 500; ++i)
    asio::co_spawn(
        io,
        [&, i]() -> asio::awaitable<void> {
          const std::string key = "article:" + std::to_string(i % 17);
          for (int j = 0; j < 10; ++j)
            if (co_await house.producer.publish_acked({"t", key, "x"})) ++answered;
        },
        asio::use_future);
  std::thread other([&] { io.run(); });
  io.run();
  other.join();
  EXPECT_EQ(answered, 5'000);
  EXPECT_EQ(house.in_queue("t"), 5'000);
}

TEST(ProducerConcurrency, WhatIsLeftInTheJournalIsSentByTheNextStart) {
  TempDir dir;
  std::uint64_t old_producer = 0;
  {
    Journal journal({.directory = dir / "", .size = Journal::kMinSize});
    old_producer = journal.producer();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(journal.append({"t", "k", std::to_string(i)}));
  }
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
  Journal journal({.directory = dir / "", .size = Journal::kMinSize});
  Producer producer(journal, queue, {});
  ASSERT_TRUE(producer.flush(20s));
  std::vector<std::uint64_t> producers;
  BatchConsumer consumer(queue, {.topic = "t", .group = "g", .max_wait = 1ms}, [&](auto batch) {
    for (const Message& message : batch) producers.push_back(message.producer);
  });
  consumer.start();
  ASSERT_TRUE(eventually([&] { return total_lag(queue, "t", "g") == 0; }));
  consumer.stop();
  EXPECT_EQ(producers, std::vector<std::uint64_t>(100, old_producer));
}

// The queue's disk is full for a while: nobody who publishes waits, those who want an answer get Unavailable,
// the journal keeps everything, and all of it arrives in order once there is space again.
TEST(ProducerConcurrency, WhileTheQueueIsAwayTheJournalIsTheSpool) {
  House house({.retry_first = 1ms, .retry_max = 10ms}, 1 << 20);
  house.queue.create_topic("t");
  auto* old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit none = old;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_FSIZE, &none);
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(house.producer.publish({"t", "k", std::to_string(i)}));
  // By now the sender has a batch in hand that it can't get rid of; who comes later isn't left waiting for
  // it.
  const auto swallowed =
      telemetry::counter("weir_swallowed_errors_total", "Failures that were logged and lived with",
                         {{"where", "queue.publish"}});
  const double failed = swallowed.value();
  ASSERT_TRUE(eventually([&] { return swallowed.value() > failed; }));
  EXPECT_THROW(house.publish_acked({"t", "k", "1000"}), Unavailable);
  EXPECT_EQ(house.in_queue("t"), 0);
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(house.producer.flush(20s));
  EXPECT_EQ(house.in_queue("t"), 1'001);
  Seen seen;
  BatchConsumer consumer(house.queue, {.topic = "t", .group = "g", .max_wait = 1ms}, std::ref(seen));
  consumer.start();
  ASSERT_TRUE(eventually([&] { return seen.count() == 1'001; }));
  const auto of_k = seen.of("k");
  for (int i = 0; i <= 1'000; ++i) EXPECT_EQ(of_k[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST(ProducerConcurrency, WhenTheJournalIsFullPublishSaysSo) {
  House house({.linger = std::chrono::hours(1)});
  house.producer.flush(1s);
  const std::string payload(10'000, 'x');
  int taken = 0;
  while (house.producer.publish({"t", "k", payload})) ++taken;
  EXPECT_GT(taken, 20);
  EXPECT_FALSE(house.publish_acked({"t", "k", payload}));
  EXPECT_TRUE(house.producer.flush(20s));
  EXPECT_EQ(house.in_queue("t"), taken);
}

TEST(ProducerConcurrency, StopSendsWhatIsThere) {
  House house({.linger = std::chrono::hours(1)});
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(house.producer.publish({"t", "k", "x"}));
  house.producer.stop();
  EXPECT_EQ(house.in_queue("t"), 1'000);
  EXPECT_THROW(house.publish_acked({"t", "k", "x"}), Unavailable);
}

}  // namespace
}  // namespace weir::queue

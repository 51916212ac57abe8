// The client on a cluster that changes under load: slots that move, a primary that dies.
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>

#include "weir/base/random.h"
#include "weir/redis/cluster_fixture.h"
#include "weir/redis/subscriber.h"
#include "weir/testing/sanitized.h"

namespace weir::redis {
namespace {

using Clock = std::chrono::steady_clock;

// How much later than its deadline a call may end on a machine that is busy.
constexpr auto kSlack = WEIR_SANITIZED ? 3s : 1s;

// One worker's counters, in as many slots, and what it knows of them.
struct Counters {
  Counters(int worker, int many) {
    for (int i = 0; i < many; ++i)
      keys.push_back("{" + std::to_string(worker) + ":" + std::to_string(i) + "}n");
    counted.resize(keys.size());
  }
  std::vector<std::string> keys;
  std::vector<std::int64_t> counted;
  int wrong = 0;
};

asio::awaitable<void> count(Client& client, Counters& counters, std::uint64_t seed,
                            const std::atomic<bool>& stop) {
  static const Script add("add", "return redis.call('INCRBY', KEYS[1], ARGV[1])");
  Random random(seed);
  while (!stop) {
    const auto one = random.below(counters.keys.size());
    const std::string& key = counters.keys[one];
    switch (random.below(4)) {
      case 0:
        counters.wrong +=
            (co_await client.execute(Command("INCR", key))).integer() == ++counters.counted[one] ? 0 : 1;
        break;
      case 1:
        counters.wrong +=
            (co_await client.eval(add, {key}, {"1"})).integer() == ++counters.counted[one] ? 0 : 1;
        break;
      case 2: {
        std::vector<Command> both{Command("INCR", key), Command("INCR", key)};
        counters.counted[one] += 2;
        const auto replies = co_await client.transaction(std::move(both));
        counters.wrong += replies[1].integer() == counters.counted[one] ? 0 : 1;
        break;
      }
      default: {
        std::vector<Client::ScriptCall> calls;
        for (const auto& each : counters.keys) calls.push_back({{each}, {"1"}});
        const auto replies = co_await client.eval_many(add, std::move(calls));
        for (std::size_t i = 0; i < replies.size(); ++i)
          counters.wrong += replies[i].integer() == ++counters.counted[i] ? 0 : 1;
      }
    }
  }
}

// Each increment counts once, wherever its slot is just now.
TEST(ClusterConcurrency, NothingIsLostOrDoneTwiceWhileSlotsMove) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  TestCluster cluster;
  IoThreads loop(2);
  Client client(loop.executor(),
                {.seeds = cluster.seeds(), .name = "moving", .timeout = 20s, .refresh_gap = 20ms});
  std::vector<Counters> counters;
  for (int i = 0; i < 8; ++i) counters.emplace_back(i, 6);
  std::atomic<bool> stop{false};
  std::vector<std::future<void>> workers;
  for (std::size_t i = 0; i < counters.size(); ++i)
    workers.push_back(loop.start(count(client, counters[i], seed + i, stop)));
  Random random(seed);
  for (int move = 0; move < 40; ++move) {
    const auto& some = counters[random.below(counters.size())].keys;
    const int slot = slot_of(some[random.below(some.size())]);
    const auto from = cluster.owner_of(slot);
    cluster.move_slot(slot, from, (from + 1 + random.below(2)) % TestCluster::kPrimaries,
                      [] { std::this_thread::sleep_for(5ms); });
  }
  stop = true;
  for (auto& one : workers) one.get();
  for (const auto& one : counters) {
    EXPECT_EQ(one.wrong, 0);
    for (std::size_t i = 0; i < one.keys.size(); ++i) {
      if (one.counted[i] > 0)
        EXPECT_EQ(loop.run(client.execute(Command("GET", one.keys[i]))).text(),
                  std::to_string(one.counted[i]));
    }
  }
  EXPECT_GT(redirects("moving", "ask"), 10);
  EXPECT_GE(redirects("moving", "moved"), 10);
  std::printf("%.0f ASK, %.0f MOVED, %.0f TRYAGAIN\n", redirects("moving", "ask"),
              redirects("moving", "moved"), redirects("moving", "try_again"));
}

// Coroutines on the threads of several contexts, cancellations and broken connections: each reply of each batch reaches
// whom it is for.
TEST(ClusterConcurrency, EveryReplyReachesItsCoroutine) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  TestCluster cluster;
  IoThreads home(2);
  IoThreads workers[2] = {IoThreads(2), IoThreads(1)};
  Client client(home.executor(),
                {.seeds = cluster.seeds(), .name = "crowd", .timeout = 10s, .backoff_first = 1ms});
  const Script echo("echo", "return KEYS[1] .. ARGV[1]", Script::Repeat::harmless);
  std::atomic<int> wrong{0}, done{0}, cancelled{0}, failed{0};
  const auto batch = [&](std::string mine) -> asio::awaitable<void> {
    std::vector<Client::ScriptCall> calls;
    for (int i = 0; i < 12; ++i) calls.push_back({{std::to_string(i)}, {mine}});
    const auto replies = co_await client.eval_many(echo, std::move(calls));
    for (int i = 0; i < 12; ++i) {
      const auto& reply = replies[static_cast<std::size_t>(i)];
      ++(reply.is_error() ? failed : reply.text() == std::to_string(i) + mine ? done : wrong);
    }
  };
  const auto worker = [&](int self) -> asio::awaitable<void> {
    Random random(seed + static_cast<std::uint64_t>(self));
    for (int i = 0; i < 60; ++i) {
      asio::cancellation_signal signal;
      const auto strand = asio::make_strand(co_await asio::this_coro::executor);
      auto result = asio::co_spawn(strand, batch(":" + std::to_string(self) + ":" + std::to_string(i)),
                                   asio::bind_cancellation_slot(signal.slot(), asio::use_future));
      if (random.chance(0.3)) {
        co_await pause(std::chrono::microseconds(random.below(2'000)));
        co_await asio::co_spawn(
            strand,
            [&]() -> asio::awaitable<void> {
              signal.emit(asio::cancellation_type::terminal);
              co_return;
            },
            asio::use_awaitable);
      }
      while (result.wait_for(0s) != std::future_status::ready) co_await pause(1ms);
      try {
        result.get();
      } catch (const boost::system::system_error&) {
        ++cancelled;
      } catch (const Unavailable&) {
        ++failed;
      }
    }
  };
  std::vector<std::future<void>> all;
  for (int i = 0; i < 12; ++i) all.push_back(workers[i % 2].start(worker(i)));
  for (int i = 0; i < 9; ++i) {
    cluster.ask(static_cast<std::size_t>(i) % TestCluster::kPrimaries,
                {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    home.run(pause(10ms));
  }
  for (auto& one : all) one.get();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(done, 2'000);
  EXPECT_GT(cancelled, 0);
  EXPECT_TRUE(soon([&] { return client.waiting() == 0U; }));
}

// What a crowd of callers with a short deadline sees.
struct Crowd {
  Crowd(TestCluster& cluster, std::string name, bool fail_fast)
      : client(
            loop.executor(),
            {.seeds = cluster.seeds(), .name = std::move(name), .timeout = 300ms, .fail_fast = fail_fast}) {
    for (int i = 0; i < 8; ++i) workers.push_back(loop.start(work(i)));
  }
  void end() {
    stop = true;
    for (auto& one : workers) one.get();
  }
  asio::awaitable<void> work(int self) {
    for (int i = 0; !stop; ++i) {
      const std::string key = std::to_string(self) + ":" + std::to_string(i % 50);
      const auto began = Clock::now();
      try {
        co_await client.execute(Command("SET", key, i));
        ++done;
        const int slot = slot_of(key);
        if (slot >= kThirds[1] && slot < kThirds[2]) ++done_in_the_middle;
      } catch (const Unavailable&) {
        ++failed;
      }
      if (Clock::now() - began > 300ms + kSlack) ++overdue;
      co_await pause(2ms);
    }
  }
  IoThreads loop{1};
  Client client;
  std::atomic<bool> stop{false};
  std::atomic<int> done{0}, done_in_the_middle{0}, failed{0}, overdue{0};
  std::vector<std::future<void>> workers;
};

// The middle third's primary is killed, and later comes back as a replica.
TEST(ClusterConcurrency, APrimaryThatDiesIsReplaced) {
  TestCluster cluster;
  Crowd patient(cluster, "patient", false), hasty(cluster, "hasty", true);
  Client idle(patient.loop.executor(), {.seeds = cluster.seeds(), .name = "idle", .timeout = 5s});
  std::vector<Command> once;
  for (int i = 0; i < 20; ++i) once.push_back(Command("EXISTS", i));
  patient.loop.run(idle.pipeline(std::move(once)));
  EXPECT_TRUE(idle.connected());
  ASSERT_TRUE(soon([&] { return patient.done_in_the_middle > 50 && hasty.done_in_the_middle > 50; }));
  EXPECT_EQ(patient.failed + hasty.failed, 0);
  cluster.node(1).kill();
  const auto killed = Clock::now();
  std::this_thread::sleep_for(TestCluster::kNodeTimeout /
                              2);  // nobody has taken over yet, and what was answered is counted
  const int before[2] = {patient.done_in_the_middle, hasty.done_in_the_middle};
  double back[2] = {0, 0};
  const auto give_up = killed + 20s;
  while ((back[0] == 0 || back[1] == 0) && Clock::now() < give_up) {
    const double now = std::chrono::duration<double>(Clock::now() - killed).count();
    if (back[0] == 0 && patient.done_in_the_middle > before[0]) back[0] = now;
    if (back[1] == 0 && hasty.done_in_the_middle > before[1]) back[1] = now;
    std::this_thread::sleep_for(1ms);
  }
  std::printf("back after %.2f s (patient), %.2f s (fail_fast); failed: %d, %d\n", back[0], back[1],
              patient.failed.load(), hasty.failed.load());
  for (const double one : back) {
    EXPECT_GT(one, 0);
    EXPECT_LT(one, WEIR_SANITIZED ? 15 : 6);  // a node's time-out, an election, and the next look
  }
  EXPECT_GT(hasty.failed, 0);
  EXPECT_TRUE(soon([&] { return idle.connected(); }));  // with the replica, although nobody has asked for it
  cluster.node(1).start();
  EXPECT_TRUE(soon([&] { return patient.client.connected() && hasty.client.connected(); }));
  patient.end();
  hasty.end();
  EXPECT_EQ(patient.overdue + hasty.overdue, 0);
  // Who has left the map has no connection any more.
  EXPECT_TRUE(soon([&] {
    return metric("weir_redis_connected{client=\"patient/" + cluster.node(1).address().endpoint() + "\"}") ==
           0;
  }));
}

// Which node has the subscriber of this channel; kNodes: none.
std::size_t listener_of(TestCluster& cluster, const std::string& channel,
                        std::size_t but = TestCluster::kNodes) {
  for (std::size_t i = 0; i < TestCluster::kNodes; ++i)
    if (i != but && cluster.ask(i, {"PUBSUB", "NUMSUB", channel}).array()[1].integer() == 1) return i;
  return TestCluster::kNodes;
}

TEST(ClusterConcurrency, ASubscriberGoesToAnotherNodeWhenItsOwnDies) {
  TestCluster cluster;
  IoThreads loop(2);
  Client client(loop.executor(), {.seeds = cluster.seeds(), .name = "telling", .timeout = 5s});
  std::atomic<int> joined{0};
  std::mutex mutex;
  std::vector<std::string> heard;
  Subscriber subscriber(loop.executor(),
                        {.nodes = [&] { return client.nodes(); },
                         .channel = "news",
                         .ping_every = 50ms,
                         .silence_limit = 300ms,
                         .backoff_first = 1ms,
                         .backoff_max = 50ms},
                        {.message =
                             [&](std::string_view text) {
                               const std::lock_guard lock(mutex);
                               heard.emplace_back(text);
                             },
                         .joined = [&] { ++joined; }});
  const auto hears = [&](const std::string& text) {
    return soon([&] {
      loop.run(client.execute(Command("PUBLISH", "news", text).idempotent()));
      const std::lock_guard lock(mutex);
      return std::ranges::find(heard, text) != heard.end();
    });
  };
  ASSERT_TRUE(hears("first"));
  const auto first = listener_of(cluster, "news");
  ASSERT_LT(first, TestCluster::kNodes);
  cluster.node(first).kill();
  ASSERT_TRUE(soon([&] { return joined == 2 && subscriber.connected(); }));
  EXPECT_TRUE(hears("second"));
  EXPECT_LT(listener_of(cluster, "news", first), TestCluster::kNodes);
}

}  // namespace
}  // namespace weir::redis

// The client on a cluster in normal traffic, against real servers.
#include <gtest/gtest.h>

#include <stdexcept>

#include "weir/redis/cluster_fixture.h"
#include "weir/redis/slot.h"

namespace weir::redis {
namespace {

TestCluster& cluster() {
  static TestCluster one;
  return one;
}

struct ClusterTest : testing::Test {
  ClusterTest() { cluster().flush(); }
  Reply run(Command command) { return loop.run(client.execute(std::move(command))); }

  IoThreads loop{1};
  Client client{loop.executor(), {.seeds = cluster().seeds(), .timeout = 5s}};
};

TEST_F(ClusterTest, KeysGoToTheirNodes) {
  for (int i = 0; i < 300; ++i) run(Command("SET", i, i * i));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(run(Command::read("GET", i)).text(), std::to_string(i * i));
  for (std::size_t i = 0; i < TestCluster::kPrimaries; ++i)
    EXPECT_GT(cluster().ask(i, {"DBSIZE"}).integer(), 50) << i;
  EXPECT_EQ(run(Command("PING")).text(), "PONG");
  EXPECT_EQ(run(Command("PUBLISH", "nobody", "listens")).integer(), 0);
  EXPECT_EQ(client.waiting(), 0U);
  EXPECT_TRUE(client.connected());
  EXPECT_EQ(client.nodes().size(), TestCluster::kNodes);
  EXPECT_EQ(redirects("redis", "moved"), 0);  // it was known
  EXPECT_EQ(client.group_of("{user1000}.following"), client.group_of("user1000"));
}

TEST_F(ClusterTest, PipelinesComeBackInTheirOrder) {
  std::vector<Command> commands;
  for (int i = 0; i < 3'000; ++i) commands.push_back(Command("INCRBY", i % 1'000, i));
  commands.insert(commands.begin() + 7, Command("LPUSH"));
  EXPECT_THROW(loop.run(client.pipeline(commands)), std::invalid_argument);  // no key: no node
  commands[7] = Command("LPUSH", "x");
  const auto replies = loop.run(client.pipeline(std::move(commands)));
  ASSERT_EQ(replies.size(), 3'001U);
  EXPECT_TRUE(replies[7].is_error());
  for (int i = 0; i < 1'000; ++i) {  // those of one key are done in their order
    EXPECT_EQ(replies[static_cast<std::size_t>(i < 7 ? i : i + 1)].integer(), i);
    EXPECT_EQ(replies[static_cast<std::size_t>(i + 2'001)].integer(), 3 * i + 3'000);
  }
  EXPECT_TRUE(loop.run(client.pipeline({})).empty());
}

TEST_F(ClusterTest, KeysThatMustBeTogetherAreOrNothingIsSent) {
  const auto both = [&](const char* first, const char* second) {
    std::vector<Command> commands{Command("SET", first, 1), Command("INCR", second)};
    return loop.run(client.transaction(std::move(commands)));
  };
  EXPECT_EQ(both("{a}1", "{a}1")[1].integer(), 2);
  EXPECT_EQ(both("{a}1", "{a}2")[1].integer(), 1);
  EXPECT_THROW(both("b", "c"), std::invalid_argument);
  const Script script("both", "return redis.call('EXISTS', KEYS[1], KEYS[2])");
  EXPECT_EQ(loop.run(client.eval(script, {"{a}1", "{a}2"}, {})).integer(), 2);
  EXPECT_THROW(loop.run(client.eval(script, {"b", "c"}, {})), std::invalid_argument);
  EXPECT_THROW(run(Command("UNLINK", "b", "c")), std::invalid_argument);
  EXPECT_THROW(run(Command("FLUSHALL")), std::invalid_argument);
  EXPECT_EQ(run(Command("EXISTS", "b")).integer(), 0);
  try {
    std::vector<Command> commands{Command("SET", "d", 1), Command("INCR", "d", 1)};
    loop.run(client.transaction(std::move(commands)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::aborted);
  }
  EXPECT_EQ(run(Command("EXISTS", "d")).integer(), 0);
}

TEST_F(ClusterTest, ScriptsAreTaughtToEachNode) {
  const Script add("add", "return redis.call('INCRBY', KEYS[1], ARGV[1])");
  for (int round = 1; round <= 3; ++round) {
    std::vector<Client::ScriptCall> calls;
    for (int i = 0; i < 300; ++i) calls.push_back({{std::to_string(i)}, {i == 50 ? "x" : "2"}});
    for (std::size_t i = 0; i < TestCluster::kPrimaries; ++i) {
      cluster().ask(i, {"SCRIPT", "FLUSH"});
      cluster().ask(i, {"CONFIG", "RESETSTAT"});
    }
    const auto replies = loop.run(client.eval_many(add, std::move(calls)));
    ASSERT_EQ(replies.size(), 300U);
    EXPECT_TRUE(replies[50].is_error());
    EXPECT_EQ(replies[299].integer(), 2 * round);  // each once
    for (std::size_t i = 0; i < TestCluster::kPrimaries; ++i)
      EXPECT_NE(cluster().text(i, {"INFO", "commandstats"}).find("cmdstat_eval:calls=1,"), std::string::npos);
  }
  const Script fails("fails", "return redis.call('GET', KEYS[1])");
  run(Command("RPUSH", "list", "a"));
  try {
    loop.run(client.eval(fails, {"list"}, {}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::wrong_type);
  }
}

TEST_F(ClusterTest, OneConnectionAPrimaryThatManyShare) {
  Client shared(loop.executor(), {.seeds = cluster().seeds(), .name = "shared", .timeout = 5s});
  std::vector<std::future<int>> all;
  const auto worker = [&](int self) -> asio::awaitable<int> {
    int right = 0;
    for (int i = 0; i < 20; ++i) {
      const std::string mine = std::to_string(self) + ":" + std::to_string(i);
      co_await shared.execute(Command("SET", mine, mine));
      right += (co_await shared.execute(Command::read("GET", mine))).text() == mine ? 1 : 0;
    }
    co_return right;
  };
  for (int i = 0; i < 100; ++i) all.push_back(loop.start(worker(i)));
  for (auto& one : all) EXPECT_EQ(one.get(), 20);
  for (std::size_t i = 0; i < TestCluster::kNodes; ++i) {
    const std::string label = R"({client="shared/127.0.0.1:)" + std::to_string(cluster().node(i).port());
    const bool primary = i < TestCluster::kPrimaries;
    EXPECT_EQ(metric("weir_redis_connected" + label + "\"}"), primary ? 1 : 0);
    EXPECT_LE(metric("weir_redis_connects_total" + label + R"(",outcome="ok"})"), 1);
    const double gets = metric("weir_redis_commands_total" + label + R"(",command="GET",outcome="ok"})");
    EXPECT_EQ(gets > 300, primary) << gets;
  }
}

TEST_F(ClusterTest, ASlotThatHasMovedIsFollowedAndRemembered) {
  const std::string key = key_with([](Slot slot) { return slot < kThirds[1]; });
  const int slot = slot_of(key);
  Client fresh(loop.executor(), {.seeds = cluster().seeds(), .name = "moved", .timeout = 5s});
  loop.run(fresh.execute(Command("SET", key, 1)));
  const auto from = cluster().owner_of(slot);
  const auto to = (from + 1) % TestCluster::kPrimaries;
  cluster().move_slot(slot, from, to, [] {});
  EXPECT_EQ(redirects("moved", "moved"), 0);
  for (int i = 2; i < 50; ++i) EXPECT_EQ(loop.run(fresh.execute(Command("INCR", key))).integer(), i);
  EXPECT_EQ(redirects("moved", "moved"), 1);
  cluster().move_slot(slot, to, from, [] {});
}

// Half of a slot's keys are on each node, and both must be found; nothing of it is remembered.
TEST_F(ClusterTest, ASlotThatIsMovingIsAskedForWhereItsKeysAre) {
  const int slot = slot_of("{t}");
  const auto from = cluster().owner_of(slot);
  const auto to = (from + 1) % TestCluster::kPrimaries;
  Client fresh(loop.executor(), {.seeds = cluster().seeds(), .name = "asking", .timeout = 5s});
  const Script add("add", "return redis.call('INCRBY', KEYS[1], ARGV[1])");
  for (std::size_t i = 0; i < TestCluster::kPrimaries; ++i) cluster().ask(i, {"SCRIPT", "FLUSH"});
  const auto key = [](int i) { return "{t}" + std::to_string(i); };
  for (int i = 0; i < 25; ++i) loop.run(fresh.execute(Command("SET", key(i), 0)));
  int rounds = 0;
  cluster().move_slot(slot, from, to, [&] {
    ++rounds;
    std::vector<Client::ScriptCall> calls;
    for (int i = 0; i < 25; ++i) calls.push_back({{key(i)}, {"1"}});
    for (const auto& reply : loop.run(fresh.eval_many(add, std::move(calls))))
      EXPECT_EQ(reply.integer(), 2 * rounds - 1);
    for (int i = 0; i < 25; ++i) {
      std::vector<Command> commands{Command("INCR", key(i)), Command("GET", key(i))};
      EXPECT_EQ(loop.run(fresh.transaction(std::move(commands)))[1].text(), std::to_string(2 * rounds));
    }
  });
  EXPECT_EQ(rounds, 26);
  // Each key that has moved was asked for twice in each round, until the slot's end.
  EXPECT_GE(redirects("asking", "ask"), 2 * (25 * 26) / 2);
  EXPECT_EQ(redirects("asking", "moved"), 0);
  for (int i = 0; i < 25; ++i)
    EXPECT_EQ(loop.run(fresh.execute(Command("GET", key(i)))).text(), std::to_string(2 * rounds));
  EXPECT_EQ(redirects("asking", "moved"), 1);
  cluster().move_slot(slot, to, from, [] {});
}

// Two keys of which one is on each node: nobody can do it now.
TEST_F(ClusterTest, KeysThatAreTornApartAreTriedAgainUntilTheyAreTogether) {
  const int slot = slot_of("{u}");
  const auto from = cluster().owner_of(slot);
  const auto to = (from + 1) % TestCluster::kPrimaries;
  Client fresh(loop.executor(), {.seeds = cluster().seeds(), .name = "torn", .timeout = 5s});
  const Script both("both", "return redis.call('EXISTS', KEYS[1], KEYS[2])");
  for (const char* key : {"{u}1", "{u}2"}) loop.run(fresh.execute(Command("SET", key, 0)));
  int rounds = 0;
  std::future<Reply> waiting;
  cluster().move_slot(slot, from, to, [&] {
    if (++rounds != 2) return;  // the first key has moved
    EXPECT_THROW(loop.run(fresh.eval(both, {"{u}1", "{u}2"}, {}, 100ms)), Unavailable);
    EXPECT_GT(redirects("torn", "try_again"), 1);
    waiting = loop.start(fresh.eval(both, {"{u}1", "{u}2"}, {}, 10s));
  });
  EXPECT_EQ(waiting.get().integer(), 2);
  cluster().move_slot(slot, to, from, [] {});
}

}  // namespace
}  // namespace weir::redis

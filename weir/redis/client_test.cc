// The client in normal traffic, against a real server.
#include "weir/redis/client.h"

#include <gtest/gtest.h>

#include "weir/redis/client_fixture.h"
#include "weir/telemetry/metrics.h"

namespace weir::redis {
namespace {

TestServer& server() {
  static TestServer one;
  return one;
}

struct ClientTest : testing::Test {
  ClientTest() { run(Command("FLUSHALL")); }
  Reply run(Command command) { return loop.run(client.execute(std::move(command))); }

  IoThreads loop{1};
  Client client{loop.executor(), {.address = server().address(), .timeout = 5s}};
};

ErrorKind kind_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::other;
}

TEST_F(ClientTest, EveryKindOfReply) {
  EXPECT_EQ(run(Command("PING")).text(), "PONG");
  EXPECT_TRUE(run(Command::read("GET", "nothing")).is_nil());
  EXPECT_EQ(run(Command("SET", "key", std::string("\0\r\nä", 5))).text(), "OK");
  EXPECT_EQ(run(Command::read("GET", "key")).text(), std::string("\0\r\nä", 5));
  EXPECT_EQ(run(Command("INCRBY", "n", INT64_MAX)).integer(), INT64_MAX);
  run(Command("RPUSH", "list", "a", "", "c"));
  const auto list = run(Command::read("LRANGE", "list", 0, -1));
  ASSERT_EQ(list.array().size(), 3U);
  EXPECT_EQ(list.array()[1].text(), "");
  EXPECT_TRUE(run(Command::read("LRANGE", "none", 0, -1)).array().empty());
  EXPECT_TRUE(run(Command::read("MGET", "key", "nothing")).array()[1].is_nil());
}

TEST_F(ClientTest, ErrorsAreClear) {
  run(Command("RPUSH", "list", "a"));
  EXPECT_EQ(kind_of([&] { run(Command("GET", "list")); }), ErrorKind::wrong_type);
  EXPECT_EQ(kind_of([&] { run(Command("NONSENSE")); }), ErrorKind::other);
  EXPECT_EQ(kind_of([&] { run(Command("EVALSHA", "x", 0)); }), ErrorKind::no_script);
  EXPECT_EQ(kind_of([&] { (void)run(Command("PING")).integer(); }), ErrorKind::unexpected);
  try {
    run(Command("GET", "list"));
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("GET: WRONGTYPE ")) << error.what();
  }
  EXPECT_EQ(run(Command("PING")).text(), "PONG");  // and nothing else was harmed
}

TEST_F(ClientTest, PipelinesKeepTheirOrder) {
  std::vector<Command> commands;
  for (int i = 0; i < 3000; ++i) commands.push_back(Command("ECHO", i));
  commands.insert(commands.begin() + 7, Command("NONSENSE"));
  const auto replies = loop.run(client.pipeline(std::move(commands)));
  ASSERT_EQ(replies.size(), 3001U);
  EXPECT_TRUE(replies[7].is_error());
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(replies[i < 7 ? i : i + 1].text(), std::to_string(i));
  EXPECT_TRUE(loop.run(client.pipeline({})).empty());
}

TEST_F(ClientTest, TransactionsAreDoneWholeOrNotAtAll) {
  const auto two = [&](Command second) {
    std::vector<Command> commands{Command("SET", "a", 1), std::move(second)};
    return loop.run(client.transaction(std::move(commands)));
  };
  const auto replies = two(Command("INCR", "a"));
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[1].integer(), 2);
  EXPECT_EQ(kind_of([&] { two(Command("INCR")); }), ErrorKind::aborted);
  EXPECT_EQ(run(Command("GET", "a")).text(), "2");
  // What fails while it is done is Redis' own way: the others are done.
  EXPECT_TRUE(two(Command("LPUSH", "a", "x"))[1].is_error());
}

TEST_F(ClientTest, ScriptsAreTaughtAgainAfterAFlush) {
  const Script script("add", "return redis.call('INCRBY', KEYS[1], ARGV[1])");
  const auto add = [&] { return loop.run(client.eval(script, {"n"}, {"5"})).integer(); };
  EXPECT_EQ(add(), 5);
  EXPECT_EQ(add(), 10);
  run(Command("SCRIPT", "FLUSH"));
  EXPECT_EQ(add(), 15);
  const auto exists = run(Command("SCRIPT", "EXISTS", script.sha1()));
  EXPECT_EQ(exists.array()[0].integer(), 1);
  const Script fails("fails", "return redis.call('GET', KEYS[1])");
  run(Command("RPUSH", "list", "a"));
  EXPECT_EQ(kind_of([&] { loop.run(client.eval(fails, {"list"}, {})); }), ErrorKind::wrong_type);
}

TEST_F(ClientTest, ManyRunsOfAScriptGoTogether) {
  const Script script("add", "return redis.call('INCRBY', KEYS[1], ARGV[1])");
  for (int round = 1; round <= 2; ++round) {
    std::vector<Client::ScriptCall> calls;
    for (int i = 0; i < 100; ++i) calls.push_back({{"n"}, {i == 50 ? "x" : "1"}});
    run(Command("SCRIPT", "FLUSH"));
    const auto replies = loop.run(client.eval_many(script, std::move(calls)));
    ASSERT_EQ(replies.size(), 100U);
    EXPECT_TRUE(replies[50].is_error());
    EXPECT_EQ(replies[49].integer(), 99 * (round - 1) + 50);  // each once, in order
    EXPECT_EQ(replies[99].integer(), 99 * round);
  }
  EXPECT_TRUE(loop.run(client.eval_many(script, {})).empty());
}

TEST_F(ClientTest, HugeValuesComeBackWhole) {
  std::string large(50'000'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4096) large[i] = static_cast<char>(i >> 12);
  auto set = loop.start(client.execute(Command("SET", "large", large), 30s));
  auto ping = loop.start(client.execute(Command("ECHO", "behind"), 30s));
  auto get = loop.start(client.execute(Command::read("GET", "large"), 30s));
  EXPECT_EQ(set.get().text(), "OK");
  EXPECT_EQ(ping.get().text(), "behind");
  EXPECT_TRUE(get.get().text() == large);
  run(Command("DEL", "large"));
}

TEST_F(ClientTest, ManyCoroutinesShareOneConnection) {
  std::vector<std::future<int>> all;
  const auto reader = [&](int self) -> asio::awaitable<int> {
    int right = 0;
    for (int i = 0; i < 50; ++i) {
      const std::string mine = std::to_string(self) + ":" + std::to_string(i);
      right += (co_await client.execute(Command::read("ECHO", mine))).text() == mine ? 1 : 0;
    }
    co_return right;
  };
  for (int i = 0; i < 500; ++i) all.push_back(loop.start(reader(i)));
  for (auto& one : all) EXPECT_EQ(one.get(), 50);
  const std::string clients = run(Command("CLIENT", "LIST")).text();
  EXPECT_EQ(std::ranges::count(clients, '\n'), 1);
  EXPECT_EQ(client.waiting(), 0U);
}

TEST(ClientLogin, UserPasswordAndDatabase) {
  TestServer guarded({"--requirepass", "secret"});
  IoThreads loop(1);
  const auto with = [&](Address address) {
    address.port = guarded.port();
    return std::make_unique<Client>(
        loop.executor(), Options{.address = address, .timeout = 2s, .backoff_max = 20ms, .fail_fast = true});
  };
  const auto first = with({.password = "secret", .database = 3});
  loop.run(first->execute(Command("SET", "a", 1)));
  EXPECT_NE(loop.run(first->execute(Command("CLIENT", "LIST"))).text().find(" db=3 "), std::string::npos);
  loop.run(first->execute(Command("ACL", "SETUSER", "ann", "on", ">p@ss", "~*", "+@all")));
  const auto ann = with({.user = "ann", .password = "p@ss"});
  EXPECT_EQ(loop.run(ann->execute(Command("ACL", "WHOAMI"))).text(), "ann");
  EXPECT_TRUE(loop.run(ann->execute(Command("GET", "a"))).is_nil());  // another database

  for (const auto& [address, word] :
       {std::pair{Address{}, "NOAUTH"}, std::pair{Address{.password = "guess"}, "WRONGPASS"},
        std::pair{Address{.password = "secret", .database = 99}, "SELECT"}}) {
    const auto refused = with(address);
    try {
      loop.run(refused->execute(Command("PING")));
      FAIL() << word;
    } catch (const NotDone& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("guess"), std::string::npos);
    }
  }
}

TEST(ClientLogin, HostsHaveNames) {
  IoThreads loop(1);
  Client client(loop.executor(), {.address = {.host = "localhost", .port = server().port()}, .timeout = 5s});
  EXPECT_EQ(loop.run(client.execute(Command("PING"))).text(), "PONG");
  Client nobody(loop.executor(), {.address = {.host = "no-such-host.invalid"}, .fail_fast = true});
  EXPECT_THROW(loop.run(nobody.execute(Command("PING"), 5s)), NotDone);
}

TEST(ClientMetricsTest, CountByNameAndOutcome) {
  IoThreads loop(1);
  Client client(loop.executor(), {.address = server().address(), .name = "counted", .timeout = 5s});
  loop.run(client.execute(Command("set", "a", 1)));
  loop.run(client.execute(Command("SET", "a", 1)));
  EXPECT_THROW(loop.run(client.execute(Command("LPUSH", "a", 1))), Error);
  const std::string text = telemetry::scrape();
  const auto has = [&](const std::string& line) { return text.find(line) != std::string::npos; };
  const std::string set = R"(client="counted",command="SET")";
  EXPECT_TRUE(has("weir_redis_commands_total{" + set + R"(,outcome="ok"} 2)"));
  EXPECT_TRUE(has("weir_redis_commands_total{" + set + R"(,outcome="unknown"} 0)"));
  EXPECT_TRUE(has(R"(weir_redis_commands_total{client="counted",command="LPUSH",outcome="error"} 1)"));
  EXPECT_TRUE(has("weir_redis_command_duration_seconds_count{" + set + "} 2"));
  EXPECT_TRUE(has(R"(weir_redis_connected{client="counted"} 1)"));
  EXPECT_TRUE(has(R"(weir_redis_waiting{client="counted"} 0)"));
  EXPECT_TRUE(has(R"(weir_redis_connects_total{client="counted",outcome="ok"} 1)"));
  EXPECT_TRUE(has(R"(weir_redis_reconnects_total{client="counted"} 0)"));
  client.stop();
  EXPECT_NE(telemetry::scrape().find(R"(weir_redis_connected{client="counted"} 0)"), std::string::npos);
}

}  // namespace
}  // namespace weir::redis

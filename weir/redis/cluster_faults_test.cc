// The client on a cluster when that misbehaves: seeds that are away, nodes that lie, stop and die.
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <stdexcept>

#include "weir/redis/cluster.h"
#include "weir/redis/cluster_fixture.h"

namespace weir::redis {
namespace {

using Clock = std::chrono::steady_clock;

Options quick(std::vector<Address> seeds, std::string name = "faults") {
  return {.seeds = std::move(seeds),
          .name = std::move(name),
          .timeout = 5s,
          .connect_timeout = 200ms,
          .backoff_first = 1ms,
          .backoff_max = 20ms,
          .refresh_gap = 20ms};
}

TEST(ClusterFaults, SeedsThatAreDownOrLieAreNoHindrance) {
  FakePeer liar([](FakePeer::Socket& socket, int) {
    FakePeer::write(socket, "HTTP/1.1 400 Bad Request\r\n\r\n");
    FakePeer::wait_for_end(socket);
  });
  FakeNode nonsense([](const auto&) { return "*1\r\n:1\r\n"; });
  FakeNode stranger([](const auto&) { return "*0\r\n"; });  // knows of no slots
  FakeNode good([](const auto& words) -> std::optional<std::string> {
    if (words.front() == "CLUSTER") return std::nullopt;
    return "+hello\r\n";
  });
  IoThreads loop(1);
  for (int round = 0; round < 10; ++round) {
    Client client(loop.executor(), quick({{.port = TestServer::free_port()},
                                          liar.address(),
                                          nonsense.address(),
                                          stranger.address(),
                                          good.address()}));
    EXPECT_EQ(loop.run(client.execute(Command("GET", "a"))).text(), "hello");
  }
}

TEST(ClusterFaults, SeedsThatAreAllDownEndWaitsAndAreAskedAgain) {
  const auto port = TestServer::free_port();
  IoThreads loop(1);
  Client client(loop.executor(), quick({{.port = port}}));
  const auto began = Clock::now();
  const auto text = fault_of<NotDone>(loop.start(client.execute(Command("GET", "a"), 50ms)));
  EXPECT_LT(Clock::now() - began, 2s);
  EXPECT_TRUE(mentions(text, "Connection refused")) << text;
  EXPECT_FALSE(client.connected());
  auto options = quick({{.port = port}});
  options.fail_fast = true;
  Client hasty(loop.executor(), options);
  fault_of<NotDone>(loop.start(hasty.execute(Command("GET", "a"), 1h)));
  fault_of<NotDone>(loop.start(hasty.execute(Command("PUBLISH", "a", "b"), 1h)));
}

TEST(ClusterFaults, AServerThatIsNoClusterIsToldSo) {
  TestServer single;
  IoThreads loop(1);
  auto options = quick({single.address()});
  options.fail_fast = true;
  Client client(loop.executor(), options);
  const auto text = fault_of<NotDone>(loop.start(client.execute(Command("GET", "a"))));
  EXPECT_TRUE(mentions(text, "cluster support disabled")) << text;
  EXPECT_THROW(Client(loop.executor(), quick({{.database = 1}})), std::invalid_argument);
}

// The seeds' user and password are everybody's, whoever names the node.
TEST(ClusterFaults, EveryNodeIsGreetedWithThePassword) {
  const auto guarded = [](const FakeNode::Words& words) -> std::optional<std::string> {
    if (words.front() != "AUTH") return std::nullopt;
    return words == FakeNode::Words{"AUTH", "ann", "secret"} ? "+OK\r\n" : "-WRONGPASS no\r\n";
  };
  FakeNode second([&](const auto& words) -> std::optional<std::string> {
    return words.front() == "GET" ? "+second\r\n" : guarded(words);
  });
  FakeNode first([&](const auto& words) -> std::optional<std::string> {
    return words.front() == "GET" ? "-MOVED 15495 " + second.address().endpoint() + "\r\n" : guarded(words);
  });
  IoThreads loop(1);
  auto seed = first.address();
  seed.user = "ann";
  seed.password = "secret";
  auto options = quick({seed, {.port = TestServer::free_port()}}, "guarded");
  options.refresh_gap = 1h;  // what is learned stays
  Client client(loop.executor(), options);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loop.run(client.execute(Command("GET", "a"))).text(), "second");
  EXPECT_EQ(second.asked("AUTH"), 1);
  EXPECT_EQ(second.asked("GET"), 3);
  EXPECT_EQ(first.asked("GET"), 1);
  EXPECT_GE(first.asked("AUTH"), 1);
}

TEST(ClusterFaults, RedirectionsInACircleAreLeft) {
  std::string to;
  FakeNode node([&](const auto& words) -> std::optional<std::string> {
    if (words.front() == "CLUSTER") return std::nullopt;
    if (words.front() == "ASKING") return "+OK\r\n";
    return (words[1] == "a" ? "-MOVED 15495 " : "-ASK 3300 ") + to + "\r\n";
  });
  to = node.address().endpoint();
  IoThreads loop(1);
  Client client(loop.executor(), quick({node.address()}, "circle"));
  const auto text = fault_of<Error>(loop.start(client.execute(Command("GET", "a"))));
  EXPECT_TRUE(mentions(text, "MOVED")) << text;
  EXPECT_EQ(node.asked("GET"), static_cast<int>(Cluster::kMaxRedirects) + 1);
  fault_of<Error>(loop.start(client.execute(Command("SET", "b", 1))));
  EXPECT_EQ(node.asked("SET"), static_cast<int>(Cluster::kMaxRedirects) + 1);
  EXPECT_EQ(node.asked("ASKING"), static_cast<int>(Cluster::kMaxRedirects));
}

TEST(ClusterFaults, LooksAreFewHoweverManyWantOne) {
  std::string to;
  FakeNode node([&](const auto& words) -> std::optional<std::string> {
    if (words.front() == "CLUSTER") return std::nullopt;
    return "-MOVED 15495 " + to + "\r\n";
  });
  to = node.address().endpoint();
  IoThreads loop(1);
  auto options = quick({node.address()}, "looks");
  options.refresh_gap = 100ms;
  Client client(loop.executor(), options);
  const auto began = Clock::now();
  for (int i = 0; i < 100; ++i) fault_of<Error>(loop.start(client.execute(Command("GET", "a"))));
  std::this_thread::sleep_for(300ms);
  const auto gaps = (Clock::now() - began) / 100ms;
  EXPECT_LE(node.asked("CLUSTER"), static_cast<int>(gaps) + 1);
  EXPECT_GE(node.asked("CLUSTER"), 2);
}

TEST(ClusterFaults, RedirectionsThatCantBeReadAreErrors) {
  std::string says;
  std::mutex mutex;
  FakeNode node([&](const auto& words) -> std::optional<std::string> {
    if (words.front() == "CLUSTER") return std::nullopt;
    const std::lock_guard lock(mutex);
    return says;
  });
  IoThreads loop(1);
  Client client(loop.executor(), quick({node.address()}));
  for (const char* text :
       {"-MOVED\r\n", "-MOVED 1\r\n", "-MOVED 99999 h:1\r\n", "-ASK 5 h:0\r\n", "-ASK x y:z\r\n"}) {
    {
      const std::lock_guard lock(mutex);
      says = text;
    }
    fault_of<Error>(loop.start(client.execute(Command("GET", "a"))));
  }
}

TEST(ClusterFaults, AClusterThatIsDownIsAskedAgainWithinTheDeadline) {
  std::atomic<int> down{3};
  FakeNode node([&](const auto& words) -> std::optional<std::string> {
    if (words.front() == "CLUSTER") return std::nullopt;
    return down-- > 0 ? "-CLUSTERDOWN The cluster is down\r\n" : "+up\r\n";
  });
  IoThreads loop(1);
  Client client(loop.executor(), quick({node.address()}, "clusterdown"));
  EXPECT_EQ(loop.run(client.execute(Command("INCR", "a"))).text(), "up");
  EXPECT_EQ(redirects("clusterdown", "cluster_down"), 3);
  down = 1'000'000;
  const auto began = Clock::now();
  const auto text = fault_of<Unavailable>(loop.start(client.execute(Command("INCR", "a"), 200ms)));
  const auto took = Clock::now() - began;
  // Or, on a machine that is busy, that the last try had no answer.
  EXPECT_TRUE(mentions(text, "CLUSTERDOWN") || mentions(text, "within 200 ms")) << text;
  EXPECT_GT(took, 100ms);
  EXPECT_LT(took, 2s);
  EXPECT_LT(redirects("clusterdown", "cluster_down"), 100);  // with backoff
}

TEST(ClusterFaults, OnlyWhatMayBeRepeatedIs) {
  FakeNode deadly([&](const auto&) { return std::nullopt; });
  IoThreads loop(1);
  Client client(loop.executor(), quick({deadly.address()}));
  fault_of<UnknownOutcome>(loop.start(client.execute(Command("INCR", "a"))));
  EXPECT_EQ(deadly.asked("INCR"), 1);
  fault_of<UnknownOutcome>(loop.start(client.execute(Command::read("GET", "a"))));
  EXPECT_EQ(deadly.asked("GET"), static_cast<int>(kMaxSends));
}

TEST(ClusterFaults, ANodeThatStandsStillIsTheFaultOfItsOwnKeys) {
  TestCluster cluster;
  IoThreads loop(1);
  Client client(loop.executor(), quick(cluster.seeds()));
  std::vector<Command> commands;
  for (int i = 0; i < 60; ++i) commands.push_back(Command("SET", i, i));
  for (const auto& reply : loop.run(client.pipeline(commands))) EXPECT_FALSE(reply.is_error());
  cluster.node(1).pause();
  const auto replies = loop.run(client.pipeline(commands, 100ms));
  cluster.node(1).resume();
  int away = 0;
  for (int i = 0; i < 60; ++i) {
    const auto& reply = replies[static_cast<std::size_t>(i)];
    const int slot = slot_of(std::to_string(i));
    EXPECT_EQ(reply.is_error(), slot >= kThirds[1] && slot < kThirds[2]) << i;
    if (!reply.is_error()) continue;
    ++away;
    EXPECT_THROW(reply.throw_if_error("SET"), TimedOut);
    EXPECT_EQ(reply.error_text(), "");
  }
  EXPECT_GT(away, 5);
  // All of one node: then it is the call's.
  cluster.node(1).pause();
  std::vector<Command> alone{
      Command("SET", key_with([](Slot slot) { return slot > 6'000 && slot < 10'000; }), 1)};
  EXPECT_THROW(loop.run(client.pipeline(alone, 50ms)), TimedOut);
  cluster.node(1).resume();
  EXPECT_FALSE(loop.run(client.pipeline(std::move(alone))).front().is_error());
}

TEST(ClusterFaults, ContextEndsAfterTheClient) {
  FakeNode node([](const auto& words) -> std::optional<std::string> {
    return words.front() == "CLUSTER" ? std::nullopt : std::optional<std::string>("+OK\r\n");
  });
  asio::io_context io;
  auto client =
      std::make_unique<Client>(io.get_executor(), quick({node.address(), {.port = TestServer::free_port()}}));
  auto done = asio::co_spawn(io, client->execute(Command("GET", "a")), asio::use_future);
  while (done.wait_for(0s) != std::future_status::ready) io.run_one_for(1s);
  client.reset();
  io.restart();
  io.run();  // returns: nothing of the client keeps it busy
  EXPECT_EQ(done.get().text(), "OK");
}

TEST(ClusterFaults, ContextEndsDuringTheFirstLook) {
  FakePeer silent([](FakePeer::Socket& socket, int) { FakePeer::wait_for_end(socket); });
  asio::io_context io;
  auto client = std::make_unique<Client>(io.get_executor(), quick({silent.address()}));
  auto lost = asio::co_spawn(io, client->execute(Command("GET", "a"), 1h), asio::use_future);
  io.run_for(20ms);
  client.reset();
  io.restart();
  io.run();
  EXPECT_THROW(lost.get(), NotDone);
}

TEST(ClusterFaults, WhoWaitsForAnotherTryCanBeCancelledAndStopped) {
  FakeNode node([&](const auto& words) -> std::optional<std::string> {
    return words.front() == "CLUSTER" ? std::nullopt : std::optional<std::string>("-TRYAGAIN later\r\n");
  });
  IoThreads loop(1);
  auto options = quick({node.address()}, "parked");
  options.max_waiting = 2;
  Client client(loop.executor(), options);
  loop.run(pause(0ms));
  asio::cancellation_signal signal;
  auto cancelled = asio::co_spawn(loop.executor(), client.execute(Command("GET", "a"), 1h),
                                  asio::bind_cancellation_slot(signal.slot(), asio::use_future));
  auto stopped = loop.start(client.execute(Command("GET", "a"), 1h));
  EXPECT_TRUE(soon([&] { return redirects("parked", "try_again") > 10; }));
  asio::post(loop.executor(), [&] { signal.emit(asio::cancellation_type::terminal); });
  EXPECT_THROW(cancelled.get(), boost::system::system_error);
  client.stop();
  EXPECT_THROW(stopped.get(), Unavailable);
  EXPECT_THROW(loop.run(client.execute(Command("GET", "a"), 1h)), NotDone);
  EXPECT_EQ(client.waiting(), 0U);
}

}  // namespace
}  // namespace weir::redis

// The client when the outside world misbehaves: servers that stop, die and lie, waiters that go away.
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>

#include "weir/base/random.h"
#include "weir/redis/client_fixture.h"
#include "weir/telemetry/metrics.h"

namespace weir::redis {
namespace {

using Clock = std::chrono::steady_clock;

Options quick(Address address) {
  return {.address = std::move(address),
          .name = "faults",
          .timeout = 5s,
          .connect_timeout = 200ms,
          .backoff_first = 1ms,
          .backoff_max = 20ms};
}

TEST(ClientFaults, FirstCommandHasADeadlineToo) {
  TestServer server;
  server.pause();  // the kernel accepts, nobody answers
  IoThreads loop(1);
  auto options = quick(server.address());
  options.connect_timeout = 10s;
  Client client(loop.executor(), options);
  const auto began = Clock::now();
  const auto text = fault_of<NotDone>(loop.start(client.execute(Command("PING"), 50ms)));
  EXPECT_LT(Clock::now() - began, 5s);
  EXPECT_TRUE(mentions(text, "no connection within 50 ms")) << text;
  server.resume();
  EXPECT_EQ(loop.run(client.execute(Command("PING"))).text(), "PONG");
}

TEST(ClientFaults, NobodyListens) {
  IoThreads loop(1);
  auto options = quick({.port = TestServer::free_port()});
  Client patient(loop.executor(), options);
  const auto text = fault_of<NotDone>(loop.start(patient.execute(Command("PING"), 50ms)));
  EXPECT_TRUE(text.ends_with("Connection refused")) << text;
  options.fail_fast = true;
  Client hasty(loop.executor(), options);
  fault_of<NotDone>(loop.start(hasty.execute(Command("PING"), 1h)));
  fault_of<NotDone>(loop.start(hasty.execute(Command("PING"), 1h)));
}

TEST(ClientFaults, PausedServerEndsWaitsAndGoesOn) {
  TestServer server;
  IoThreads loop(1);
  Client client(loop.executor(), quick(server.address()));
  loop.run(client.execute(Command("SET", "n", 0)));
  server.pause();
  const auto began = Clock::now();
  auto late = loop.start(client.execute(Command("INCR", "n"), 50ms));
  auto in_time = loop.start(client.execute(Command("ECHO", "mine"), 10s));
  const auto text = fault_of<TimedOut>(std::move(late));
  EXPECT_TRUE(mentions(text, "unknown whether done")) << text;
  EXPECT_LT(Clock::now() - began, 5s);
  EXPECT_EQ(client.waiting(), 2U);  // its reply is still to come
  server.resume();
  // It comes, and isn't taken for the next one's.
  EXPECT_EQ(in_time.get().text(), "mine");
  EXPECT_EQ(loop.run(client.execute(Command("GET", "n"))).text(), "1");
}

TEST(ClientFaults, SilentConnectionIsGivenUp) {
  TestServer server;
  IoThreads loop(1);
  auto options = quick(server.address());
  options.silence_limit = 100ms;
  Client client(loop.executor(), options);
  loop.run(client.execute(Command("SET", "a", 1)));
  server.pause();
  auto hurried = loop.start(client.execute(Command("GET", "a"), 20ms));
  auto patient = loop.start(client.execute(Command("APPEND", "a", "x"), 20s));
  fault_of<TimedOut>(std::move(hurried));
  const auto text = fault_of<UnknownOutcome>(std::move(patient));
  EXPECT_TRUE(mentions(text, "silent")) << text;
  server.resume();
  EXPECT_EQ(loop.run(client.execute(Command("PING"))).text(), "PONG");
}

TEST(ClientFaults, SlowCommandIsNotSilence) {
  TestServer server;
  IoThreads loop(1);
  auto options = quick(server.address());
  options.silence_limit = 50ms;
  Client client(loop.executor(), options);
  const Script busy("busy", "local n = 0 for i = 1, 40000000 do n = n + 1 end return n");
  loop.run(client.execute(Command("SCRIPT", "LOAD", busy.source())));
  auto slow = loop.start(client.eval(busy, {}, {}, 30s));
  fault_of<TimedOut>(loop.start(client.execute(Command("PING"), 20ms)));
  EXPECT_EQ(slow.get().integer(), 40'000'000);
}

TEST(ClientFaults, KilledAndRestarted) {
  TestServer server;
  IoThreads loop(1);
  Client client(loop.executor(), quick(server.address()));
  loop.run(client.execute(Command("SET", "a", 1)));
  server.pause();
  auto write = loop.start(client.execute(Command("INCR", "a")));
  auto read = loop.start(client.execute(Command::read("EXISTS", "a")));
  ASSERT_TRUE(soon([&] { return client.waiting() == 2; }));
  std::this_thread::sleep_for(20ms);  // both are on the wire
  server.kill();
  const auto text = fault_of<UnknownOutcome>(std::move(write));
  EXPECT_TRUE(mentions(text, "unknown whether done")) << text;
  ASSERT_TRUE(soon([&] { return !client.connected(); }));
  auto unsent = loop.start(client.execute(Command("SET", "b", 2)));
  server.start();
  EXPECT_EQ(read.get().integer(), 0);  // was asked again, of an empty server
  EXPECT_EQ(unsent.get().text(), "OK");
}

TEST(ClientFaults, ClientKillAndFlushAllUnderTraffic) {
  TestServer server;
  IoThreads loop(1);
  Client client(loop.executor(), quick(server.address()));
  Client other(loop.executor(), quick(server.address()));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, done{0}, unknown{0};
  const auto echo = [&](int self) -> asio::awaitable<void> {
    for (int i = 0; !stop; ++i) {
      const std::string mine = std::to_string(self) + ":" + std::to_string(i);
      try {
        wrong += (co_await client.execute(Command("ECHO", mine))).text() == mine ? 0 : 1;
        ++done;
      } catch (const UnknownOutcome&) {
        ++unknown;
      }
    }
  };
  std::vector<std::future<void>> all;
  for (int i = 0; i < 20; ++i) all.push_back(loop.start(echo(i)));
  for (int i = 0; i < 20; ++i) {
    const int before = done;
    ASSERT_TRUE(soon([&] { return done > before + 100; }));
    loop.run(other.execute(Command("FLUSHALL")));
    loop.run(other.execute(Command("SCRIPT", "FLUSH")));
    loop.run(other.execute(Command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")));
  }
  stop = true;
  for (auto& one : all) one.get();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(unknown, 0);
}

TEST(ClientFaults, HalfClosedConnectionIsReplaced) {
  // The peer ends its side after the greeting and still reads.
  FakePeer peer([](FakePeer::Socket& socket, int number) {
    FakePeer::greet(socket);
    if (number == 0) {
      FakePeer::read(socket, "PING\r\n");
      socket.shutdown(asio::ip::tcp::socket::shutdown_send);
    } else {
      FakePeer::read(socket, "PING\r\n");
      FakePeer::write(socket, "+PONG\r\n");
    }
    FakePeer::wait_for_end(socket);
  });
  IoThreads loop(1);
  Client client(loop.executor(), quick(peer.address()));
  fault_of<UnknownOutcome>(loop.start(client.execute(Command("PING"))));
  EXPECT_EQ(loop.run(client.execute(Command("PING"))).text(), "PONG");
}

TEST(ClientFaults, OnlyIdempotentCommandsAreSentAgainAndNotForEver) {
  std::atomic<int> gets{0}, incrs{0};
  FakePeer peer([&](FakePeer::Socket& socket, int) {
    FakePeer::greet(socket);
    std::string got = FakePeer::read(socket, "key\r\n");
    gets += mentions(got, "GET") ? 1 : 0;
    incrs += mentions(got, "INCR") ? 1 : 0;
  });
  IoThreads loop(1);
  Client client(loop.executor(), quick(peer.address()));
  fault_of<UnknownOutcome>(loop.start(client.execute(Command("INCR", "key"))));
  EXPECT_EQ(incrs, 1);
  fault_of<UnknownOutcome>(loop.start(client.execute(Command::read("GET", "key"))));
  EXPECT_EQ(gets, 3);
  EXPECT_EQ(incrs, 1);
}

TEST(ClientFaults, WhatCantBeReadIsNotAskedForAgain) {
  std::atomic<int> gets{0};
  FakePeer peer([&](FakePeer::Socket& socket, int) {
    FakePeer::greet(socket);
    FakePeer::read(socket, "key\r\n");
    ++gets;
    FakePeer::write(socket, "?\r\n");
    FakePeer::wait_for_end(socket);
  });
  IoThreads loop(1);
  Client client(loop.executor(), quick(peer.address()));
  const auto text = fault_of<UnknownOutcome>(loop.start(client.execute(Command::read("GET", "key"))));
  EXPECT_TRUE(mentions(text, "Protocol error")) << text;
  EXPECT_EQ(gets, 1);
}

TEST(ClientFaults, PipelineThatIsSentAgainStartsAnew) {
  FakePeer peer([&](FakePeer::Socket& socket, int number) {
    FakePeer::greet(socket);
    FakePeer::read(socket, "second\r\n");
    FakePeer::write(socket, "$3\r\nold\r\n");  // one of two, and then it dies
    if (number == 0) return;
    FakePeer::write(socket, "$3\r\nnew\r\n");
    FakePeer::wait_for_end(socket);
  });
  IoThreads loop(1);
  Client client(loop.executor(), quick(peer.address()));
  std::vector<Command> commands{Command::read("GET", "first"), Command::read("GET", "second")};
  const auto replies = loop.run(client.pipeline(std::move(commands)));
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].text(), "old");
  EXPECT_EQ(replies[1].text(), "new");
}

TEST(ClientFaults, OnlyATransactionOfIdempotentCommandsIsSentAgain) {
  std::atomic<int> sent{0};
  FakePeer peer([&](FakePeer::Socket& socket, int) {
    FakePeer::greet(socket);
    FakePeer::read(socket, "EXEC\r\n");
    if (++sent < 3) return;
    FakePeer::write(socket, "+OK\r\n+QUEUED\r\n*1\r\n$3\r\nnew\r\n");
    FakePeer::wait_for_end(socket);
  });
  IoThreads loop(1);
  {
    Client client(loop.executor(), quick(peer.address()));
    std::vector<Command> writes;
    writes.emplace_back("INCR", "key");
    EXPECT_THROW(loop.run(client.transaction(std::move(writes))), UnknownOutcome);
    EXPECT_EQ(sent, 1);
  }
  Client client(loop.executor(), quick(peer.address()));
  std::vector<Command> reads{Command::read("GET", "key")};
  const auto replies = loop.run(client.transaction(std::move(reads)));
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].text(), "new");
  EXPECT_EQ(sent, 3);
}

TEST(ClientFaults, QueueIsBounded) {
  TestServer server;
  IoThreads loop(1);
  auto options = quick(server.address());
  options.max_waiting = 10;
  Client client(loop.executor(), options);
  loop.run(client.execute(Command("PING")));
  server.pause();
  std::vector<std::future<Reply>> taken;
  for (int i = 0; i < 10; ++i) taken.push_back(loop.start(client.execute(Command("ECHO", i))));
  ASSERT_TRUE(soon([&] { return client.waiting() == 10; }));
  const auto began = Clock::now();
  const auto text = fault_of<NotDone>(loop.start(client.execute(Command("PING"))));
  EXPECT_TRUE(mentions(text, "too many")) << text;
  EXPECT_LT(Clock::now() - began, 5s);
  server.resume();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(taken[i].get().text(), std::to_string(i));
}

TEST(ClientFaults, QueueIsBoundedInBytes) {
  IoThreads loop(1);
  auto options = quick({.port = TestServer::free_port()});
  options.max_waiting_bytes = 100'000;
  Client client(loop.executor(), options);
  const std::string large(200'000, 'x');
  auto first = loop.start(client.execute(Command("SET", "a", large), 300ms));  // one always fits
  ASSERT_TRUE(soon([&] { return client.waiting() == 1; }));
  EXPECT_TRUE(mentions(fault_of<NotDone>(loop.start(client.execute(Command("SET", "b", 1)))), "too many"));
  EXPECT_TRUE(mentions(fault_of<NotDone>(std::move(first)), "no connection"));
  fault_of<NotDone>(loop.start(client.execute(Command("SET", "b", 1), 50ms)));
}

// Starts a call that can be cancelled; both on one thread.
struct Cancellable {
  Cancellable(IoThreads& where, asio::awaitable<Reply> call)
      : loop(where),
        result(asio::co_spawn(where.executor(), std::move(call),
                              asio::bind_cancellation_slot(signal.slot(), asio::use_future))) {}
  void cancel() {
    asio::post(loop.executor(), [this] { signal.emit(asio::cancellation_type::terminal); });
  }
  IoThreads& loop;
  asio::cancellation_signal signal;
  std::future<Reply> result;
};

TEST(ClientFaults, CancelledWaitLeavesTheOthersInOrder) {
  TestServer server;
  IoThreads loop(1);
  Client client(loop.executor(), quick(server.address()));
  loop.run(client.execute(Command("PING")));
  server.pause();
  auto before = loop.start(client.execute(Command("ECHO", "before")));
  Cancellable middle(loop, client.execute(Command("ECHO", "middle")));
  auto after = loop.start(client.execute(Command("ECHO", "after")));
  ASSERT_TRUE(soon([&] { return client.waiting() == 3; }));
  middle.cancel();
  EXPECT_THROW(middle.result.get(), boost::system::system_error);
  server.resume();
  EXPECT_EQ(before.get().text(), "before");
  EXPECT_EQ(after.get().text(), "after");
}

TEST(ClientFaults, CancelledBeforeItIsSentIsNeverSent) {
  TestServer server;
  server.kill();
  IoThreads loop(1);
  Client client(loop.executor(), quick(server.address()));
  Cancellable gone(loop, client.execute(Command("SET", "gone", 1)));
  ASSERT_TRUE(soon([&] { return client.waiting() == 1; }));
  gone.cancel();
  EXPECT_THROW(gone.result.get(), boost::system::system_error);
  EXPECT_EQ(client.waiting(), 0U);
  server.start();
  EXPECT_EQ(loop.run(client.execute(Command("EXISTS", "gone"))).integer(), 0);
}

TEST(ClientFaults, StopEndsEveryWait) {
  TestServer server;
  IoThreads loop(1);
  Client client(loop.executor(), quick(server.address()));
  loop.run(client.execute(Command("PING")));
  server.pause();
  auto sent = loop.start(client.execute(Command("INCR", "a"), 1h));
  ASSERT_TRUE(soon([&] { return client.waiting() == 1; }));
  std::this_thread::sleep_for(20ms);
  client.stop();
  client.stop();
  fault_of<UnknownOutcome>(std::move(sent));
  fault_of<NotDone>(loop.start(client.execute(Command("PING"))));
}

TEST(ClientFaults, ContextEndsAfterTheClient) {
  TestServer server;
  asio::io_context io;
  auto client = std::make_unique<Client>(io.get_executor(), quick(server.address()));
  auto pong = asio::co_spawn(io, client->execute(Command("PING")), asio::use_future);
  while (pong.wait_for(0s) != std::future_status::ready) io.run_one_for(1s);
  client.reset();
  io.restart();
  io.run();  // returns: nothing of the client keeps it busy
  EXPECT_EQ(pong.get().text(), "PONG");
}

TEST(ClientFaults, ContextMayEndBeforeItsWaiters) {
  TestServer server;
  server.pause();
  auto io = std::make_unique<asio::io_context>();
  auto client = std::make_unique<Client>(io->get_executor(), quick(server.address()));
  auto lost = asio::co_spawn(*io, client->execute(Command("PING")), asio::use_future);
  io->poll();
  client.reset();
  io.reset();  // with the stopped client's last work in it
  EXPECT_THROW(lost.get(), std::future_error);
}

TEST(ClientFaults, PeerThatIsntRedis) {
  FakePeer peer([](FakePeer::Socket& socket, int) {
    FakePeer::write(socket, "HTTP/1.1 400 Bad Request\r\n\r\n");
    FakePeer::wait_for_end(socket);
  });
  IoThreads loop(1);
  auto options = quick(peer.address());
  options.fail_fast = true;
  Client client(loop.executor(), options);
  const auto text = fault_of<NotDone>(loop.start(client.execute(Command("PING"))));
  EXPECT_TRUE(mentions(text, "Protocol error")) << text;
}

TEST(ClientFaults, ReplyThatNobodyAskedForBreaksTheConnection) {
  std::atomic<int> connections{0};
  FakePeer peer([&](FakePeer::Socket& socket, int) {
    ++connections;
    FakePeer::greet(socket);
    FakePeer::write(socket, "+SURPRISE\r\n");
    FakePeer::wait_for_end(socket);
  });
  IoThreads loop(1);
  Client client(loop.executor(), quick(peer.address()));
  EXPECT_TRUE(soon([&] { return connections >= 3; }));
}

TEST(ClientFaults, ServerThatGreetsAndDiesIsNotHammered) {
  std::atomic<int> connections{0};
  FakePeer peer([&](FakePeer::Socket& socket, int) {
    ++connections;
    FakePeer::greet(socket);
  });
  IoThreads loop(1);
  auto options = quick(peer.address());
  options.backoff_max = 100ms;
  Client client(loop.executor(), options);
  std::this_thread::sleep_for(300ms);
  EXPECT_GT(connections, 1);
  EXPECT_LT(connections, 60);  // without backoff some hundreds
}

TEST(ClientFaults, TooLargeAReplyIsNotAskedForAgain) {
  TestServer server;
  IoThreads loop(1);
  auto options = quick(server.address());
  options.max_reply_bytes = 100'000;
  Client client(loop.executor(), options);
  loop.run(client.execute(Command("SET", "large", std::string(200'000, 'x'))));
  const auto text = fault_of<UnknownOutcome>(loop.start(client.execute(Command::read("GET", "large"))));
  EXPECT_TRUE(mentions(text, "too large")) << text;
  EXPECT_EQ(loop.run(client.execute(Command("PING"))).text(), "PONG");
}

// A peer that answers with damaged bytes: each call ends, with a reply or a fault, and the client lives on.
TEST(ClientFaults, DamagedBytesFromAPeer) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  constexpr int kRounds = 150;
  FakePeer peer([&](FakePeer::Socket& socket, int) {
    FakePeer::greet(socket);
    for (;;) {
      FakePeer::read(socket, "key\r\n");
      std::string bytes = "*3\r\n$5\r\nhello\r\n:42\r\n*1\r\n+OK\r\n";
      for (auto changes = random.below(3); changes > 0; --changes)
        bytes[random.below(bytes.size())] = "+-:$*\r\n0129x"[random.below(12)];
      if (random.chance(0.2)) bytes.resize(random.below(bytes.size()));
      FakePeer::write(socket, bytes);
      if (random.chance(0.3)) return;
    }
  });
  IoThreads loop(1);
  auto options = quick(peer.address());
  options.silence_limit = 20ms;
  Client client(loop.executor(), options);
  int good = 0, bad = 0;
  for (int round = 0; round < kRounds; ++round) {
    try {
      const auto reply = loop.run(client.execute(Command("LRANGE", "key"), 30ms));
      good += reply.kind() == Reply::Kind::array ? 1 : 0;
    } catch (const Unavailable&) {
      ++bad;
    }
  }
  EXPECT_GT(good, 10);
  EXPECT_GT(bad, 10);
}

// Coroutines on the threads of several contexts, cancellations and broken connections: each reply reaches whom it
// is for.
TEST(ClientConcurrency, EveryReplyReachesItsCoroutine) {
  TestServer server;
  IoThreads home(2);  // the connection's strand has two threads to run on
  IoThreads workers[2] = {IoThreads(1), IoThreads(1)};
  Client client(home.executor(), quick(server.address()));
  Client other(home.executor(), quick(server.address()));
  std::atomic<int> wrong{0}, done{0}, failed{0}, cancelled{0};
  const auto worker = [&](int self) -> asio::awaitable<void> {
    for (int i = 0; i < 150; ++i) {
      const std::string mine = std::to_string(self) + ":" + std::to_string(i);
      try {
        wrong += (co_await client.execute(Command::read("ECHO", mine))).text() == mine ? 0 : 1;
        ++done;
      } catch (const Unavailable&) {
        ++failed;
      }
    }
  };
  const auto impatient = [&](int self) -> asio::awaitable<void> {
    for (int i = 0; i < 50; ++i) {
      asio::cancellation_signal signal;
      const auto executor = co_await asio::this_coro::executor;
      auto result = asio::co_spawn(executor, client.execute(Command("ECHO", self)),
                                   asio::bind_cancellation_slot(signal.slot(), asio::use_future));
      co_await asio::post(executor, asio::use_awaitable);
      signal.emit(asio::cancellation_type::terminal);
      while (result.wait_for(0s) != std::future_status::ready) co_await pause(1ms);
      try {
        wrong += result.get().text() == std::to_string(self) ? 0 : 1;
      } catch (const boost::system::system_error&) {
        ++cancelled;
      } catch (const Unavailable&) {
        ++failed;
      }
    }
  };
  std::vector<std::future<void>> all;
  for (int i = 0; i < 16; ++i) all.push_back(workers[i % 2].start(worker(i)));
  for (int i = 0; i < 4; ++i) all.push_back(workers[i % 2].start(impatient(i)));
  for (int i = 0; i < 5; ++i) {
    home.run(other.execute(Command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")));
    home.run(pause(5ms));
  }
  for (auto& one : all) one.get();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(done, 1000);
  EXPECT_GT(cancelled, 0);
  EXPECT_EQ(client.waiting(), 0U);
}

}  // namespace
}  // namespace weir::redis

#include "weir/redis/subscriber.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "weir/redis/client_fixture.h"

namespace weir::redis {
namespace {

// What was heard; "+" for each `joined`.
struct Heard {
  Subscriber::Calls calls() {
    return {.message = [this](std::string_view text) { add(std::string(text)); },
            .joined = [this] { add("+"); }};
  }
  void add(std::string text) {
    const std::lock_guard lock(mutex);
    all.push_back(std::move(text));
  }
  std::vector<std::string> now() const {
    const std::lock_guard lock(mutex);
    return all;
  }
  bool is(const std::vector<std::string>& wanted) const {
    return soon([&] { return now() == wanted; });
  }
  std::size_t joins() const {
    const auto seen = now();
    return static_cast<std::size_t>(std::ranges::count(seen, "+"));
  }
  mutable std::mutex mutex;
  std::vector<std::string> all;
};

SubscriberOptions quick(Address address) {
  return {.address = std::move(address),
          .channel = "news",
          .connect_timeout = 200ms,
          .ping_every = 20ms,
          .silence_limit = 200ms,
          .backoff_first = 1ms,
          .backoff_max = 20ms};
}

struct SubscriberConcurrency : testing::Test {
  std::int64_t publish(const std::string& text, const std::string& channel = "news") {
    return loop_.run(client_.execute(Command("PUBLISH", channel, text))).integer();
  }
  TestServer server_;
  IoThreads loop_{2};
  Client client_{loop_.executor(), {.address = server_.address(), .backoff_first = 1ms, .backoff_max = 20ms}};
  Heard heard_;
};

TEST_F(SubscriberConcurrency, HearsItsChannelInOrder) {
  Subscriber subscriber(loop_.executor(), quick(server_.address()), heard_.calls());
  ASSERT_TRUE(heard_.is({"+"}));
  EXPECT_TRUE(soon([&] { return subscriber.connected(); }));
  std::vector<std::string> wanted{"+"};
  for (int i = 0; i < 1000; ++i) {
    wanted.push_back(std::string("\0\r\n", 3) + std::to_string(i));
    EXPECT_EQ(publish(wanted.back()), 1);
    publish("not for us", "weather");
  }
  EXPECT_TRUE(heard_.is(wanted));
}

TEST_F(SubscriberConcurrency, TellsThatItMayHaveMissedSomething) {
  Subscriber subscriber(loop_.executor(), quick(server_.address()), heard_.calls());
  ASSERT_TRUE(heard_.is({"+"}));
  server_.kill();
  ASSERT_TRUE(soon([&] { return !subscriber.connected(); }));
  server_.start();
  ASSERT_TRUE(heard_.is({"+", "+"}));
  EXPECT_EQ(publish("after"), 1);
  EXPECT_TRUE(heard_.is({"+", "+", "after"}));
}

TEST_F(SubscriberConcurrency, ASilentServerIsGivenUp) {
  Subscriber subscriber(loop_.executor(), quick(server_.address()), heard_.calls());
  ASSERT_TRUE(heard_.is({"+"}));
  std::this_thread::sleep_for(500ms);  // quiet, not silent: it answers the PINGs
  EXPECT_EQ(heard_.joins(), 1u);
  server_.pause();
  EXPECT_TRUE(soon([&] { return !subscriber.connected(); }));
  server_.resume();
  EXPECT_TRUE(soon([&] { return heard_.joins() == 2; }));
}

TEST_F(SubscriberConcurrency, AServerThatIsSilentFromTheBeginningIsGivenUpToo) {
  std::atomic<int> connections{0};
  FakePeer peer([&](FakePeer::Socket& socket, int) {
    ++connections;
    char bytes[256];
    boost::system::error_code ended;
    while (!ended) socket.read_some(asio::buffer(bytes), ended);
  });
  const Subscriber subscriber(loop_.executor(), quick(peer.address()), heard_.calls());
  EXPECT_TRUE(soon([&] { return connections >= 3; }));
  EXPECT_FALSE(subscriber.connected());
}

TEST_F(SubscriberConcurrency, StopWaitsForACallUnderWayTheSecondTimeToo) {
  std::promise<void> begun, go;
  std::atomic<bool> done{false};
  Subscriber subscriber(loop_.executor(), quick(server_.address()), {.message = [&](std::string_view) {
                          subscriber.stop();
                          begun.set_value();
                          go.get_future().wait();
                          done = true;
                        }});
  ASSERT_TRUE(soon([&] { return publish("stop") == 1; }));
  begun.get_future().wait();
  std::thread releaser([&] {
    std::this_thread::sleep_for(50ms);
    go.set_value();
  });
  subscriber.stop();
  EXPECT_TRUE(done);
  releaser.join();
}

TEST_F(SubscriberConcurrency, StartsBeforeItsServer) {
  server_.kill();
  Subscriber subscriber(loop_.executor(), quick(server_.address()), heard_.calls());
  std::this_thread::sleep_for(50ms);
  server_.start();
  EXPECT_TRUE(heard_.is({"+"}));
}

TEST_F(SubscriberConcurrency, NothingIsHeardAfterStop) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> stopped{false}, late{false};
    Subscriber subscriber(
        loop_.executor(), quick(server_.address()),
        {.message = [&](std::string_view) { late = late || stopped; }, .joined = [&] { heard_.add("+"); }});
    const auto before = static_cast<std::size_t>(round);
    ASSERT_TRUE(soon([&] { return heard_.joins() > before; }));
    std::vector<std::future<Reply>> published;
    for (int i = 0; i < 20; ++i)
      published.push_back(loop_.start(client_.execute(Command("PUBLISH", "news", i))));
    subscriber.stop();
    stopped = true;
    for (auto& one : published) one.get();
    EXPECT_FALSE(late);
    EXPECT_TRUE(soon([&] { return publish("nobody") == 0; }));
  }
}

TEST_F(SubscriberConcurrency, ACallMayThrowAndStopItsSubscriber) {
  std::unique_ptr<Subscriber> subscriber;
  std::atomic<int> calls{0};
  std::mutex made;
  {
    const std::lock_guard lock(made);
    subscriber = std::make_unique<Subscriber>(loop_.executor(), quick(server_.address()),
                                              Subscriber::Calls{.message = [&](std::string_view text) {
                                                ++calls;
                                                if (text == "throw" && calls % 2 == 0) throw 42;
                                                if (text == "throw")
                                                  throw std::runtime_error("thrown on purpose");
                                                const std::lock_guard wait(made);
                                                subscriber->stop();
                                              }});
  }
  ASSERT_TRUE(soon([&] { return publish("throw") == 1; }));
  ASSERT_TRUE(soon([&] { return calls >= 1; }));
  publish("throw");
  ASSERT_TRUE(soon([&] { return calls >= 2; }));
  const int before = calls;
  publish("stop");
  EXPECT_TRUE(soon([&] { return calls == before + 1; }));
  EXPECT_TRUE(soon([&] { return publish("nobody") == 0; }));
}

TEST_F(SubscriberConcurrency, AMessageThatIsTooLargeBreaksTheConnectionAndIsToldAsAGap) {
  auto options = quick(server_.address());
  options.max_message_bytes = 64 << 10;
  Subscriber subscriber(loop_.executor(), options, heard_.calls());
  ASSERT_TRUE(heard_.is({"+"}));
  publish(std::string(200 << 10, 'x'));
  EXPECT_TRUE(heard_.is({"+", "+"}));
  EXPECT_EQ(publish("small"), 1);
  EXPECT_TRUE(heard_.is({"+", "+", "small"}));
}

TEST(SubscriberWithPassword, WantsTheRightOne) {
  TestServer server({"--requirepass", "secret"});
  IoThreads loop(1);
  Heard wrong, right;
  auto address = server.address();
  address.password = "wrong";
  Subscriber refused(loop.executor(), quick(address), wrong.calls());
  address.password = "secret";
  Subscriber taken(loop.executor(), quick(address), right.calls());
  EXPECT_TRUE(right.is({"+"}));
  EXPECT_TRUE(wrong.now().empty());
}

// A peer that isn't Redis, or not any more: whatever it says, the next connection is a new beginning.
TEST(SubscriberWithLiar, NonsenseBreaksTheConnection) {
  const std::string joined = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
  // To the greeting; to SUBSCRIBE.
  const std::vector<std::pair<std::string, std::string>> answers{
      {"+OK\r\n", ""},
      {"$-1\r\n", ""},
      {"\xff\xff", ""},
      {"+PONG\r\n:1\r\n", ""},
      {"+PONG\r\n", "*0\r\n"},
      {"+PONG\r\n", "+OK\r\n"},
      {"+PONG\r\n", "-ERR no\r\n"},
      {"+PONG\r\n", "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n"},  // before it has joined
      {"+PONG\r\n", joined + "*1\r\n$7\r\nmessage\r\n"},
      {"+PONG\r\n", joined + "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n:1\r\n"},
      {"+PONG\r\n", joined + joined},
      {"+PONG\r\n", joined + "$4\r\nPONG\r\n"}};
  std::atomic<int> connections{0};
  FakePeer peer([&](FakePeer::Socket& socket, int number) {
    ++connections;
    char bytes[256];
    const auto& [greeting, after] = answers[static_cast<std::size_t>(number) % answers.size()];
    socket.read_some(asio::buffer(bytes));
    asio::write(socket, asio::buffer(greeting));
    boost::system::error_code ended;
    socket.read_some(asio::buffer(bytes), ended);
    if (!ended) asio::write(socket, asio::buffer(after));
    while (!ended) socket.read_some(asio::buffer(bytes), ended);
  });
  IoThreads loop(1);
  std::atomic<int> messages{0};
  {
    // The peer never ends a connection; nor would these limits within the test.
    auto patient = quick(peer.address());
    patient.connect_timeout = patient.silence_limit = 1h;
    const Subscriber subscriber(loop.executor(), patient, {.message = [&](std::string_view) { ++messages; }});
    EXPECT_TRUE(soon([&] { return connections >= 3 * static_cast<int>(answers.size()); }));
  }
  EXPECT_EQ(messages, 0);
}

}  // namespace
}  // namespace weir::redis

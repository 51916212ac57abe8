#include "weir/http/poller.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http {
namespace {

namespace asio = boost::asio;

class PollerTest : public testing::Test {
 protected:
  // A stream and the other end of its connection.
  struct Pair {
    explicit Pair(Poller& poller) : stream(connect()) { stream.watch_by(poller); }
    ~Pair() { hang_up(); }
    void send(std::string_view bytes) const {
      ASSERT_EQ(::write(other, bytes.data(), bytes.size()), ssize_t(bytes.size()));
    }
    void hang_up() {
      if (other >= 0) ::close(std::exchange(other, -1));
    }
    int connect() {
      int ends[2] = {-1, -1};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      other = ends[1];
      return ends[0];
    }
    int other = -1;
    Stream stream;
  };

  // Reads until the end, `room` bytes at a time; tells in `log_` what it got.
  asio::awaitable<void> read_all(Stream& stream, std::string name, std::size_t room) {
    std::string bytes(room, '\0');
    for (;;) {
      co_await stream.wait_for_input(asio::deferred);
      ++resumed_;
      const auto transfer = stream.read(asio::buffer(bytes));
      if (transfer.ended) break;
      if (transfer.count > 0) log_.push_back(name + bytes.substr(0, transfer.count));
    }
    log_.push_back(name + ".");
  }
  void run(asio::awaitable<void> work) { asio::co_spawn(context_, std::move(work), asio::detached); }
  void turn() {
    context_.restart();
    context_.run_for(std::chrono::milliseconds(20));
  }

  using Log = std::vector<std::string>;
  asio::io_context context_;
  Poller poller_{context_};
  Log log_;
  int resumed_ = 0;
};

TEST_F(PollerTest, ReadsWhatComes) {
  Pair a(poller_);
  run(read_all(a.stream, "a", 100));
  turn();
  EXPECT_EQ(log_, Log{});
  a.send("1");
  turn();
  a.send("2");
  turn();
  EXPECT_EQ(log_, (Log{"a1", "a2"}));
  EXPECT_EQ(resumed_, 2) << "it came round to read nothing";
  a.hang_up();
  turn();
  EXPECT_EQ(log_, (Log{"a1", "a2", "a."}));
}

// The edge of the end is told once, with that of the bytes before it.
TEST_F(PollerTest, SeesTheEndThatComesWithTheLastBytes) {
  Pair a(poller_);
  a.send("last");
  a.hang_up();
  run(read_all(a.stream, "a", 100));
  turn();
  EXPECT_EQ(log_, (Log{"alast", "a."}));
}

TEST_F(PollerTest, LetsOthersHaveTheirTurnBetweenFullReads) {
  Pair a(poller_), b(poller_);
  a.send("123");
  b.send("1");
  run(read_all(a.stream, "a", 1));
  run(read_all(b.stream, "b", 1));
  a.hang_up();
  b.hang_up();
  turn();
  EXPECT_EQ(log_, (Log{"a1", "b1", "a2", "b.", "a3", "a."}));
}

TEST_F(PollerTest, ServesMoreThanABatch) {
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < 300; ++i) {
    pairs.push_back(std::make_unique<Pair>(poller_));
    run(read_all(pairs.back()->stream, "", 100));
  }
  turn();
  for (const auto& pair : pairs) pair->send("x");
  turn();
  EXPECT_EQ(log_, Log(300, "x"));
  for (const auto& pair : pairs) pair->hang_up();
  turn();
  EXPECT_EQ(log_.size(), 600U);
}

TEST_F(PollerTest, EndsAWaitThatIsWoken) {
  Pair a(poller_);
  run([](Stream& stream, Log& log) -> asio::awaitable<void> {
    co_await stream.wait_for_input(asio::deferred);
    char byte = 0;
    log.push_back(std::to_string(stream.read(asio::buffer(&byte, 1)).count));
  }(a.stream, log_));
  turn();
  a.stream.wake();
  EXPECT_EQ(log_, Log{}) << "not within the call";
  turn();
  EXPECT_EQ(log_, Log{"0"});
  a.stream.wake();  // nobody waits
  turn();
}

TEST_F(PollerTest, WaitsForRoom) {
  Pair a(poller_);
  const std::string much(4 << 20, 'x');
  std::size_t sent = 0;
  run([](Stream& stream, const std::string& bytes, std::size_t& count) -> asio::awaitable<void> {
    while (count < bytes.size()) {
      const auto transfer = stream.write({asio::buffer(bytes.data() + count, bytes.size() - count), {}});
      if (transfer.ended) co_return;
      count += transfer.count;
      if (transfer.count == 0) co_await stream.wait_for_room(asio::deferred);
    }
  }(a.stream, much, sent));
  turn();
  EXPECT_GT(sent, 0U);
  EXPECT_LT(sent, much.size());
  std::string got(much.size(), '\0');
  for (std::size_t received = 0; received < much.size();) {
    const ssize_t count = ::read(a.other, got.data() + received, got.size() - received);
    ASSERT_GT(count, 0);
    received += static_cast<std::size_t>(count);
    turn();
  }
  EXPECT_EQ(sent, much.size());
  EXPECT_EQ(got, much);
}

TEST_F(PollerTest, GivesTurnsWhenAllThatWereReadyWereServed) {
  Pair a(poller_), b(poller_);
  const auto serve = [](Poller& poller, Stream& stream, std::string name, Log& log) -> asio::awaitable<void> {
    co_await stream.wait_for_input(asio::deferred);
    char byte = 0;
    stream.read(asio::buffer(&byte, 1));
    log.push_back(name + " read");
    EXPECT_TRUE(poller.delivering());
    co_await stream.wait_for_turn(asio::deferred);
    EXPECT_FALSE(poller.delivering());
    log.push_back(name + " answered");
  };
  run(serve(poller_, a.stream, "a", log_));
  run(serve(poller_, b.stream, "b", log_));
  turn();
  a.send("1");
  b.send("1");
  turn();
  EXPECT_EQ(log_, (Log{"a read", "b read", "a answered", "b answered"}));
}

TEST_F(PollerTest, TellsThatThereIsNobodyToWriteTo) {
  Pair a(poller_);
  a.hang_up();
  EXPECT_TRUE(a.stream.write({asio::buffer("x", 1), {}}).ended);
}

}  // namespace
}  // namespace weir::http

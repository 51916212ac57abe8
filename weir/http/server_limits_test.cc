// Deadlines, limits and the end of a server.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <fstream>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "weir/http/server.h"
#include "weir/http/server_fixture.h"
#include "weir/telemetry/metrics.h"
#include "weir/testing/sanitized.h"

namespace weir::http {
namespace {

using Clock = std::chrono::steady_clock;

// Sends a byte every 10 ms until the server closes or 10 s have passed; how long that was.
Clock::duration drip(RawClient& client, std::string_view bytes) {
  const auto begin = Clock::now();
  for (std::size_t i = 0; Clock::now() - begin < std::chrono::seconds(10); ++i) {
    if (!client.send(bytes.substr(i % bytes.size(), 1))) break;
    std::this_thread::sleep_for(milliseconds(10));
    char byte = 0;
    if (::recv(client.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) break;
  }
  return Clock::now() - begin;
}

TEST(ServerLimitsConcurrency, CutsSlowHeadsOff) {
  ServerOptions options;
  options.head_deadline = milliseconds(150);
  TestServer server(options);
  RawClient client = server.connect();
  ASSERT_TRUE(client.send("GET /fast HTTP/1.1\r\n"));
  const auto took = drip(client, "A: b\r\n");
  EXPECT_GE(took, milliseconds(100));
  EXPECT_LT(took, std::chrono::seconds(5)) << "each byte may not renew the deadline";
  const auto answer = client.receive();
  EXPECT_EQ(answer.status, 408U);
  EXPECT_EQ(answer.header("Connection"), "close");
}

TEST(ServerLimitsConcurrency, CutsSlowBodiesOff) {
  ServerOptions options;
  options.body_deadline = milliseconds(150);
  TestServer server(options);
  RawClient client = server.connect();
  ASSERT_TRUE(client.send("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"));
  const auto took = drip(client, "x");
  EXPECT_GE(took, milliseconds(100));
  EXPECT_LT(took, std::chrono::seconds(5));
  EXPECT_EQ(client.receive().status, 408U);
}

// The handler's time begins when the request is there, however long that took.
TEST(ServerLimitsConcurrency, LeavesHandlersTheirTimeAfterSlowBodies) {
  ServerOptions options;
  options.request_deadline = milliseconds(200);
  Router router = test_routes();
  router.add({"POST",
              "/wait",
              Access::anyone,
              [](Request&) -> Reply { co_return co_await wait_for(milliseconds(20)); },
              {}});
  TestServer server(options, std::move(router));
  RawClient client = server.connect();
  const std::string request = post("/wait", "{}");
  ASSERT_TRUE(client.send(request.substr(0, request.size() - 1)));
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_EQ(client.ask(request.substr(request.size() - 1)).body, "waited");
}

// Who is refused late, too, is given the time to read why.
TEST(ServerLimitsConcurrency, LingersAfterASlowBody) {
  ServerOptions options;
  options.body_deadline = milliseconds(2'500);  // longer than it lingers
  TestServer server(options);
  RawClient client = server.connect();
  ASSERT_TRUE(client.send("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"));
  EXPECT_EQ(client.receive().status, 408U);
  EXPECT_TRUE(client.send(std::string(500'000, 'x')));
  EXPECT_TRUE(server.has_connections(1)) << "it is still there";
  EXPECT_TRUE(client.send(std::string(400'000, 'x'))) << "not reset";
}

TEST(ServerLimitsConcurrency, ClosesIdleConnections) {
  ServerOptions options;
  options.idle_deadline = milliseconds(100);
  TestServer server(options);
  RawClient silent = server.connect();
  EXPECT_TRUE(silent.closed());
  RawClient served = server.connect();
  EXPECT_EQ(served.ask(get("/fast")).body, "fast");
  EXPECT_TRUE(served.closed());
  EXPECT_TRUE(server.has_connections(0));
}

TEST(ServerLimitsConcurrency, DropsClientsThatDontTakeTheirAnswer) {
  ServerOptions options;
  options.write_deadline = milliseconds(100);
  TestServer server(options);
  RawClient client = server.connect();
  // More than the sockets' buffers hold, in answers that a client may take little longer for than the deadline.
  for (int i = 0; i < 2000; ++i) client.send(get("/large?size=20000"));
  EXPECT_TRUE(server.has_connections(1));
  EXPECT_TRUE(server.has_connections(0));
}

TEST(ServerLimitsConcurrency, CancelsSlowHandlers) {
  ServerOptions options;
  options.request_deadline = milliseconds(100);
  TestServer server(options);
  RawClient client = server.connect();
  const auto begin = Clock::now();
  const auto answer = client.ask(get("/wait?ms=60000"));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(answer.status, 503U);
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_NE(answer.body.find("\"unavailable\""), std::string::npos);
  EXPECT_EQ(client.ask(get("/wait?ms=10")).body, "waited") << "the connection lives on, uncancelled";
  EXPECT_EQ(client.ask(get("/fast")).body, "fast");
}

TEST(ServerLimitsConcurrency, RefusesConnectionsBeyondTheLimit) {
  ServerOptions options;
  options.max_connections = 2;
  TestServer server(options);
  RawClient one = server.connect();
  RawClient two = server.connect();
  EXPECT_EQ(one.ask(get("/fast")).status, 200U);
  EXPECT_EQ(two.ask(get("/fast")).status, 200U);
  RawClient three = server.connect();
  const auto answer = three.receive();
  EXPECT_EQ(answer.status, 503U);
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_NE(answer.header("Retry-After"), "");
  three.stop_sending();
  EXPECT_TRUE(three.closed());
  one.close();
  three.close();
  EXPECT_TRUE(server.has_connections(1));
  EXPECT_EQ(server.ask(get("/fast")).status, 200U);
}

// With no file descriptor left, accept fails until one is free: the server must neither spin nor die.
TEST(ServerLimitsConcurrency, SurvivesRunningOutOfDescriptors) {
  TestServer server;
  auto failures = telemetry::counter("weir_swallowed_errors_total",
                                     "Failures that were logged and lived with", {{"where", "http.accept"}});
  RawClient client;
  client.open();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(client.descriptor()) + 1;  // the lowest free one is always taken
  const double failed = failures.value();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_TRUE(client.connect(server->port())) << "the system accepts for us";
  std::this_thread::sleep_for(milliseconds(300));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_GE(failures.value() - failed, 1);
  EXPECT_LE(failures.value() - failed, 10) << "it pauses between its attempts";
  EXPECT_EQ(client.ask(get("/fast")).body, "fast");
}

TEST(ServerLimitsConcurrency, StopsGracefully) {
  TestServer server;
  RawClient idle = server.connect();
  EXPECT_EQ(idle.ask(get("/fast")).status, 200U);
  RawClient working = server.connect();
  ASSERT_TRUE(working.send(get("/wait?ms=300")));
  RawClient pipelining = server.connect();
  ASSERT_TRUE(pipelining.send(get("/wait?ms=300") + get("/fast")));
  ASSERT_TRUE(server.has_connections(3));
  std::this_thread::sleep_for(milliseconds(50));  // the requests are under way
  auto stopped = std::async(std::launch::async, [&] {
    const auto begin = Clock::now();
    server->stop(std::chrono::seconds(10));
    return Clock::now() - begin;
  });
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(server->stopping());
  const auto answer = working.receive();
  EXPECT_EQ(answer.body, "waited") << "what runs is finished";
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_EQ(pipelining.receive().body, "waited");
  EXPECT_EQ(pipelining.receive().status, 0U) << "what has not begun isn't";
  working.close();
  pipelining.close();
  EXPECT_LT(stopped.get(), std::chrono::seconds(5));
  EXPECT_EQ(server->connections(), 0U);
  RawClient late;
  EXPECT_FALSE(late.connect(server->port()));
  server->stop();  // again is harmless
}

TEST(ServerLimitsConcurrency, StopsInTimeWhateverRuns) {
  TestServer server;
  RawClient working = server.connect();
  ASSERT_TRUE(working.send(get("/wait?ms=60000")));
  RawClient halfway = server.connect();
  ASSERT_TRUE(halfway.send("GET /fast HT"));
  ASSERT_TRUE(server.has_connections(2));
  std::this_thread::sleep_for(milliseconds(50));
  const auto begin = Clock::now();
  server->stop(milliseconds(100));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(working.receive().status, 503U) << "cancelled, and told so";
  EXPECT_TRUE(halfway.closed());
}

// What handlers wait for that can't be cancelled.
struct Never {
  boost::asio::awaitable<void> wait() {
    co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
        [this](auto handler) {
          auto kept = std::make_shared<decltype(handler)>(std::move(handler));
          held = [kept] { boost::asio::post(kept->get_executor(), std::move(*kept)); };
        },
        boost::asio::use_awaitable);
  }
  std::function<void()> held;  // called, it ends the wait
};

Router routes_with(Never& never, const std::shared_ptr<int>& alive) {
  Router router = test_routes();
  router.add({"GET",
              "/never",
              Access::anyone,
              [&never, alive](Request& request) -> Reply {
                const auto mine = alive;
                co_await never.wait();
                co_return Response::text(std::to_string(*mine) + std::string(request.path));
              },
              {}});
  return router;
}

TEST(ServerLimitsConcurrency, AnswersForHandlersThatCantBeCancelled) {
  Never never;
  ServerOptions options;
  options.threads = 1;
  options.request_deadline = milliseconds(100);
  TestServer server(options, routes_with(never, std::make_shared<int>(1)));
  RawClient client = server.connect();
  const auto begin = Clock::now();
  ASSERT_TRUE(client.send(get("/fast") + get("/never")));
  EXPECT_EQ(client.receive().body, "fast");
  const auto answer = client.receive();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(answer.status, 503U);
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_TRUE(client.closed()) << "nothing follows";
  EXPECT_EQ(server->connections(), 1U) << "it is the handler's until that ends";
  EXPECT_EQ(server.ask(get("/fast")).body, "fast");
  never.held();
  EXPECT_TRUE(server.has_connections(0));
}

// A handler that nothing wakes is destroyed with the server.
TEST(ServerLimitsConcurrency, DestroysWhatNeverEnds) {
  Never never;
  auto alive = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = alive;
  Router router = routes_with(never, alive);
  alive.reset();
  {
    TestServer server({}, std::move(router));
    RawClient client = server.connect();
    ASSERT_TRUE(client.send(get("/never")));
    ASSERT_TRUE(server.has_connections(1));
    std::this_thread::sleep_for(milliseconds(50));
    server->stop(milliseconds(10));
    never.held = nullptr;  // as a pool does that is stopped before the server is destroyed
  }
  EXPECT_TRUE(seen.expired());
}

double clients_cut() {
  return telemetry::counter("weir_http_clients_cut_total",
                            "Slow clients cut off because too much was held for them")
      .value();
}

double client_bytes() {
  return telemetry::gauge("weir_http_client_bytes", "Bodies and answers held for slow clients, in bytes")
      .value();
}

// Waits until the server has taken what it takes from the silent.
void settle() {
  for (double before = -1; before != client_bytes();) {
    before = client_bytes();
    std::this_thread::sleep_for(milliseconds(100));
  }
}

// Clients that ask for much and take none of it hold no more than the limit, and cost others nothing.
TEST(ServerLimitsConcurrency, BoundsTheAnswersOfAllClients) {
  ServerOptions options;
  options.max_client_memory = 32 << 20;
  TestServer server(options);
  const double before = clients_cut();
  std::vector<RawClient> silent;
  for (int i = 0; i < 30; ++i) {
    silent.push_back(server.connect());
    ASSERT_TRUE(silent.back().send(get("/large?size=8000000")));
    EXPECT_LE(client_bytes(), 33 << 20);
  }
  settle();
  RawClient honest = server.connect();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(honest.ask(get("/large?size=8000000")).body.size(), 8'000'000U);
  EXPECT_GE(clients_cut() - before, 20);
  silent.clear();
  honest.close();
  EXPECT_TRUE(server.has_connections(0));
  EXPECT_EQ(client_bytes(), 0);
}

#if !WEIR_SANITIZED
// The most that this process has had in memory, in bytes.
std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) << 10;
  return 0;
}

// Those who are cut may come to their end behind many others: what they held must be free at once.
TEST(ServerLimitsConcurrency, BoundsABurstOfAnswers) {
  ServerOptions options;
  options.threads = 1;
  options.max_client_memory = 32 << 20;
  TestServer server(options);
  std::vector<RawClient> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(server.connect());
  const std::size_t before = peak_memory();
  for (RawClient& client : silent) ASSERT_TRUE(client.send(get("/large?size=8000000")));
  settle();
  EXPECT_EQ(server.ask(get("/fast")).body, "fast");
  EXPECT_LT(peak_memory() - before, 150 << 20);
}
#endif

TEST(ServerLimitsConcurrency, RefusesWhatARouteDoesNotTake) {
  Router router = test_routes();
  Route little{"POST",
               "/little",
               Access::anyone,
               [](Request& request) -> Reply { co_return Response::text(request.body); },
               {},
               100};
  router.add(std::move(little));
  TestServer server({}, std::move(router));
  EXPECT_EQ(server.ask(post("/little", std::string(100, 'x'))).body.size(), 100U);
  RawClient client = server.connect();
  ASSERT_TRUE(
      client.send("POST /little HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n"));
  EXPECT_EQ(client.receive().status, 413U) << "before any of it was asked for";
  const std::string chunked = "POST /little HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n";
  EXPECT_EQ(server.ask(chunked + std::string(101, 'x') + "\r\n0\r\n\r\n").status, 413U);
  EXPECT_EQ(server.ask(post("/nowhere", std::string(1'000, 'x'))).status, 404U);
  EXPECT_EQ(server.ask(post("/nowhere", std::string(100'000, 'x'))).status, 413U);
}

TEST(ServerLimitsConcurrency, BoundsTheBodiesOfAllClients) {
  ServerOptions options;
  options.max_client_memory = 32 << 20;
  TestServer server(options);
  const double before = clients_cut();
  const std::string most(1'900'000, 'b');
  const std::string head =
      "POST /body HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n";
  std::vector<RawClient> halfway;
  for (int i = 0; i < 30; ++i) {
    halfway.push_back(server.connect());
    ASSERT_TRUE(halfway.back().send(head + most));
    EXPECT_LE(client_bytes(), 33 << 20);
  }
  settle();
  RawClient honest = server.connect();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(honest.ask(post("/body", most)).body.size(), most.size());
  EXPECT_GE(clients_cut() - before, 10);
  int told = 0;
  for (RawClient& client : halfway) {
    char byte = 0;
    if (::recv(client.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) continue;
    const auto answer = client.receive();
    EXPECT_EQ(answer.status, 503U);
    EXPECT_EQ(answer.header("Connection"), "close");
    ++told;
  }
  EXPECT_GE(told, 10);
}

TEST(ServerLimitsConcurrency, CountsRequests) {
  TestServer server;
  RawClient client = server.connect();
  client.ask(get("/echo/a"));
  client.ask(get("/echo/b"));
  client.ask(get("/nowhere"));
  client.ask("DELETE /fast HTTP/1.1\r\nHost: x\r\n\r\n");
  client.ask("BREW /fast HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string figures = telemetry::scrape();
  const auto has = [&](const char* route, const char* method, const char* status) {
    const std::string labels =
        std::string("{method=\"") + method + "\",route=\"" + route + "\",status=\"" + status + "\"}";
    return figures.find("weir_http_request_duration_seconds_count" + labels) != std::string::npos;
  };
  EXPECT_TRUE(has("/echo/{name}", "GET", "200"));
  EXPECT_TRUE(has("none", "GET", "404"));
  EXPECT_TRUE(has("/fast", "DELETE", "405"));
  EXPECT_TRUE(has("/fast", "other", "405")) << "a client can't invent series";
  EXPECT_NE(figures.find("weir_http_connections "), std::string::npos);
}

}  // namespace
}  // namespace weir::http

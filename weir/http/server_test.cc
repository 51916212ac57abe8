#include "weir/http/server.h"

#include <gtest/gtest.h>

#include <thread>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/http/server_fixture.h"

namespace weir::http {
namespace {

using namespace std::string_literals;

TEST(ServerConcurrency, AnswersAndKeepsTheConnection) {
  TestServer server;
  RawClient client = server.connect();
  const auto first = client.ask(get("/fast"));
  EXPECT_EQ(first.status, 200U);
  EXPECT_EQ(first.body, "fast");
  EXPECT_EQ(first.header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(first.header("Connection"), "");
  EXPECT_EQ(first.header("X-Request-Id").size(), 16U);
  EXPECT_TRUE(first.header("Date").ends_with(" GMT"));
  const auto second = client.ask(get("/echo/%E7%83%AD"));
  EXPECT_EQ(second.body, "热");
  EXPECT_NE(second.header("X-Request-Id"), first.header("X-Request-Id"));
  EXPECT_EQ(client.ask(get("/fails")).status, 404U);
  EXPECT_EQ(client.ask(get("/%zz")).status, 400U) << "a bad target leaves the framing intact";
  EXPECT_EQ(client.ask(get("/fast", "Connection: close\r\n")).header("Connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST(ServerConcurrency, SpeaksHttp10) {
  TestServer server;
  RawClient once = server.connect();
  EXPECT_EQ(once.ask("GET /fast HTTP/1.0\r\n\r\n").header("Connection"), "close") << "and needs no Host";
  EXPECT_TRUE(once.closed());
  RawClient kept = server.connect();
  EXPECT_EQ(kept.ask("GET /fast HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").header("Connection"),
            "keep-alive");
  EXPECT_EQ(kept.ask("GET /fast HTTP/1.0\r\n\r\n").body, "fast");
}

TEST(ServerConcurrency, AnswersHeadWithoutABody) {
  TestServer server;
  RawClient client = server.connect();
  ASSERT_TRUE(client.send("HEAD /shared HTTP/1.1\r\nHost: x\r\n\r\n" + get("/fast")));
  const auto head = client.receive(true);
  EXPECT_EQ(head.status, 200U);
  EXPECT_EQ(head.header("Content-Length"), "300000");
  EXPECT_EQ(client.receive().body, "fast");
}

TEST(ServerConcurrency, KeepsTheOrderOfPipelinedRequests) {
  TestServer server;
  RawClient client = server.connect();
  std::string all;
  for (int i = 0; i < 1000; ++i)
    all += i % 100 == 50 ? get("/wait?ms=2") : get("/echo/n" + std::to_string(i));
  std::thread sender([&] { client.send(all); });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(client.receive().body, i % 100 == 50 ? "waited" : "n" + std::to_string(i));
  }
  sender.join();
}

TEST(ServerConcurrency, DoesNotHoldAnswersBackForASlowOne) {
  TestServer server;
  RawClient client = server.connect();
  ASSERT_TRUE(client.send(get("/fast") + get("/wait?ms=3000")));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(client.receive().body, "fast");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2900));
  EXPECT_EQ(client.receive().body, "waited");
}

TEST(ServerConcurrency, SendsLargeAnswers) {
  TestServer server;
  RawClient client = server.connect();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(client.send(get("/large?size=5000000") + get("/shared") + get("/fast")));
    EXPECT_EQ(client.receive().body, std::string(5'000'000, 'x'));
    EXPECT_EQ(client.receive().body, std::string(300'000, 's'));
    EXPECT_EQ(client.receive().body, "fast");
  }
}

TEST(ServerConcurrency, ReadsBodies) {
  TestServer server;
  RawClient client = server.connect();
  EXPECT_EQ(client.ask(post("/body", "{\"a\":1}")).body, "{\"a\":1}");
  const std::string large(2'000'000, 'b');
  EXPECT_EQ(client.ask(post("/body", large)).body, large);
  const std::string chunked =
      "POST /body HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "3;ext=1\r\n[1,\r\n002\r\n2]\r\n0\r\nX-Trailer: ignored\r\n\r\n";
  EXPECT_EQ(client.ask(chunked).body, "[1,2]");
  for (const char c : chunked) ASSERT_TRUE(client.send({&c, 1}));
  EXPECT_EQ(client.receive().body, "[1,2]") << "byte by byte";
  ASSERT_TRUE(client.send(chunked + post("/body", "{}") + get("/fast")));
  EXPECT_EQ(client.receive().body, "[1,2]");
  EXPECT_EQ(client.receive().body, "{}");
  EXPECT_EQ(client.receive().body, "fast") << "the next request begins right behind";
}

TEST(ServerConcurrency, AsksForAnExpectedBody) {
  TestServer server;
  RawClient client = server.connect();
  const std::string whole = post("/body", "{}", "Expect: 100-continue\r\n");
  ASSERT_TRUE(client.send(whole.substr(0, whole.size() - 2)));
  EXPECT_EQ(client.receive(true).status, 100U);
  EXPECT_EQ(client.ask("{}").body, "{}");
  EXPECT_EQ(client.ask(whole).status, 200U) << "no need to ask for what is there";
  EXPECT_EQ(server.ask(post("/body", "{}", "Expect: a-miracle\r\n")).status, 417U);
}

TEST(ServerConcurrency, RefusesLargeBodies) {
  ServerOptions options;
  options.max_body = 1000;
  TestServer server(options);
  EXPECT_EQ(server.ask(post("/body", std::string(1000, 'x'))).status, 200U);
  RawClient client = server.connect();
  const auto answer = client.ask(post("/body", std::string(500'000, 'x')));
  EXPECT_EQ(answer.status, 413U) << "also when the client sends it all before it reads";
  EXPECT_NE(answer.body.find("\"body_too_large\""), std::string::npos);
  client.stop_sending();
  EXPECT_TRUE(client.closed());
  const std::string head = "POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(server.ask(head + "3e9\r\n").status, 413U);
  EXPECT_EQ(server.ask(head + "fffffffffffffffff\r\n").status, 400U);
  EXPECT_EQ(server.ask(head + "200\r\n" + std::string(512, 'x') + "\r\n200\r\n").status, 413U) << "together";
  EXPECT_EQ(
      server.ask("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n").status,
      413U);
}

// What two servers in a row might understand in two ways, and what is no HTTP at all.
TEST(ServerConcurrency, RefusesAmbiguousRequests) {
  TestServer server;
  const std::string start = "POST /body HTTP/1.1\r\nHost: x\r\n";
  const std::vector<std::pair<const char*, std::string>> all{
      {"CL and TE", start + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"TE and CL", start + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"},
      {"two lengths", start + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"},
      {"the same length twice", start + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"},
      {"a list of one length", start + "Content-Length: 3, 3\r\n\r\nabc"},
      {"a list of lengths", start + "Content-Length: 3, 4\r\n\r\nabc"},
      {"a negative length", start + "Content-Length: -3\r\n\r\nabc"},
      {"a signed length", start + "Content-Length: +3\r\n\r\nabc"},
      {"a length that is none", start + "Content-Length: 0x3\r\n\r\nabc"},
      {"a length beyond 64 bits", start + "Content-Length: 99999999999999999999\r\n\r\nabc"},
      {"an empty length", start + "Content-Length:\r\n\r\nabc"},
      {"another encoding", start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {"almost chunked", start + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
      {"chunked twice", start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"chunked, identity", start + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
      {"chunked in HTTP/1.0", "POST /body HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"a space before the colon", "GET /fast HTTP/1.1\r\nHost : x\r\n\r\n"},
      {"a folded field", "GET /fast HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"},
      {"a folded field, empty line", "GET /fast HTTP/1.1\r\nHost: x\r\nA:\r\n c\r\n\r\n"},
      {"bare line feeds", "GET /fast HTTP/1.1\nHost: x\n\n"},
      {"one bare line feed", "GET /fast HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"},
      {"a bare carriage return", "GET /fast HTTP/1.1\r\nHost: x\rA: b\r\n\r\n"},
      {"a NUL in a field", "GET /fast HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n"s},
      {"no name", "GET /fast HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n"},
      {"no colon", "GET /fast HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n"},
      {"no Host", "GET /fast HTTP/1.1\r\n\r\n"},
      {"two Hosts", "GET /fast HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
      {"a Host that is none", "GET /fast HTTP/1.1\r\nHost: x/y\r\n\r\n"},
      {"two spaces", "GET  /fast HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"a space in the target", "GET /fast x HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"no version", "GET /fast\r\nHost: x\r\n\r\n"},
      {"not HTTP", "nonsense\r\n\r\n"},
      {"a TLS handshake", "\x16\x03\x01\x02\x00\x01"s},
      {"a chunk size that is none", start + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"},
      {"a chunk without its end", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n"},
      {"an endless chunk head", start + "Transfer-Encoding: chunked\r\n\r\n3;" + std::string(40'000, 'x')},
  };
  for (const auto& [what, request] : all) {
    RawClient client = server.connect();
    const auto answer = client.ask(request);
    EXPECT_EQ(answer.status, 400U) << what;
    EXPECT_EQ(answer.header("Connection"), "close") << what;
    EXPECT_EQ(answer.header("Content-Type"), "application/problem+json") << what;
    client.stop_sending();
    EXPECT_TRUE(client.closed()) << what;
  }
  EXPECT_EQ(server.ask("GET /fast HTTP/2.0\r\nHost: x\r\n\r\n").status, 505U);
}

TEST(ServerConcurrency, LimitsHeads) {
  TestServer server;
  const std::string line = "A: " + std::string(8189, 'x') + "\r\n";
  EXPECT_EQ(server.ask(get("/fast", line)).status, 200U);
  EXPECT_EQ(server.ask(get("/fast", "A" + line)).status, 431U);
  EXPECT_EQ(server.ask(get("/" + std::string(9000, 'x'))).status, 431U);
  EXPECT_EQ(server.ask(std::string(100'000, 'G')).status, 431U) << "without any line end";
  std::string many;
  for (int i = 0; i < 99; ++i) many += "A: b\r\n";
  EXPECT_EQ(server.ask(get("/fast", many)).status, 200U);
  EXPECT_EQ(server.ask(get("/fast", many + "A: b\r\n")).status, 431U);
  std::string wide;
  for (int i = 0; i < 10; ++i) wide += line;
  const auto answer = server.ask(get("/fast", wide));
  EXPECT_EQ(answer.status, 431U);
  EXPECT_NE(answer.body.find("\"header_too_large\""), std::string::npos);
}

TEST(ServerConcurrency, SplitsNoAnswers) {
  TestServer server;
  const auto answer = server.ask(get("/split"));
  EXPECT_EQ(answer.status, 500U);
  EXPECT_EQ(answer.head.find("evil"), std::string::npos);
}

TEST(ServerConcurrency, TakesSaneRequestIdsOver) {
  TestServer server;
  EXPECT_EQ(server.ask(get("/fast", "X-Request-Id: Abc-1.2_3\r\n")).header("X-Request-Id"), "Abc-1.2_3");
  for (const std::string& id :
       {std::string("a b"), std::string("{\"x\":1}"), std::string(65, 'a'), std::string()}) {
    EXPECT_EQ(server.ask(get("/fast", "X-Request-Id: " + id + "\r\n")).header("X-Request-Id").size(), 16U)
        << id;
  }
}

TEST(ServerConcurrency, BelievesOnlyTrustedProxies) {
  const std::string forwarded =
      get("/peer",
          "X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.1.2.3\r\nX-Forwarded-Proto: https\r\n"
          "X-Request-Id: i\r\n");
  TestServer plain;
  EXPECT_EQ(plain.ask(forwarded).body, "127.0.0.1 plain i");
  ServerOptions options;
  options.trusted_proxies = {"127.0.0.1", "10.0.0.0/8", "fd00::/8"};
  TestServer behind(options);
  EXPECT_EQ(behind.ask(forwarded).body, "203.0.113.9 secure i") << "what is before could be invented";
  EXPECT_EQ(behind.ask(get("/peer", "X-Forwarded-For: nonsense\r\nX-Request-Id: i\r\n")).body,
            "127.0.0.1 plain i");
  for (const char* text : {"", "x", "10.0.0.0/33", "10.0.0/8", "127.0.0.1:80"}) {
    options.trusted_proxies = {text};
    EXPECT_THROW(Server(options, test_routes(), nullptr), Unusable) << text;
  }
}

TEST(ServerConcurrency, TellsWhichAddressCantBeUsed) {
  TestServer server;
  ServerOptions options;
  const auto refusal = [&](const std::string& listen) {
    options.listen = listen;
    try {
      Server other(options, test_routes(), nullptr);
      other.start();
    } catch (const Unusable& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal(server->address()), "can't listen on " + server->address() + ": Address already in use");
  EXPECT_NE(refusal("203.0.113.1:80").find("203.0.113.1:80"), std::string::npos);
  for (const char* listen :
       {"", "8080", "localhost:80", "127.0.0.1:65536", "127.0.0.1:", "::1:80", "[127.0.0.1]:80"}) {
    EXPECT_NE(refusal(listen).find("not an address"), std::string::npos) << listen;
  }
}

TEST(ServerConcurrency, ServesManyClients) {
  ServerOptions options;
  options.access_log = AccessLogLevel::none;
  TestServer server(options);
  constexpr int kClients = 8, kRequests = 300;
  std::atomic<int> right{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      RawClient client = server.connect();
      for (int i = 0; i < kRequests; ++i) {
        const std::string word = "c" + std::to_string(c) + "-" + std::to_string(i);
        right += client.ask(get("/echo/" + word)).body == word ? 1 : 0;
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(right, kClients * kRequests);
}

// Whatever comes, the server answers something or closes, and serves the next client.
TEST(ServerConcurrency, StandsRandomBytes) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  ServerOptions options;
  options.head_deadline = options.body_deadline = milliseconds(50);
  options.access_log = AccessLogLevel::none;
  TestServer server(options);
  const std::vector<std::string> samples{
      get("/echo/x?a=b", "Cookie: a=b; weir_session=c\r\nIf-None-Match: \"x\", *\r\n"),
      post("/body", "{\"a\":[1,2]}"),
      "POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"};
  for (int round = 0; round < 300; ++round) {
    std::string bytes = samples[random.below(samples.size())] + samples[random.below(samples.size())];
    for (std::uint64_t i = 0, count = 1 + random.below(5); i < count; ++i) {
      const std::size_t at = random.below(bytes.size());
      if (random.chance(0.5)) {
        bytes[at] = static_cast<char>(random.below(256));
      } else {
        bytes.erase(at, 1 + random.below(4));
      }
    }
    RawClient client = server.connect();
    client.send(bytes);
    client.stop_sending();
    while (client.receive().status != 0) {
    }
  }
  EXPECT_EQ(server.ask(get("/fast")).body, "fast");
}

}  // namespace
}  // namespace weir::http

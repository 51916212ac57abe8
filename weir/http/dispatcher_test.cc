#include "weir/http/dispatcher.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "weir/base/fault.h"
#include "weir/http/operational.h"
#include "weir/http/problem.h"
#include "weir/testing/io_threads.h"
#include "weir/testing/serve.h"

namespace weir::http {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

Reply whoami(Request& request) {
  const auto& principal = request.principal;
  co_return Response::text(principal ? std::to_string(principal->user_id) : "nobody");
}

Router sample() {
  Router router;
  router.add({"GET", "/open", Access::anyone, whoami, {}});
  router.add({"POST", "/open", Access::anyone, whoami, {}});
  router.add({"GET", "/mine", Access::user, whoami, {}});
  router.add({"PUT", "/mine", Access::user, whoami, {}});
  router.add({"GET", "/admin", Access::admin, whoami, {}});
  const auto throwing = [](auto error) {
    return [error](Request&) -> Reply {
      throw error;
      co_return Response();
    };
  };
  router.add({"GET", "/problem", Access::anyone, throwing(conflict("email_taken", "It's taken.")), {}});
  router.add({"GET", "/unavailable", Access::anyone, throwing(Unavailable("disk full")), {}});
  router.add({"GET", "/timed-out", Access::anyone, throwing(TimedOut("slow")), {}});
  router.add({"GET", "/bug", Access::anyone, throwing(std::runtime_error("secret detail")), {}});
  router.add({"GET", "/odd", Access::anyone, throwing(42), {}});
  return router;
}

std::optional<Principal> authenticate(std::string_view token) {
  if (token == "user") return Principal{7, false, "s1"};
  if (token == "admin") return Principal{1, true, "s2"};
  return std::nullopt;
}

Response ask(std::string_view method, std::string_view target, Headers headers = {}, std::string body = {},
             std::vector<std::string> origins = {}) {
  const Dispatcher dispatcher(sample(), authenticate, std::move(origins));
  Request request(method, target, std::move(headers), std::move(body));
  return run_here(serve(dispatcher, request));
}

bool has_code(const Response& response, const std::string& code) {
  return response.content_type == "application/problem+json" &&
         response.body.find("\"code\":\"" + code + "\"") != std::string::npos;
}

TEST(Dispatcher, ChecksBearerTokens) {
  EXPECT_EQ(ask("GET", "/open").body, "nobody");
  EXPECT_EQ(ask("GET", "/open", {{"Authorization", "Bearer user"}}).body, "7");
  EXPECT_EQ(ask("GET", "/mine", {{"Authorization", "bearer   user"}}).body, "7");
  for (const char* value : {"Bearer other", "Bearer", "Bearer ", "Basic dXNlcg==", "user", ""}) {
    const Response response = ask("GET", "/open", {{"Authorization", value}});
    EXPECT_EQ(response.status, 401U) << value << ": a bad token is refused even where none is needed";
    EXPECT_TRUE(has_code(response, "unauthenticated"));
    EXPECT_EQ(header_of(response, "WWW-Authenticate"), "Bearer error=\"invalid_token\"");
  }
  EXPECT_EQ(ask("GET", "/mine").status, 401U);
}

TEST(Dispatcher, ChecksCookies) {
  EXPECT_EQ(ask("GET", "/mine", {{"Cookie", "weir_session=user"}}).body, "7");
  EXPECT_EQ(ask("GET", "/open", {{"Cookie", "weir_session=expired"}}).body, "nobody");
  EXPECT_EQ(ask("GET", "/mine", {{"Cookie", "weir_session=expired"}}).status, 401U);
  EXPECT_EQ(ask("GET", "/mine", {{"Cookie", "weir_session=user"}, {"Authorization", "Bearer x"}}).status,
            401U);
}

TEST(Dispatcher, RefusesForgedWrites) {
  const Response forged = ask("PUT", "/mine", {{"Cookie", "weir_session=user"}});
  EXPECT_EQ(forged.status, 403U);
  EXPECT_TRUE(has_code(forged, "forbidden"));
  EXPECT_EQ(ask("POST", "/open", {{"Cookie", "weir_session=user"}, {"X-Weir-Page", "0"}}).status, 403U);
  EXPECT_EQ(ask("PUT", "/mine", {{"Cookie", "weir_session=user"}, {"X-Weir-Page", "1"}}).body, "7");
  EXPECT_EQ(ask("PUT", "/mine", {{"Authorization", "Bearer user"}}).body, "7") << "a token is no cookie";
}

TEST(Dispatcher, LetsOnlyAdministratorsAdminister) {
  EXPECT_EQ(ask("GET", "/admin").status, 401U);
  EXPECT_EQ(ask("GET", "/admin", {{"Authorization", "Bearer user"}}).status, 403U);
  EXPECT_EQ(ask("GET", "/admin", {{"Authorization", "Bearer admin"}}).body, "1");
}

TEST(Dispatcher, TakesOnlyJson) {
  EXPECT_EQ(ask("POST", "/open", {{"Content-Type", "application/json"}}, "{}").status, 200U);
  EXPECT_EQ(ask("POST", "/open", {{"Content-Type", "text/plain"}}, "").status, 200U);
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"}) {
    const Response response = ask("POST", "/open", {{"Content-Type", type}}, "{}");
    EXPECT_TRUE(response.status == 415 && has_code(response, "unsupported_media_type")) << type;
  }
  EXPECT_EQ(ask("POST", "/open", {}, "{}").status, 415U) << "without a type";
}

TEST(Dispatcher, TellsWhatIsNotThere) {
  EXPECT_TRUE(has_code(ask("GET", "/nowhere"), "not_found"));
  const Response response = ask("DELETE", "/mine");
  EXPECT_EQ(response.status, 405U);
  EXPECT_TRUE(has_code(response, "method_not_allowed"));
  EXPECT_EQ(header_of(response, "Allow"), "GET, HEAD, PUT, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", "/mine").status, 204U);
  EXPECT_EQ(header_of(ask("OPTIONS", "/mine"), "Allow"), "GET, HEAD, PUT, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", "*").status, 204U);
  EXPECT_EQ(ask("OPTIONS", "/nowhere").status, 404U);
}

TEST(Dispatcher, TellsBrowsersWhatIsNotThereByAPage) {
  Router router = sample();
  router.set_not_found_page(
      [](Request& request) -> Reply { co_return Response::html(std::string(request.path), 404); });
  const Dispatcher dispatcher(std::move(router), authenticate, {});
  const auto content_type = [&](std::string_view method, std::string_view target, Headers headers) {
    Request request(method, target, std::move(headers));
    const Response response = run_here(serve(dispatcher, request));
    EXPECT_GE(response.status, 400U);
    return response.content_type.substr(0, response.content_type.find(';'));
  };
  const Headers browser{{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}};
  EXPECT_EQ(content_type("GET", "/nowhere", browser), "text/html");
  EXPECT_EQ(content_type("HEAD", "/a/b/c", browser), "text/html");
  EXPECT_EQ(content_type("POST", "/nowhere", browser), "application/problem+json");
  EXPECT_EQ(content_type("DELETE", "/open", browser), "application/problem+json");
  EXPECT_EQ(content_type("GET", "/mine", browser), "application/problem+json");
  EXPECT_EQ(content_type("GET", "/nowhere", {}), "application/problem+json");
  EXPECT_EQ(content_type("GET", "/nowhere", {{"Accept", "*/*"}}), "application/problem+json");
}

TEST(Dispatcher, TurnsExceptionsIntoProblems) {
  EXPECT_TRUE(has_code(ask("GET", "/problem"), "email_taken"));
  for (const char* path : {"/unavailable", "/timed-out"}) {
    const Response response = ask("GET", path);
    EXPECT_TRUE(response.status == 503 && has_code(response, "unavailable")) << path;
    EXPECT_EQ(header_of(response, "Retry-After"), "1");
  }
  for (const char* path : {"/bug", "/odd"}) {
    const Response response = ask("GET", path);
    EXPECT_TRUE(response.status == 500 && has_code(response, "internal_error")) << path;
    EXPECT_EQ(response.body.find("secret"), std::string::npos);
  }
}

TEST(Dispatcher, AnswersOtherOriginsAsConfigured) {
  const Headers preflight{{"Origin", "https://a.example"}, {"Access-Control-Request-Method", "PUT"}};
  const std::vector<std::string> origins{"https://a.example"};
  const Response allowed = ask("OPTIONS", "/mine", preflight, "", origins);
  EXPECT_EQ(header_of(allowed, "Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(header_of(allowed, "Access-Control-Allow-Methods"), "GET, HEAD, PUT, OPTIONS");
  EXPECT_EQ(header_of(allowed, "Access-Control-Allow-Credentials"), "") << "cookies are for our own pages";
  const Response other = ask("GET", "/open", {{"Origin", "https://b.example"}}, "", origins);
  EXPECT_EQ(header_of(other, "Access-Control-Allow-Origin"), "");
  EXPECT_EQ(header_of(other, "Vary"), "Origin");
  EXPECT_EQ(header_of(ask("GET", "/open", {{"Origin", "https://b.example"}}, "", {"*"}),
                      "Access-Control-Allow-Origin"),
            "https://b.example");
  EXPECT_EQ(header_of(ask("OPTIONS", "/mine", preflight), "Access-Control-Allow-Origin"), "");
  for (const char* origin : {"", "a.example", "https://a.example/", "https://", "https://a,b"}) {
    EXPECT_THROW(Dispatcher(sample(), authenticate, {origin}), Unusable) << origin;
  }
}

TEST(OperationalConcurrency, TellsItsHealth) {
  bool stopping = false;
  Health cache = Health::ok;
  Router router = sample();
  OperationalOptions options;
  options.version = "1";
  options.checks = {
      quick_check(
          "store", [] { return Health::ok; }, true),
      quick_check("cache", [&] { return cache == Health::down ? throw Unavailable("away") : cache; })};
  options.stopping = [&] { return stopping; };
  add_operational_routes(router, std::move(options));
  const Dispatcher dispatcher(std::move(router), authenticate, {});
  const auto ready = [&] {
    Request request("GET", "/readyz");
    const Response response = run_here(serve(dispatcher, request));
    return std::to_string(response.status) + " " + response.body;
  };
  EXPECT_EQ(ready(), R"(200 {"status":"ready","checks":{"store":"ok","cache":"ok"}})");
  cache = Health::down;
  EXPECT_EQ(ready(), R"(200 {"status":"degraded","checks":{"store":"ok","cache":"degraded"}})")
      << "not essential";
  stopping = true;
  EXPECT_TRUE(ready().starts_with(R"(503 {"status":"down")"));
  for (const char* path : {"/healthz", "/metrics", "/v1/openapi.json", "/docs"}) {
    Request request("GET", path);
    const Response response = run_here(serve(dispatcher, request));
    EXPECT_EQ(response.status, 200U) << path;
    EXPECT_FALSE(response.payload().empty()) << path;
  }
}

}  // namespace
}  // namespace weir::http

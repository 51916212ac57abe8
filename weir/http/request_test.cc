#include "weir/http/request.h"

#include <gtest/gtest.h>

#include "weir/http/problem.h"

namespace weir::http {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

unsigned status_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Problem& problem) {
    return problem.status();
  }
  return 0;
}

TEST(Request, SplitsTheTarget) {
  const Request request("GET", "/v1/a%2Fb/%E6%96%87?limit=3&q=a+b%26c&empty=&flag&limit=4");
  EXPECT_EQ(request.path, "/v1/a%2Fb/%E6%96%87");
  ASSERT_EQ(request.segments().size(), 3U);
  EXPECT_EQ(request.segments()[1], "a/b") << "an escaped slash stays within its segment";
  EXPECT_EQ(request.segments()[2], "文");
  EXPECT_EQ(request.query("limit"), "3") << "of several the first";
  EXPECT_EQ(request.query("q"), "a b&c");
  EXPECT_EQ(request.query("empty"), "");
  EXPECT_EQ(request.query("flag"), "");
  EXPECT_EQ(request.query("none"), std::nullopt);
  EXPECT_EQ(request.query_all().size(), 5U);
  EXPECT_TRUE(Request("GET", "/").segments().empty());
  EXPECT_EQ(Request("GET", "/a/").segments().size(), 2U) << "a slash at the end is an empty segment";
}

TEST(Request, UnderstandsAbsoluteTargets) {
  EXPECT_EQ(Request("GET", "http://example.com/v1/x?y=1").path, "/v1/x");
  EXPECT_EQ(Request("GET", "HTTP://example.com").path, "/");
  EXPECT_EQ(Request("OPTIONS", "*").path, "*");
}

TEST(Request, RefusesBrokenTargets) {
  for (const char* target :
       {"/%", "/%4", "/%zz", "/%00", "/a%00b", "/%ff", "/%c0%af", "/%ed%a0%80", "/?a=%", "/?%00=1", "/?a=%ff",
        "/x#y", "x", "ftp://host/", "/\x7f", "/\xe6\x96\x87", "http://host?x"}) {
    EXPECT_EQ(status_of([&] { Request("GET", target); }), 400U) << target;
  }
}

TEST(Request, FindsHeadersAndCookies) {
  const Request request("GET", "/",
                        {{"X-Thing", "one"}, {"x-thing", "two"}, {"Cookie", "a=1; weir_session=t.o.k; b="}});
  EXPECT_EQ(request.header("X-THING"), "one");
  EXPECT_EQ(request.header("X-Thin"), std::nullopt);
  EXPECT_EQ(request.cookie("weir_session"), "t.o.k");
  EXPECT_EQ(request.cookie("b"), "");
  EXPECT_EQ(request.cookie("session"), std::nullopt);
  EXPECT_EQ(status_of([&] { static_cast<void>(request.user()); }), 401U);
}

boost::json::object body_of(std::string body, std::string type = "application/json") {
  return Request("POST", "/", {{"Content-Type", std::move(type)}}, std::move(body)).json_object();
}

TEST(Request, ReadsJsonBodies) {
  EXPECT_EQ(body_of(R"({"a":1})").at("a").as_int64(), 1);
  EXPECT_EQ(body_of(R"({"a":1})", "Application/JSON; charset=utf-8").size(), 1U);
  EXPECT_TRUE(body_of("", "text/plain").empty()) << "nothing is no fields, of whatever type";
  EXPECT_EQ(body_of(R"({"a":1,"a":2})").at("a").as_int64(), 2) << "of duplicate keys the last counts";
  EXPECT_EQ(body_of(R"({"a":18446744073709551615})").at("a").as_uint64(), 18446744073709551615U);
}

TEST(Request, RefusesOtherBodies) {
  const auto status = [](std::string body, std::string type = "application/json") {
    return status_of([&] { body_of(std::move(body), std::move(type)); });
  };
  for (const char* body : {"{", "{]", "{\"a\":}", "nonsense", "{\"a\":1} x", "{\"a\":\"\xff\"}",
                           "{\"a\":\"\\ud800\"}", "{\"a\":1e400}", "{\"a\":[{\"b\":-1e999}]}",
                           "\xef\xbb\xbf{}", "{'a':1}", "{\"a\":01}", "{\"a\":NaN}"}) {
    EXPECT_EQ(status(body), 400U) << body;
  }
  EXPECT_EQ(status(R"({"a":)" + std::string(31, '[') + std::string(31, ']') + "}"), 0U);
  EXPECT_EQ(status(R"({"a":)" + std::string(32, '[') + std::string(32, ']') + "}"), 400U);
  EXPECT_EQ(status(std::string(1'000'000, '[')), 400U);
  for (const char* body : {"[]", "1", "\"text\"", "null"}) EXPECT_EQ(status(body), 422U) << body;
  for (const char* type : {"text/plain", "application/xml", "application/jsonx", ""}) {
    EXPECT_EQ(status("{}", type), 415U) << type;
  }
}

TEST(Request, IsReusedWithoutLeftovers) {
  Request request("POST", "/a%20b?c=d", {{"X-Weir-Page", "1"}}, "body");
  EXPECT_TRUE(request.from_page);
  request.principal = Principal{1, false, "s"};
  request.clear();
  request.set_target("GET", "/");
  EXPECT_TRUE(request.segments().empty() && request.body.empty() && request.query_all().empty() &&
              request.fields.empty() && !request.principal && !request.from_page);
}

TEST(EntityTag, TellsWhatIsTheSame) {
  const std::string tag = etag_of("bytes");
  EXPECT_EQ(tag.size(), 18U);
  EXPECT_NE(tag, etag_of("byteS"));
  const auto asks = [](const std::string& tags) {
    return Request("GET", "/", Headers{{"If-None-Match", tags}});
  };
  EXPECT_TRUE(not_modified(asks(tag), tag));
  EXPECT_TRUE(not_modified(asks("\"x\", W/" + tag), tag));
  EXPECT_TRUE(not_modified(asks("*"), tag));
  EXPECT_FALSE(not_modified(asks("\"x\""), tag));
  EXPECT_FALSE(not_modified(Request("GET", "/"), tag));
  const auto wants = [](const std::string& tags) { return Request("PUT", "/", Headers{{"If-Match", tags}}); };
  EXPECT_TRUE(may_change(wants("\"1\", \"2\""), "\"2\""));
  EXPECT_FALSE(may_change(wants("W/\"2\""), "\"2\"")) << "a weak tag never matches strongly";
  EXPECT_TRUE(may_change(Request("PUT", "/"), "\"2\""));
}

TEST(EntityTag, TurnsAnAnswerIntoA304) {
  const auto answer = [] { return Response::json(200, std::string("{}")).with("Cache-Control", "no-cache"); };
  const Response full = with_etag(Request("GET", "/"), answer());
  EXPECT_EQ(full.status, 200U);
  EXPECT_EQ(full.headers.back(), std::make_pair(std::string("ETag"), etag_of("{}")));
  const Response same = with_etag(Request("GET", "/", Headers{{"If-None-Match", etag_of("{}")}}), answer());
  EXPECT_EQ(same.status, 304U);
  EXPECT_TRUE(same.payload().empty());
  EXPECT_EQ(same.headers.size(), 2U);
}

}  // namespace
}  // namespace weir::http

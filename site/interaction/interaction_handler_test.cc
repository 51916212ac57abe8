#include "site/interaction/interaction_handler.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "site/interaction/interaction_fixture.h"
#include "weir/http/openapi.h"
#include "weir/http/problem.h"
#include "weir/testing/serve.h"

namespace weir::site::interaction {
namespace {

namespace json = boost::json;

constexpr Id kAnn = 1, kBob = 2;

class InteractionHandlerTest : public testing::Test {
 protected:
  struct Answer {
    unsigned status;
    json::value body;  // null for none
    std::string code() const { return std::string(body.at("code").as_string()); }
    std::string field() const {
      return std::string(body.at("errors").as_array().at(0).at("field").as_string());
    }
  };

  // `user` 0: nobody.
  Answer ask(Id user, std::string_view method, std::string_view target, std::string body = {}) {
    std::vector<std::pair<std::string, std::string>> headers;
    if (!body.empty()) headers.emplace_back("Content-Type", "application/json");
    if (user != 0) headers.emplace_back("Authorization", "Bearer " + std::to_string(user));
    http::Request request(method, target, std::move(headers), std::move(body));
    const auto response = m_.io.run(serve(dispatcher_, request));
    return {response.status, response.payload().empty() ? json::value() : json::parse(response.payload())};
  }
  unsigned status(Id user, std::string_view method, std::string_view target, std::string body = {}) {
    return ask(user, method, target, std::move(body)).status;
  }
  static std::vector<std::string> ids(const Answer& answer, std::string_view name) {
    std::vector<std::string> found;
    for (const auto& item : answer.body.at("items").as_array())
      found.emplace_back(item.as_object().at(name).as_string());
    return found;
  }
  static http::Router router_of(InteractionService& interactions) {
    http::Router router;
    add_routes(router, interactions);
    return router;
  }

  sql::SqliteStore test_store_;
  Module m_{test_store_};
  http::Dispatcher dispatcher_{router_of(m_.service), http::user_by_id, {}};
};

TEST_F(InteractionHandlerTest, NeverSeenIsZerosAndOnlyTheSignedInSeeTheirOwn) {
  const auto nobody = ask(0, "GET", "/v1/interactions/article/7");
  EXPECT_EQ(nobody.status, 200U);
  EXPECT_EQ(
      nobody.body,
      (json::value{
          {"biz", "article"}, {"biz_id", "7"}, {"read_count", 0}, {"like_count", 0}, {"collect_count", 0}}));
  EXPECT_EQ(status(kAnn, "PUT", "/v1/interactions/article/7/like"), 204U);
  EXPECT_EQ(status(kAnn, "PUT", "/v1/interactions/article/7/like"), 204U);
  const auto ann = ask(kAnn, "GET", "/v1/interactions/article/7");
  EXPECT_EQ(ann.body.at("like_count"), 1);
  EXPECT_EQ(ann.body.at("liked"), true);
  EXPECT_EQ(ann.body.at("collected"), false);
  EXPECT_EQ(ask(kBob, "GET", "/v1/interactions/article/7").body.at("liked"), false);
}

TEST_F(InteractionHandlerTest, AnArticleThatIsntThereIs404) {
  m_.gone = {7};
  for (const auto& [method, path] :
       std::vector<std::pair<std::string, std::string>>{{"GET", ""},
                                                        {"POST", "/reads"},
                                                        {"PUT", "/like"},
                                                        {"DELETE", "/like"},
                                                        {"PUT", "/collection"},
                                                        {"DELETE", "/collection"}})
    EXPECT_EQ(status(kAnn, method, "/v1/interactions/article/7" + path), 404U) << method << path;
  EXPECT_EQ(status(0, "GET", "/v1/interactions/course/7"), 200U);
  for (const char* path :
       {"article/0", "article/007", "article/-1", "article/9223372036854775808", "Article/7", "1a/7"})
    EXPECT_EQ(status(0, "GET", "/v1/interactions/" + std::string(path)), 404U) << path;
}

TEST_F(InteractionHandlerTest, ManyAtOnceKeepTheirOrder) {
  m_.like(kAnn, 9);
  const auto answer = ask(kAnn, "GET", "/v1/interactions/article?ids=3,9,3");
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(ids(answer, "biz_id"), (std::vector<std::string>{"3", "9", "3"}));
  EXPECT_EQ(answer.body.at("items").at(1).at("like_count"), 1);
  EXPECT_EQ(answer.body.at("items").at(1).at("liked"), true);
  std::string hundred = "1";
  for (int i = 2; i <= 100; ++i) hundred += "," + std::to_string(i);
  EXPECT_EQ(ids(ask(0, "GET", "/v1/interactions/article?ids=" + hundred), "biz_id").size(), 100U);
  for (const std::string& bad :
       {std::string(), std::string("?ids="), "?ids=" + hundred + ",101", std::string("?ids=1,,2"),
        std::string("?ids=1,"), std::string("?ids=a"), std::string("?ids=0"), std::string("?ids=007"),
        std::string("?ids=1,%202")}) {
    const auto refused = ask(0, "GET", "/v1/interactions/article" + bad);
    EXPECT_EQ(refused.status, 422U) << bad;
    EXPECT_EQ(refused.field(), "ids");
  }
}

TEST_F(InteractionHandlerTest, ReadsAreTakenWithAndWithoutAnId) {
  const std::string reads = "/v1/interactions/article/7/reads";
  EXPECT_EQ(status(0, "POST", reads), 202U);
  EXPECT_EQ(status(kAnn, "POST", reads, "{}"), 202U);
  EXPECT_EQ(status(kAnn, "POST", reads, R"({"event_id": "a b~"})"), 202U);
  EXPECT_EQ(status(0, "POST", reads, R"({"event_id": ")" + std::string(128, 'x') + R"("})"), 202U);
  for (const std::string& bad :
       {std::string(R"({"event_id": ""})"), R"({"event_id": ")" + std::string(129, 'x') + R"("})",
        std::string(R"({"event_id": "é"})"), std::string(R"({"event_id": "\n"})"),
        std::string(R"({"event_id": "\u0000"})"), std::string(R"({"event_id": 7})")}) {
    const auto refused = ask(0, "POST", reads, bad);
    EXPECT_EQ(refused.status, 422U) << bad;
    EXPECT_EQ(refused.field(), "event_id");
  }
  EXPECT_EQ(status(0, "POST", reads, "{"), 400U);
}

TEST_F(InteractionHandlerTest, SignInFirst) {
  for (const auto& [method, path] :
       std::vector<std::pair<std::string, std::string>>{{"PUT", "/v1/interactions/article/7/like"},
                                                        {"DELETE", "/v1/interactions/article/7/collection"},
                                                        {"GET", "/v1/me/collections"},
                                                        {"POST", "/v1/me/collections"},
                                                        {"GET", "/v1/me/history"},
                                                        {"DELETE", "/v1/me/history"}})
    EXPECT_EQ(status(0, method, path), 401U) << method << path;
}

TEST_F(InteractionHandlerTest, FoldersFromTheFirstToTheLast) {
  const auto first = ask(kAnn, "GET", "/v1/me/collections");
  EXPECT_EQ(first.status, 200U);
  const auto standard = first.body.at("items").at(0);
  EXPECT_EQ(standard.at("is_default"), true);
  const std::string own(standard.at("id").as_string());

  const auto made = ask(kAnn, "POST", "/v1/me/collections", R"({"name": "旅行"})");
  EXPECT_EQ(made.status, 201U);
  EXPECT_EQ(made.body.at("name"), "旅行");
  const std::string trips(made.body.at("id").as_string());
  for (const std::string& bad :
       {std::string("{}"), std::string(R"({"name": ""})"), std::string(R"({"name": "\u0000"})"),
        R"({"name": ")" + std::string(65, 'x') + R"("})"})
    EXPECT_EQ(status(kAnn, "POST", "/v1/me/collections", bad), 422U) << bad;

  const std::string here = R"({"collection_id": ")" + trips + R"("})";
  EXPECT_EQ(status(kAnn, "PUT", "/v1/interactions/article/7/collection", here), 204U);
  EXPECT_EQ(status(kBob, "PUT", "/v1/interactions/article/7/collection", here), 404U) << "not his";
  EXPECT_EQ(status(kAnn, "PUT", "/v1/interactions/article/7/collection", R"({"collection_id": "x"})"), 422U);
  EXPECT_EQ(status(kAnn, "PUT", "/v1/interactions/article/8/collection"), 204U);
  const auto items = ask(kAnn, "GET", "/v1/me/collections/" + trips + "/items");
  EXPECT_EQ(ids(items, "biz_id"), std::vector<std::string>{"7"});
  EXPECT_EQ(items.body.at("items").at(0).at("title"), "title 7");
  EXPECT_TRUE(items.body.at("items").at(0).as_object().contains("collected_at"));
  EXPECT_EQ(status(kBob, "GET", "/v1/me/collections/" + trips + "/items"), 404U);

  EXPECT_EQ(ask(kAnn, "PATCH", "/v1/me/collections/" + trips, R"({"name": "trips"})").body.at("name"),
            "trips");
  EXPECT_EQ(status(kBob, "PATCH", "/v1/me/collections/" + trips, R"({"name": "mine"})"), 404U);
  EXPECT_EQ(status(kBob, "DELETE", "/v1/me/collections/" + trips), 404U);
  EXPECT_EQ(status(kAnn, "DELETE", "/v1/me/collections/" + trips), 204U);
  EXPECT_EQ(status(kAnn, "DELETE", "/v1/me/collections/" + trips), 404U);
  const auto refused = ask(kAnn, "DELETE", "/v1/me/collections/" + own);
  EXPECT_EQ(refused.status, 409U);
  EXPECT_EQ(refused.code(), "default_collection");
  EXPECT_EQ(ids(ask(kAnn, "GET", "/v1/me/collections/" + own + "/items"), "biz_id").size(), 2U);
  EXPECT_EQ(ask(kAnn, "GET", "/v1/interactions/article/7").body.at("collect_count"), 1);
}

TEST_F(InteractionHandlerTest, ListsAreWalkedByCursorOrPage) {
  const std::string folder(
      ask(kAnn, "GET", "/v1/me/collections").body.at("items").at(0).at("id").as_string());
  for (Id article = 1; article <= 5; ++article) m_.collect(kAnn, article);
  const std::string list = "/v1/me/collections/" + folder + "/items";
  std::vector<std::string> walked;
  std::string target = list + "?limit=2";
  for (int pages = 0; pages < 3; ++pages) {
    const auto answer = ask(kAnn, "GET", target);
    for (const auto& id : ids(answer, "biz_id")) walked.push_back(id);
    EXPECT_FALSE(answer.body.as_object().contains("total"));
    if (!answer.body.as_object().contains("next_cursor")) break;
    target = list + "?limit=2&cursor=" + std::string(answer.body.at("next_cursor").as_string());
  }
  EXPECT_EQ(walked, (std::vector<std::string>{"5", "4", "3", "2", "1"}));
  const auto page = ask(kAnn, "GET", list + "?page=2&size=2");
  EXPECT_EQ(ids(page, "biz_id"), (std::vector<std::string>{"3", "2"}));
  EXPECT_EQ(page.body.at("total"), 5);
  EXPECT_FALSE(page.body.as_object().contains("next_cursor"));
  for (const char* bad : {"?limit=0", "?limit=101", "?page=1&offset=1", "?cursor=x"})
    EXPECT_EQ(status(kAnn, "GET", list + bad), 422U) << bad;
  const std::string other(ask(kAnn, "GET", list + "?limit=1").body.at("next_cursor").as_string());
  EXPECT_EQ(status(kAnn, "GET", "/v1/me/history?cursor=" + other), 422U) << "a cursor of another list";
}

TEST_F(InteractionHandlerTest, HistoryIsShownAndForgotten) {
  const idempotency::Inbox inbox({.consumer = std::string(kHistoryGroup), .clock = &m_.clock});
  m_.service.record_history_now(inbox, Delivery().read("article:7", kAnn, m_.clock.now()).messages());
  const auto list = ask(kAnn, "GET", "/v1/me/history");
  EXPECT_EQ(ids(list, "biz_id"), std::vector<std::string>{"7"});
  EXPECT_EQ(list.body.at("items").at(0).at("title"), "title 7");
  EXPECT_TRUE(list.body.at("items").at(0).as_object().contains("read_at"));
  EXPECT_EQ(ids(ask(kBob, "GET", "/v1/me/history"), "biz_id").size(), 0U);
  EXPECT_EQ(status(kAnn, "DELETE", "/v1/me/history"), 204U);
  EXPECT_EQ(ids(ask(kAnn, "GET", "/v1/me/history"), "biz_id").size(), 0U);
}

TEST_F(InteractionHandlerTest, TheDocumentNamesOnlySchemasThatAreThere) {
  const auto document = http::openapi(dispatcher_.router(), "t", "1");
  const auto& paths = document.at("paths").as_object();
  for (const char* path :
       {"/v1/interactions/{biz}", "/v1/interactions/{biz}/{biz_id}", "/v1/interactions/{biz}/{biz_id}/reads",
        "/v1/interactions/{biz}/{biz_id}/like", "/v1/interactions/{biz}/{biz_id}/collection",
        "/v1/me/collections", "/v1/me/collections/{id}", "/v1/me/collections/{id}/items", "/v1/me/history"})
    EXPECT_TRUE(paths.contains(path)) << path;
}

}  // namespace
}  // namespace weir::site::interaction

#include "site/article/article_handler.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "site/article/article_fixture.h"
#include "site/interaction/interaction_fixture.h"
#include "site/user/user_fixture.h"
#include "weir/http/openapi.h"
#include "weir/testing/metrics.h"
#include "weir/testing/serve.h"

namespace weir::site::article {
namespace {

namespace json = boost::json;
using Headers = std::vector<std::pair<std::string, std::string>>;

// All that the routes stand on, as the program wires it.
class ArticleHandlerTest : public testing::Test {
 protected:
  ArticleHandlerTest() {
    user::NewUser ann, bob;
    ann.email = "ann@example.com";
    ann.nickname = "Ann \"安\" 😀";
    bob.email = "bob@example.com";
    bob.nickname = "Bob";
    const auto ids = users_.create_many(std::vector{ann, bob});
    ann_ = ids[0];
    bob_ = ids[1];
    http::Router router;
    add_routes(router, module_.service, users_, interactions_);
    dispatcher_.emplace(std::move(router), http::user_by_id, std::vector<std::string>{});
  }
  ~ArticleHandlerTest() override { module_.repository.stop(); }

  // `user` 0: nobody.
  http::Response ask(Id user, std::string_view method, std::string_view target, std::string body = {},
                     Headers headers = {}) {
    if (!body.empty()) headers.emplace_back("Content-Type", "application/json");
    if (user != 0) headers.emplace_back("Authorization", "Bearer " + std::to_string(user));
    http::Request request(method, target, std::move(headers), std::move(body));
    return module_.io.run(serve(*dispatcher_, request));
  }
  json::value json_of(const http::Response& response) { return json::parse(response.payload()); }

  Id create(Id user, const std::string& title = "Title", const std::string& content = "Words.") {
    const auto made = ask(user, "POST", "/v1/articles", text(title, content));
    EXPECT_EQ(made.status, 201u) << made.body;
    return std::stoll(std::string(json_of(made).at("id").as_string()));
  }
  Id publish(Id user, const std::string& title = "Title", const std::string& content = "Words.") {
    const Id id = create(user, title, content);
    EXPECT_EQ(ask(user, "POST", path(id) + "/publish").status, 200u);
    return id;
  }
  static std::string text(const std::string& title, const std::string& content) {
    return json::serialize(json::value{{"title", title}, {"content", content}});
  }
  static std::string path(Id id) { return "/v1/articles/" + std::to_string(id); }
  static std::string own_path(Id id) { return "/v1/me/articles/" + std::to_string(id); }
  std::string code(const http::Response& response) {
    return std::string(json_of(response).at("code").as_string());
  }
  static std::vector<std::string> ids(const json::value& list) {
    std::vector<std::string> result;
    for (const auto& item : list.at("items").as_array()) result.emplace_back(item.at("id").as_string());
    return result;
  }

  TempDir directory_;
  sql::SqliteStore test_store_;
  Module module_{test_store_};
  user::Neighbour people_{module_.database, module_.io};
  interaction::ReadRoad road_{directory_};
  interaction::Neighbour reactions_{module_.database, module_.io, &road_.producer};
  user::UserService& users_ = people_.service;
  interaction::InteractionService& interactions_ = reactions_.service;
  std::optional<http::Dispatcher> dispatcher_;
  Id ann_ = 0, bob_ = 0;
};

TEST_F(ArticleHandlerTest, AReaderGetsTheWholeAnswer) {
  const Id id = publish(ann_, "Ein \"Titel\" 标题 😀", "# Hello\n\nSome *words*.");
  const auto answer = ask(0, "GET", path(id));
  ASSERT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_EQ(header_of(answer, "Cache-Control"), "private, no-cache");
  EXPECT_EQ(header_of(answer, "ETag"), http::etag_of(answer.payload()));
  const auto article = json_of(answer).as_object();
  EXPECT_EQ(article.at("id").as_string(), std::to_string(id));
  EXPECT_EQ(article.at("title").as_string(), "Ein \"Titel\" 标题 😀");
  EXPECT_EQ(article.at("content").as_string(), "# Hello\n\nSome *words*.");
  EXPECT_EQ(article.at("author"), (json::value{{"id", std::to_string(ann_)}, {"nickname", "Ann \"安\" 😀"}}));
  EXPECT_EQ(article.at("interaction"), (json::value{{"biz", "article"},
                                                    {"biz_id", std::to_string(id)},
                                                    {"read_count", 0},
                                                    {"like_count", 0},
                                                    {"collect_count", 0}}));
  EXPECT_EQ(article.at("published_at"), article.at("updated_at"));
  EXPECT_EQ(article.size(), 7u);
}

TEST_F(ArticleHandlerTest, AUserSeesWhatTheyDid) {
  const Id id = publish(ann_);
  EXPECT_EQ(json_of(ask(bob_, "GET", path(id))).at("interaction").at("liked").as_bool(), false);
  module_.io.run(interactions_.like(bob_, {"article", id}));
  const auto interaction = json_of(ask(bob_, "GET", path(id))).at("interaction").as_object();
  EXPECT_TRUE(interaction.at("liked").as_bool());
  EXPECT_FALSE(interaction.at("collected").as_bool());
  EXPECT_EQ(interaction.at("like_count").as_int64(), 1);
  EXPECT_FALSE(json_of(ask(0, "GET", path(id))).at("interaction").as_object().contains("liked"));
}

TEST_F(ArticleHandlerTest, EveryAnsweredGetIsARead) {
  const Id id = publish(ann_);
  const auto first = ask(0, "GET", path(id));
  EXPECT_EQ(road_.reads(), 1);
  const auto again = ask(0, "GET", path(id), {}, {{"If-None-Match", header_of(first, "ETag")}});
  EXPECT_EQ(again.status, 304u);
  EXPECT_TRUE(again.payload().empty());
  EXPECT_EQ(header_of(again, "ETag"), header_of(first, "ETag"));
  EXPECT_EQ(header_of(again, "Cache-Control"), "private, no-cache");
  EXPECT_EQ(road_.reads(), 2);
  EXPECT_EQ(ask(0, "HEAD", path(id)).status, 200u);
  EXPECT_EQ(ask(0, "GET", path(id + 1)).status, 404u);
  EXPECT_EQ(road_.reads(), 2);
}

TEST_F(ArticleHandlerTest, AThousandCachedReadsAskTheStoreNothing) {
  const Id id = publish(ann_);
  ask(0, "GET", path(id));
  const double before = statements("article") + statements("user") + statements("interaction");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(ask(0, "GET", path(id)).status, 200u);
  EXPECT_EQ(statements("article") + statements("user") + statements("interaction"), before);
}

TEST_F(ArticleHandlerTest, ANewNicknameShowsAtOnce) {
  const Id id = publish(ann_);
  ask(0, "GET", path(id));
  ask(0, "GET", "/v1/articles");
  module_.io.run(users_.change_profile(ann_, {.nickname = "Anna", .about = {}, .birthday = {}}));
  EXPECT_EQ(json_of(ask(0, "GET", path(id))).at("author").at("nickname").as_string(), "Anna");
  const auto list = json_of(ask(0, "GET", "/v1/articles"));
  EXPECT_EQ(list.at("items").at(0).at("author").at("nickname").as_string(), "Anna");
}

TEST_F(ArticleHandlerTest, ADraftIsSeenByItsAuthorAlone) {
  const Id id = create(ann_, "Draft", "*Words*");
  EXPECT_EQ(code(ask(0, "GET", path(id))), "not_found");
  const auto own = ask(ann_, "GET", own_path(id));
  EXPECT_EQ(header_of(own, "ETag"), "\"1\"");
  const auto article = json_of(own).as_object();
  EXPECT_EQ(article.at("status").as_string(), "draft");
  EXPECT_EQ(article.at("content").as_string(), "*Words*");
  EXPECT_TRUE(article.at("published_at").is_null());
  EXPECT_EQ(ask(bob_, "GET", own_path(id)).status, 403u);
  EXPECT_EQ(ask(0, "GET", own_path(id)).status, 401u);
  EXPECT_EQ(ask(ann_, "GET", own_path(id + 1)).status, 404u);
  EXPECT_EQ(ask(ann_, "GET", own_path(id), {}, {{"If-None-Match", "\"1\""}}).status, 304u);
}

TEST_F(ArticleHandlerTest, ForeignArticlesAreForbiddenAndMissingOnesNotFound) {
  const Id id = publish(ann_);
  const std::vector<std::pair<std::string, std::string>> ways{
      {"PUT", ""}, {"POST", "/publish"}, {"POST", "/withdraw"}, {"DELETE", ""}};
  for (const auto& [method, rest] : ways) {
    const std::string body = method == "PUT" ? text("x", "") : "";
    EXPECT_EQ(code(ask(bob_, method, path(id) + rest, body)), "forbidden") << method << rest;
    EXPECT_EQ(code(ask(bob_, method, path(id + 1) + rest, body)), "not_found") << method << rest;
    EXPECT_EQ(code(ask(0, method, path(id) + rest, body)), "unauthenticated") << method << rest;
  }
}

TEST_F(ArticleHandlerTest, IfMatchGuardsAgainstLostEdits) {
  const Id id = create(ann_);
  const auto put = [&](const std::string& tag) {
    return ask(ann_, "PUT", path(id), text("t", "c"), {{"If-Match", tag}});
  };
  const auto done = put("\"1\"");
  EXPECT_EQ(done.status, 200u);
  EXPECT_EQ(header_of(done, "ETag"), "\"2\"");
  EXPECT_EQ(code(put("\"1\"")), "version_mismatch");
  EXPECT_EQ(put("W/\"2\"").status, 412u) << "a weak tag matches nothing";
  EXPECT_EQ(put("2").status, 412u);
  EXPECT_EQ(put("\"x\", ,\"\"").status, 412u);
  EXPECT_EQ(put("").status, 412u);
  EXPECT_EQ(put("\"7\" , \"2\"").status, 200u);
  EXPECT_EQ(put("*").status, 200u);
  EXPECT_EQ(ask(ann_, "PUT", path(id), text("t", "c")).status, 200u);
}

TEST_F(ArticleHandlerTest, TheLifeOfAnArticle) {
  const Id id = create(ann_, "First", "One");
  auto answer = ask(ann_, "POST", path(id) + "/publish");
  EXPECT_EQ(json_of(answer).at("status").as_string(), "published");
  EXPECT_EQ(header_of(answer, "ETag"), "\"2\"");
  EXPECT_EQ(ask(ann_, "PUT", path(id), text("Second", "Two")).status, 200u);
  EXPECT_EQ(json_of(ask(0, "GET", path(id))).at("title").as_string(), "First");
  const auto mine = json_of(ask(ann_, "GET", "/v1/me/articles"));
  EXPECT_EQ(mine.at("items").at(0).at("title").as_string(), "Second");
  EXPECT_EQ(mine.at("items").at(0).at("status").as_string(), "published");
  EXPECT_EQ(ask(ann_, "POST", path(id) + "/withdraw").status, 200u);
  EXPECT_EQ(ask(0, "GET", path(id)).status, 404u);
  EXPECT_EQ(ask(ann_, "DELETE", path(id)).status, 204u);
  EXPECT_EQ(ask(ann_, "GET", own_path(id)).status, 404u);
}

TEST_F(ArticleHandlerTest, BadFieldsAreNamed) {
  const std::string long_title(10'001, 'x'), long_content(kMaxContentBytes + 1, 'x');
  const std::vector<std::pair<std::string, std::string>> bad{
      {text("", ""), "title"},
      {text(long_title, ""), "title"},
      {text(std::string("a\0b", 3), ""), "title"},
      {text("t", std::string("a\0b", 3)), "content"},
      {text("t", long_content), "content"},
      {R"({"content": ""})", "title"},
      {R"({"title": "t"})", "content"},
      {R"({"title": 5, "content": ""})", "title"},
  };
  for (const auto& [body, field] : bad) {
    const auto answer = ask(ann_, "POST", "/v1/articles", body);
    EXPECT_EQ(answer.status, 422u) << body.substr(0, 60);
    EXPECT_EQ(json_of(answer).at("errors").at(0).at("field").as_string(), field) << body.substr(0, 60);
  }
  EXPECT_EQ(ask(ann_, "POST", "/v1/articles", text(std::string(10'000, 'x'), "")).status, 201u);
}

TEST_F(ArticleHandlerTest, ListsComeInThreeForms) {
  std::vector<std::string> made;
  for (int i = 0; i < 25; ++i) made.insert(made.begin(), std::to_string(publish(ann_, std::to_string(i))));
  for (const std::string list : {"/v1/articles", "/v1/me/articles"}) {
    SCOPED_TRACE(list);
    auto first = json_of(ask(ann_, "GET", list)).as_object();
    EXPECT_EQ(ids(first), std::vector(made.begin(), made.begin() + 20));
    EXPECT_FALSE(first.contains("total"));
    const std::string cursor(first.at("next_cursor").as_string());
    const auto rest =
        json_of(ask(ann_, "GET", std::string(list).append("?limit=20&cursor=").append(cursor))).as_object();
    EXPECT_EQ(ids(rest), std::vector(made.begin() + 20, made.end()));
    EXPECT_FALSE(rest.contains("next_cursor"));
    const auto page = json_of(ask(ann_, "GET", list + "?page=2&size=10")).as_object();
    EXPECT_EQ(ids(page), std::vector(made.begin() + 10, made.begin() + 20));
    EXPECT_EQ(page.at("total").as_int64(), 25);
    EXPECT_FALSE(page.contains("next_cursor"));
    const auto offset = json_of(ask(ann_, "GET", list + "?offset=24&limit=5")).as_object();
    EXPECT_EQ(ids(offset), std::vector{made[24]});
    EXPECT_EQ(offset.size(), 1u);
    EXPECT_EQ(ask(ann_, "GET", list + "?cursor=unknown").status, 422u);
    EXPECT_EQ(ask(ann_, "GET", list + "?limit=101").status, 422u);
    EXPECT_EQ(ask(ann_, "GET", list + "?page=4611686018427387904&size=100").status, 200u);
  }
  // A cursor belongs to its list.
  const auto mine = json_of(ask(ann_, "GET", "/v1/me/articles"));
  const std::string cursor(mine.at("next_cursor").as_string());
  EXPECT_EQ(ask(ann_, "GET", "/v1/articles?cursor=" + cursor).status, 422u);
}

TEST_F(ArticleHandlerTest, AnOffsetDeepWithinAListIsRefused) {
  publish(ann_);
  module_.database.write_now([](sql::Session& session) {
    session.execute({"test", "many", "UPDATE article_counts SET cnt = 1000000"});
  });
  for (const std::string list : {"/v1/articles", "/v1/me/articles"}) {
    EXPECT_EQ(ask(ann_, "GET", list + "?offset=100000").status, 200u);
    const auto deep = ask(ann_, "GET", list + "?offset=100001");
    EXPECT_EQ(deep.status, 422u);
    EXPECT_EQ(json_of(deep).at("errors").at(0).at("field").as_string(), "offset");
    const auto page = ask(ann_, "GET", list + "?page=10002&size=10");
    EXPECT_EQ(json_of(page).at("errors").at(0).at("field").as_string(), "page");
    EXPECT_EQ(ask(ann_, "GET", list + "?offset=1000000").status, 200u) << "behind the end is just empty";
  }
}

TEST_F(ArticleHandlerTest, ASummaryNeverHasTheContent) {
  publish(ann_, "Summary", "# A heading\n\n" + std::string(500, 'x'));
  const auto item = json_of(ask(0, "GET", "/v1/articles")).at("items").at(0).as_object();
  std::set<std::string> keys;
  for (const auto& [key, value] : item) keys.emplace(key);
  EXPECT_EQ(keys, (std::set<std::string>{"id", "title", "abstract", "author", "published_at", "updated_at"}));
  EXPECT_EQ(item.at("abstract").as_string(), "A heading " + std::string(118, 'x'));
}

TEST_F(ArticleHandlerTest, TheFirstOfAListIsPreloaded) {
  const Id id = publish(ann_);
  module_.clock.advance(std::chrono::minutes(20));
  ASSERT_FALSE(module_.service.find(id));
  ask(0, "GET", "/v1/articles");
  // It goes on beside the answer: what it loads is there soon.
  while (!module_.service.find(id)) std::this_thread::yield();
  module_.clock.advance(std::chrono::seconds(70));
  EXPECT_FALSE(module_.service.find(id));
}

TEST_F(ArticleHandlerTest, ThePublishedDocumentTellsTheSameLimits) {
  EXPECT_TRUE(http::openapi(dispatcher_->router(), "t", "1").is_object());
  const auto& text = dispatcher_->router().schemas().at("ArticleText").at("properties");
  EXPECT_EQ(text.at("title").at("maxLength").to_number<std::size_t>(), kMaxTitleCodePoints);
  EXPECT_EQ(text.at("content").at("maxLength").to_number<std::size_t>(), kMaxContentBytes);
  const auto& summary = dispatcher_->router().schemas().at("ArticleSummary").at("properties");
  EXPECT_EQ(summary.at("abstract").at("maxLength").to_number<std::size_t>(), kAbstractCodePoints);
}

}  // namespace
}  // namespace weir::site::article

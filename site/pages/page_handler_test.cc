#include "site/pages/page_handler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <vector>

#include "site/article/article_fixture.h"
#include "site/interaction/interaction_fixture.h"
#include "site/ranking/ranking_repository.h"
#include "site/ranking/ranking_store.h"
#include "site/user/user_fixture.h"
#include "weir/testing/serve.h"

namespace weir::site::pages {
namespace {

namespace json = boost::json;
using Headers = std::vector<std::pair<std::string, std::string>>;
using testing::HasSubstr;
using testing::Not;

// All that the pages stand on, as the program wires it.
class PageHandlerTest : public testing::Test {
 protected:
  PageHandlerTest() {
    user::NewUser ann;
    ann.email = "ann@example.com";
    ann.nickname = "Ann <安>";
    ann_ = users_.create_many(std::vector{ann})[0];
    http::Router router;
    work_ = add_routes(router, {users_, module_.service, interactions_, rankings_, module_.clock}, 1 << 20);
    dispatcher_.emplace(
        std::move(router), [this](std::string_view token) { return who(token); }, std::vector<std::string>{});
  }
  ~PageHandlerTest() override {
    work_->stop();
    ranking_repository_.stop();
    module_.repository.stop();
  }

  http::Response ask(std::string_view method, std::string_view target, Headers headers = {},
                     std::string body = {}) {
    http::Request request(method, target, std::move(headers), std::move(body));
    return module_.io.run(serve(*dispatcher_, request));
  }
  http::Response get(std::string_view target, Headers headers = {}) {
    return ask("GET", target, std::move(headers));
  }
  http::Response get_as_ann(std::string_view target) { return get(target, {{"Cookie", "weir_session=ann"}}); }

  TempDir directory_;
  sql::SqliteStore test_store_;
  article::Module module_{test_store_};
  ranking::RankingStore ranking_store_{module_.database};
  user::Neighbour people_{module_.database, module_.io};
  interaction::ReadRoad road_{directory_};
  interaction::Neighbour reactions_{module_.database, module_.io, &road_.producer};
  user::UserService& users_ = people_.service;
  interaction::InteractionService& interactions_ = reactions_.service;
  ranking::RankingRepository ranking_repository_{ranking_store_,
                                                 ranking::sources_of(module_.service, interactions_),
                                                 module_.io.executor(), module_.clock};
  ranking::RankingService rankings_{ranking_repository_, users_, interactions_, {}, module_.clock};
  std::shared_ptr<PageWork> work_;
  std::optional<http::Dispatcher> dispatcher_;
  Id ann_ = 0;

 private:
  std::optional<http::Principal> who(std::string_view token) const {
    if (token == "ann") return http::Principal{ann_, false, "s1"};
    if (token == "ghost") return http::Principal{ann_ + 1000, false, "s2"};
    return std::nullopt;
  }
};

TEST_F(PageHandlerTest, EveryPageHasItsHeaders) {
  for (const auto* target : {"/", "/newest", "/signin", "/signup", "/articles/1", "/no/such/page"}) {
    const auto response = get(target, {{"Accept", "text/html"}});
    EXPECT_EQ(response.content_type, "text/html; charset=utf-8") << target;
    const auto policy = header_of(response, "Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'")) << target;
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'")) << target;
    EXPECT_THAT(policy, Not(HasSubstr("unsafe"))) << target;
    EXPECT_EQ(header_of(response, "X-Content-Type-Options"), "nosniff") << target;
    EXPECT_NE(header_of(response, "Referrer-Policy"), "") << target;
    EXPECT_THAT(header_of(response, "Vary"), HasSubstr("Accept-Language")) << target;
  }
}

TEST_F(PageHandlerTest, AnArticleIsReadAndCounted) {
  const Id id = module_.published(ann_, "On <weirs>", "# Hello\n\n<script>alert(1)</script>\n\n*words*");
  const auto path = "/articles/" + std::to_string(id);
  const auto response = get(path);
  EXPECT_EQ(response.status, 200U);
  EXPECT_THAT(response.body, HasSubstr("On &lt;weirs&gt;</h1>"));
  EXPECT_THAT(response.body, HasSubstr("Ann &lt;安&gt;"));
  EXPECT_THAT(response.body, HasSubstr("<em>words</em>"));
  EXPECT_THAT(response.body, Not(HasSubstr("<script>")));
  EXPECT_EQ(road_.reads(), 1);
  EXPECT_EQ(ask("HEAD", path).status, 200U);
  EXPECT_EQ(road_.reads(), 1);
  EXPECT_EQ(get_as_ann(path).status, 200U);
  EXPECT_EQ(road_.reads(), 2);
}

TEST_F(PageHandlerTest, ANewVersionIsLaidOutAnew) {
  const Id id = module_.published(ann_, "T", "before");
  const auto path = "/articles/" + std::to_string(id);
  EXPECT_THAT(get(path).body, HasSubstr("before"));
  module_.io.run(module_.service.edit(ann_, id, "T", "after"));
  EXPECT_THAT(get(path).body, HasSubstr("before"));
  module_.io.run(module_.service.publish(ann_, id));
  EXPECT_THAT(get(path).body, HasSubstr("after"));
}

TEST_F(PageHandlerTest, WhatIsNotThereIsAPage) {
  const Id draft = module_.draft(ann_);
  for (const auto& target : {"/articles/" + std::to_string(draft), std::string("/articles/007"),
                             std::string("/articles/x"), std::string("/articles/9223372036854775808"),
                             std::string("/newest?before=x"), std::string("/a/b/c")}) {
    const auto response = get(target, {{"Accept", "text/html"}, {"Accept-Language", "zh"}});
    EXPECT_EQ(response.status, 404U) << target;
    EXPECT_THAT(response.body, HasSubstr("这里什么也没有")) << target;
  }
}

TEST_F(PageHandlerTest, TheNewestAreWalkedPageByPage) {
  for (int i = 1; i <= 31; ++i) {
    module_.published(ann_, "Title " + std::to_string(i) + "!");
    module_.clock.advance(std::chrono::seconds(1));
  }
  const auto first = get("/newest");
  EXPECT_THAT(first.body, HasSubstr("Title 31!"));
  EXPECT_THAT(first.body, HasSubstr("Title 2!"));
  EXPECT_THAT(first.body, Not(HasSubstr("Title 1!")));
  const auto at = first.body.find("/newest?before=");
  ASSERT_NE(at, std::string::npos);
  const auto next = first.body.substr(at, first.body.find('"', at) - at);
  const auto second = get(next);
  EXPECT_THAT(second.body, HasSubstr("Title 1!"));
  EXPECT_THAT(second.body, Not(HasSubstr("Title 2!")));
  EXPECT_THAT(second.body, Not(HasSubstr("data-testid=\"more\"")));
}

TEST_F(PageHandlerTest, TheHotListIsWhatWasComputed) {
  EXPECT_THAT(get("/").body, HasSubstr("Not counted yet"));
  const Id id = module_.published(ann_, "Hot one");
  module_.io.run(interactions_.like(ann_, {std::string(article::kBiz), id}));
  rankings_.refresh_hot_now();
  const auto page = get("/?page=1");
  EXPECT_THAT(page.body, HasSubstr("Hot one"));
  EXPECT_THAT(page.body, HasSubstr("1 like<"));
  for (const auto* odd : {"/?page=2", "/?page=x", "/?page=-1", "/?page=99999999999999999999"})
    EXPECT_EQ(get(odd).status, 200U) << odd;
}

TEST_F(PageHandlerTest, WhatIsMineAsksToSignIn) {
  for (const auto* target : {"/write", "/write/5", "/me/articles", "/me/collections", "/me/history"}) {
    const auto response = get(target);
    EXPECT_EQ(response.status, 303U) << target;
    EXPECT_EQ(
        header_of(response, "Location"), "/signin?next=" + [&] {
          std::string encoded;
          for (const char c : std::string_view(target)) encoded += c == '/' ? "%2F" : std::string(1, c);
          return encoded;
        }());
    EXPECT_EQ(get_as_ann(target).status, 200U) << target;
  }
  // Somebody whose account is gone is nobody.
  EXPECT_EQ(get("/write", {{"Cookie", "weir_session=ghost"}}).status, 303U);
  EXPECT_EQ(get("/", {{"Cookie", "weir_session=expired"}}).status, 200U);
}

TEST_F(PageHandlerTest, SigningInGoesBackOnlyToThisSite) {
  EXPECT_THAT(get("/signin?next=/write").body, HasSubstr("data-next=\"/write\""));
  EXPECT_THAT(get("/signin?next=//evil.example").body, HasSubstr("data-next=\"/\""));
  EXPECT_EQ(header_of(get_as_ann("/signin?next=/write"), "Location"), "/write");
  EXPECT_EQ(header_of(get_as_ann("/signup?next=https://evil.example"), "Location"), "/");
}

TEST_F(PageHandlerTest, RemembersChoices) {
  const auto language = get("/pages/language/zh?back=/newest");
  EXPECT_EQ(language.status, 303U);
  EXPECT_EQ(header_of(language, "Location"), "/newest");
  EXPECT_THAT(header_of(language, "Set-Cookie"), HasSubstr("weir_lang=zh; Path=/; Max-Age=31536000"));
  EXPECT_EQ(header_of(get("/pages/theme/dark?back=//evil.example"), "Location"), "/");
  EXPECT_EQ(get("/pages/theme/pink").status, 404U);
  EXPECT_EQ(get("/pages/language/fr").status, 404U);
  EXPECT_THAT(get("/", {{"Cookie", "weir_lang=zh; weir_theme=dark"}}).body,
              HasSubstr("<html lang=\"zh-CN\" data-theme=\"dark\">"));
}

TEST_F(PageHandlerTest, PreviewsAsReadersWillSeeIt) {
  const Headers ann{
      {"Cookie", "weir_session=ann"}, {"X-Weir-Page", "1"}, {"Content-Type", "application/json"}};
  const auto body =
      json::serialize(json::value{{"content", "**你好**，河水从堰上漫过去。<script>x</script>"}});
  const auto response = ask("POST", "/pages/preview", ann, body);
  EXPECT_EQ(response.status, 200U);
  const auto answer = json::parse(response.payload());
  EXPECT_EQ(answer.at("lang").as_string(), "zh-CN");
  const std::string html(answer.at("html").as_string());
  EXPECT_THAT(html, HasSubstr("<strong>你好</strong>"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_EQ(ask("POST", "/pages/preview", ann, "{}").status, 422U);
  EXPECT_EQ(ask("POST", "/pages/preview", {{"Content-Type", "application/json"}}, body).status, 401U);
  const Headers forged{{"Cookie", "weir_session=ann"}, {"Content-Type", "application/json"}};
  EXPECT_EQ(ask("POST", "/pages/preview", forged, body).status, 403U);
}

TEST_F(PageHandlerTest, CompressesForThoseWhoTakeIt) {
  const auto plain = get("/");
  const auto gzip = get("/", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(header_of(plain, "Content-Encoding"), "");
  EXPECT_EQ(header_of(gzip, "Content-Encoding"), "gzip");
  EXPECT_LT(gzip.body.size(), plain.body.size() / 2);
}

TEST_F(PageHandlerTest, AfterTheStopTextsThatAreNotLaidOutAreUnavailable) {
  const Id id = module_.published(ann_);
  work_->stop();
  const auto response = get("/articles/" + std::to_string(id));
  EXPECT_EQ(response.status, 503U);
  EXPECT_NE(header_of(response, "Retry-After"), "");
}

TEST_F(PageHandlerTest, WhatGoesWrongStillKnowsItsReader) {
  const Id id = module_.published(ann_);
  EXPECT_THAT(get_as_ann("/articles/x").body, HasSubstr("data-testid=\"who\">Ann &lt;安&gt;</span>"));
  work_->stop();
  const auto response = get_as_ann("/articles/" + std::to_string(id));
  EXPECT_EQ(response.status, 503U);
  EXPECT_THAT(response.body, HasSubstr("data-testid=\"who\">Ann &lt;安&gt;</span>"));
}

}  // namespace
}  // namespace weir::site::pages

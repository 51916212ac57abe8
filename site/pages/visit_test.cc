#include "site/pages/visit.h"

#include <gtest/gtest.h>

namespace weir::site::pages {
namespace {

TEST(Visit, ReadsTheChoicesOfTheRequest) {
  const http::Request request("GET", "/newest?before=1.2",
                              {{"Cookie", "weir_lang=zh; weir_theme=dark"},
                               {"Accept-Language", "en"},
                               {"Host", "weir.example:8080"}});
  const auto visit = visit_of(request, WallTime{});
  EXPECT_EQ(visit.language, Language::zh);
  EXPECT_EQ(visit.theme, Theme::dark);
  EXPECT_EQ(visit.address, "/newest?before=1.2");
  EXPECT_EQ(visit.origin, "http://weir.example:8080");
  EXPECT_FALSE(visit.reader);
  EXPECT_EQ(visit.sign_in_address(), "/signin?next=%2Fnewest%3Fbefore%3D1.2");
}

TEST(Visit, DoesNotTrustTheHost) {
  for (const auto* host : {"a\"b", "a/b", "<b>", "a b", "", "a@b"}) {
    const http::Request request("GET", "/", {{"Host", host}});
    EXPECT_EQ(visit_of(request, WallTime{}).origin, "") << host;
  }
  http::Request request("GET", "/", {{"Host", "[::1]:80"}});
  request.secure = true;
  EXPECT_EQ(visit_of(request, WallTime{}).origin, "https://[::1]:80");
}

TEST(Visit, ComesBackOnlyToThisSite) {
  for (const auto* good : {"/", "/articles/1", "/?page=2", "/write/7?x=%2F%2F"})
    EXPECT_EQ(local_address(good), good);
  for (const auto* bad :
       {"", "//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/\tx",
        "/a\r\nSet-Cookie: x=1", "evil", "/\x7f", "/堰", " /"})
    EXPECT_EQ(local_address(bad), "/") << bad;
  EXPECT_EQ(local_address(std::string(3000, '/').insert(1, "a")), "/");
}

TEST(Visit, ThemesHaveNames) {
  for (const auto theme : {Theme::system, Theme::light, Theme::dark})
    EXPECT_EQ(parse_theme(to_text(theme)), theme);
  EXPECT_EQ(parse_theme("pink"), Theme::system);
}

TEST(Visit, EncodesForAQuery) {
  EXPECT_EQ(percent_encoded("/a?b=c&d é~"), "%2Fa%3Fb%3Dc%26d%20%C3%A9~");
}

}  // namespace
}  // namespace weir::site::pages

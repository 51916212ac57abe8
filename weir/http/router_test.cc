#include "weir/http/router.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace weir::http {
namespace {

Handler nothing() {
  return [](Request&) -> Reply { co_return Response::empty(); };
}

Route route(std::string method, std::string pattern) {
  Route made;
  made.method = std::move(method);
  made.pattern = std::move(pattern);
  made.handler = nothing();
  return made;
}

Router sample() {
  Router router;
  for (const char* pattern :
       {"/", "/v1/articles", "/v1/articles/{id}", "/v1/articles/newest", "/v1/interactions/{biz}/{biz_id}",
        "/v1/rankings/{name}", "/v1/x/{a:id}", "/v1/x/{b:biz}", "/v1/x/{c:text}", "/v1/x/{c:text}/deep"}) {
    router.add(route("GET", pattern));
  }
  router.add(route("PUT", "/v1/articles/{article_id}"));
  router.add(route("POST", "/v1/articles"));
  return router;
}

// The label of the route found, "405 <allow>" or "404".
std::string find(const Router& router, std::string_view method, std::string_view target) {
  Request request(method, target);
  const auto match = router.find(request);
  if (match.entry != nullptr) return match.entry->label;
  return match.allow != nullptr ? "405 " + *match.allow : "404";
}

TEST(Router, FindsRoutes) {
  const Router router = sample();
  EXPECT_EQ(find(router, "GET", "/"), "/");
  EXPECT_EQ(find(router, "GET", "/v1/articles"), "/v1/articles");
  EXPECT_EQ(find(router, "GET", "/v1/articles/42"), "/v1/articles/{id}");
  EXPECT_EQ(find(router, "PUT", "/v1/articles/42"), "/v1/articles/{article_id}") << "a name of its own";
  EXPECT_EQ(find(router, "GET", "/v1/articles/newest"), "/v1/articles/newest") << "a literal wins";
  EXPECT_EQ(find(router, "HEAD", "/v1/articles/42"), "/v1/articles/{id}") << "GET answers HEAD";
  EXPECT_EQ(find(router, "GET", "/v1/rankings/%E7%83%AD"), "/v1/rankings/{name}");
  EXPECT_EQ(find(router, "GET", "/v1/x/7"), "/v1/x/{a}") << "narrower kinds first";
  EXPECT_EQ(find(router, "GET", "/v1/x/seven"), "/v1/x/{b}");
  EXPECT_EQ(find(router, "GET", "/v1/x/Seven"), "/v1/x/{c}");
  EXPECT_EQ(find(router, "GET", "/v1/x/7/deep"), "/v1/x/{c}/deep") << "comes back from a dead end";
}

TEST(Router, TellsAnUnknownPathFromAnUnknownMethod) {
  const Router router = sample();
  EXPECT_EQ(find(router, "DELETE", "/v1/articles"), "405 GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(find(router, "TRACE", "/v1/articles/1"), "405 GET, HEAD, PUT, OPTIONS");
  EXPECT_EQ(find(router, "get", "/v1/articles"), "405 GET, HEAD, POST, OPTIONS") << "methods have case";
  for (const char* target :
       {"/v1", "/v1/", "/v2/articles", "/v1/articles/", "/v1/articles/1/", "//v1/articles", "/v1//articles",
        "/V1/articles", "/v1/./articles", "/v1/x/../articles", "/v1/rankings/", "/v1/articles/1%2F2"}) {
    EXPECT_EQ(find(router, "GET", target), "404") << target;
  }
  EXPECT_EQ(find(router, "OPTIONS", "*"), "404");
}

TEST(Router, KnowsWhatAnIdIs) {
  const Router router = sample();
  for (const char* id : {"-1", "0", "1e3", "007", "+7", "9223372036854775808", "1.0", "%31x", "x", "%20"}) {
    EXPECT_EQ(find(router, "GET", std::string("/v1/articles/") + id), "404") << id;
  }
  EXPECT_EQ(find(router, "GET", "/v1/articles/%34%32"), "/v1/articles/{id}") << "escaped digits are digits";
  EXPECT_EQ(find(router, "GET", "/v1/articles/9223372036854775807"), "/v1/articles/{id}");
  for (const char* biz : {"Article", "1a", "_a", "a-b", "%E6%96%87"}) {
    EXPECT_EQ(find(router, "GET", std::string("/v1/interactions/") + biz + "/1"), "404") << biz;
  }
  EXPECT_EQ(find(router, "GET", "/v1/interactions/" + std::string(33, 'a') + "/1"), "404");
}

TEST(Router, FillsParametersIn) {
  const Router router = sample();
  Request request("GET", "/v1/interactions/article_2/77");
  ASSERT_NE(router.find(request).entry, nullptr);
  EXPECT_EQ(request.param("biz"), "article_2");
  EXPECT_EQ(request.id("biz_id"), 77);
  EXPECT_EQ(request.param("biz_id"), "77");
  EXPECT_THROW(static_cast<void>(request.id("biz")), std::logic_error);
  EXPECT_THROW(static_cast<void>(request.param("nobody")), std::logic_error);
}

TEST(Router, RefusesMalformedTables) {
  Router router = sample();
  EXPECT_THROW(router.add(route("GET", "/v1/articles/{other_id}")), std::logic_error) << "the same place";
  EXPECT_THROW(router.add(route("HEAD", "/new")), std::logic_error);
  EXPECT_THROW(router.add(route("BREW", "/new")), std::logic_error);
  for (const char* pattern :
       {"", "new", "/new/", "//", "/a//b", "/{", "/{}", "/{a:float}", "/a{id}", "/%41", "/a?b"}) {
    EXPECT_THROW(router.add(route("GET", pattern)), std::logic_error) << pattern;
  }
  Route without = route("GET", "/new");
  without.handler = nullptr;
  EXPECT_THROW(router.add(std::move(without)), std::logic_error);
  router.add_schema("A", {});
  EXPECT_THROW(router.add_schema("A", {}), std::logic_error);
}

TEST(Router, CanBeFoundAfterItWasMoved) {
  Router router = sample();
  const auto again = router.reference();
  {
    const Router moved = std::move(router);
    EXPECT_EQ(again().entries().size(), moved.entries().size());
  }
  EXPECT_THROW(again(), std::logic_error) << "it doesn't keep the router alive";
}

}  // namespace
}  // namespace weir::http

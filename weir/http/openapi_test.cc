#include "weir/http/openapi.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <stdexcept>

#include "weir/http/list_query.h"

namespace weir::http {
namespace {

Router sample() {
  Router router;
  router.add_schema("NewThing", {{"type", "object"}});
  router.add_schema("Thing", {{"type", "object"}});
  const Handler handler = [](Request&) -> Reply { co_return Response::empty(); };
  Doc get;
  get.summary = "Read <one>";
  get.query = list_parameters();
  get.responses = {{200, "Thing"}, {304, ""}};
  get.tag = "things";
  router.add({"GET", "/v1/things/{id}", Access::anyone, handler, get});
  Doc put;
  put.request_schema = "NewThing";
  put.responses = {{204, ""}};
  put.problems = {409};
  router.add({"PUT", "/v1/things/{id}", Access::user, handler, put});
  Doc hidden;
  hidden.hidden = true;
  router.add({"GET", "/page", Access::anyone, handler, hidden});
  router.add({"DELETE", "/v1/biz/{biz:biz}/{name}", Access::admin, handler, {}});
  return router;
}

std::string statuses(const boost::json::value& operation) {
  std::vector<std::string> all;
  for (const auto& [status, response] : operation.at("responses").as_object()) all.emplace_back(status);
  std::ranges::sort(all);
  std::string text;
  for (const auto& status : all) text += (text.empty() ? "" : " ") + status;
  return text;
}

TEST(OpenApi, TellsTheRoutes) {
  const auto document = openapi(sample(), "Things", "1.2.3");
  EXPECT_EQ(document.at("openapi").as_string(), "3.1.0");
  EXPECT_EQ(document.at("info").at("version").as_string(), "1.2.3");
  EXPECT_EQ(document.at("paths").as_object().size(), 2U) << "hidden ones are left out";
  const auto& get = document.at_pointer("/paths/~1v1~1things~1{id}/get");
  EXPECT_EQ(get.at("operationId").as_string(), "get_v1_things_id");
  EXPECT_EQ(get.at("parameters").as_array().size(), 6U);
  EXPECT_EQ(get.at("parameters").at(0).at("schema").at("pattern").as_string(), "^[1-9][0-9]{0,18}$");
  EXPECT_EQ(get.at("parameters").at(1).at("schema").at("maximum").as_int64(), 100);
  EXPECT_EQ(get.at_pointer("/responses/200/content/application~1json/schema/$ref").as_string(),
            "#/components/schemas/Thing");
  EXPECT_EQ(get.at("security").as_array().size(), 3U) << "nobody, a token or a cookie";
  EXPECT_TRUE(document.at_pointer("/components/schemas/Problem").is_object());
}

TEST(OpenApi, TellsEveryAnswer) {
  const auto document = openapi(sample(), "Things", "1");
  EXPECT_EQ(statuses(document.at_pointer("/paths/~1v1~1things~1{id}/get")),
            "200 304 400 401 404 408 422 431 503");
  const auto& put = document.at_pointer("/paths/~1v1~1things~1{id}/put");
  EXPECT_EQ(statuses(put), "204 400 401 403 404 408 409 413 415 422 431 503");
  EXPECT_TRUE(put.at("requestBody").at("required").as_bool());
  EXPECT_EQ(put.at("security").as_array().size(), 2U);
  EXPECT_EQ(statuses(document.at_pointer("/paths/~1v1~1biz~1{biz}~1{name}/delete")),
            "400 401 403 404 408 413 415 431 503");
}

TEST(OpenApi, NoticesMissingSchemas) {
  Router router = sample();
  Doc doc;
  doc.responses = {{200, "Nobody"}};
  router.add({"GET", "/new", Access::anyone, [](Request&) -> Reply { co_return Response::empty(); }, doc});
  EXPECT_THROW(openapi(router, "Things", "1"), std::logic_error);
}

TEST(DocsPage, ShowsTheDocument) {
  const std::string page = docs_page(openapi(sample(), "Things & more", "1"));
  EXPECT_NE(page.find("id=\"get_v1_things_id\""), std::string::npos);
  EXPECT_NE(page.find("Read &lt;one&gt;"), std::string::npos) << "texts are escaped";
  EXPECT_NE(page.find("Things &amp; more"), std::string::npos);
  EXPECT_NE(page.find("id=\"not_found\""), std::string::npos) << "where a problem's type leads";
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
}

}  // namespace
}  // namespace weir::http

#include "weir/http/fields.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace weir::http {
namespace {

Fields fields(std::string_view json) {
  return Fields(boost::json::parse(json).as_object());
}

// The errors as "field message; ..", or "ok".
std::string errors_of(const Fields& f) {
  try {
    f.check();
  } catch (const Problem& problem) {
    EXPECT_EQ(problem.status(), 422U);
    EXPECT_EQ(problem.code(), "invalid_field");
    std::string all;
    for (const auto& error : problem.errors())
      all += (all.empty() ? "" : "; ") + error.field + " " + error.message;
    return all;
  }
  return "ok";
}

TEST(Fields, ReadsWhatIsThere) {
  auto f = fields(
      R"({"title":"热门 😀","n":3,"m":3.0,"id":"9223372036854775807","yes":true,"nil":null,"extra":[1]})");
  EXPECT_EQ(f.string("title", {.min = 1, .max = 4}), "热门 😀");
  EXPECT_EQ(f.integer("n", 1, 3), 3);
  EXPECT_EQ(f.integer("m"), 3);
  EXPECT_EQ(f.id("id"), 9223372036854775807);
  EXPECT_TRUE(f.boolean("yes"));
  EXPECT_EQ(f.optional_string("nil"), std::nullopt) << "null is missing";
  EXPECT_EQ(f.optional_integer("none"), std::nullopt);
  EXPECT_EQ(f.optional_id("none"), std::nullopt);
  EXPECT_EQ(f.string("none", {.required = false}), "");
  EXPECT_TRUE(f.has("title") && !f.has("nil") && f.is_null("nil") && !f.is_null("title") &&
              !f.is_null("none"));
  EXPECT_EQ(errors_of(f), "ok");
}

TEST(Fields, CollectsAllErrors) {
  auto f = fields(
      R"({"long":"abcd","short":"","type":3,"nul":"a\u0000b","big":101,"float":1.5,"huge":18446744073709551615,
                      "id":7,"bad":"007","maybe":"true"})");
  EXPECT_EQ(f.string("missing"), "");
  f.string("long", {.max = 3});
  f.string("short", {.min = 1});
  f.string("type");
  f.string("nul");
  f.integer("big", 1, 100);
  f.integer("float");
  f.integer("huge");
  f.integer("long");
  f.id("id");
  f.id("bad");
  f.boolean("maybe");
  f.refuse("own", "is odd");
  EXPECT_FALSE(f.ok());
  EXPECT_EQ(
      errors_of(f),
      "missing is required; long must have at most 3 characters; short must not be empty; type must be a "
      "text; "
      "nul must not contain NUL; big must be between 1 and 100; float must be a whole number of 64 bits; "
      "huge must be a whole number of 64 bits; long must be a number; id must be an id: a decimal text; "
      "bad must be an id: a decimal text; maybe must be true or false; own is odd");
}

TEST(Fields, CountsCodePointsAndBytes) {
  auto f = fields(R"({"a":"ééé","b":"ééé"})");
  EXPECT_EQ(f.string("a", {.max = 3, .max_bytes = 6}), "ééé");
  f.string("b", {.max = 3, .max_bytes = 5});
  EXPECT_EQ(errors_of(f), "b must have at most 5 bytes");
}

TEST(Fields, ReadsQueryNumbers) {
  const Request request("GET", "/?n=5&id=7&bad=1e3&neg=-1&wide=99999999999999999999");
  EXPECT_EQ(query_integer(request, "n", 1, 9, 2), 5);
  EXPECT_EQ(query_integer(request, "none", 1, 9, 2), 2);
  EXPECT_EQ(query_id(request, "id"), 7);
  for (const char* name : {"bad", "neg", "wide"}) {
    EXPECT_THROW(query_integer(request, name, 0, 1000, 2), Problem) << name;
    EXPECT_THROW(query_id(request, name), Problem) << name;
  }
  EXPECT_THROW(query_integer(request, "n", 6, 9, 2), Problem);
  EXPECT_THROW(query_id(request, "none"), Problem);
}

}  // namespace
}  // namespace weir::http

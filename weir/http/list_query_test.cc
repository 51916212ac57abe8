#include "weir/http/list_query.h"

#include <gtest/gtest.h>

#include <limits>

#include "weir/base/random.h"
#include "weir/http/problem.h"

namespace weir::http {
namespace {

using Form = ListQuery::Form;

ListQuery parse(const std::string& query) {
  return parse_list(Request("GET", "/?" + query));
}

// The field that a 422 names.
std::string refused(const std::string& query) {
  try {
    parse(query);
  } catch (const Problem& problem) {
    EXPECT_EQ(problem.status(), 422U);
    return problem.errors().at(0).field;
  }
  return "none";
}

TEST(ListQuery, KnowsItsThreeForms) {
  EXPECT_EQ(parse("").form, Form::cursor);
  EXPECT_EQ(parse("").limit, 20);
  EXPECT_TRUE(parse("limit=7").wants_cursor());
  EXPECT_EQ(parse("limit=7").limit, 7);
  const ListQuery offset = parse("limit=100&offset=40");
  EXPECT_TRUE(offset.form == Form::offset && offset.limit == 100 && offset.offset == 40);
  const ListQuery page = parse("page=3&size=10");
  EXPECT_TRUE(page.form == Form::page && page.limit == 10 && page.offset == 20 && page.wants_total());
  EXPECT_EQ(parse("page=2").offset, 20);
  EXPECT_EQ(parse("size=5").form, Form::page);
  const ListQuery cursor = parse("cursor=abc&limit=5&other=1");
  EXPECT_TRUE(cursor.form == Form::cursor && cursor.cursor == "abc" && cursor.limit == 5);
}

TEST(ListQuery, RefusesBadValues) {
  for (const char* query : {"limit=0", "limit=101", "limit=-1", "limit=1e1", "limit=", "limit=x", "limit=05",
                            "limit=+5", "limit=99999999999999999999", "limit=1&limit=2"}) {
    EXPECT_EQ(refused(query), "limit") << query;
  }
  for (const char* query : {"size=0", "size=101"}) EXPECT_EQ(refused(query), "size") << query;
  for (const char* query : {"page=0", "page=-1", "page=x", "page="})
    EXPECT_EQ(refused(query), "page") << query;
  for (const char* query : {"offset=-1", "offset=x", "offset=01"})
    EXPECT_EQ(refused(query), "offset") << query;
  EXPECT_EQ(refused("cursor="), "cursor");
}

TEST(ListQuery, RefusesMixedForms) {
  EXPECT_EQ(refused("page=1&offset=0"), "offset");
  EXPECT_EQ(refused("page=1&limit=5"), "limit");
  EXPECT_EQ(refused("size=5&limit=5"), "limit");
  EXPECT_EQ(refused("page=1&cursor=x"), "cursor");
  EXPECT_EQ(refused("offset=1&cursor=x"), "offset");
}

TEST(ListQuery, CutsHugeOffsets) {
  for (const char* query :
       {"offset=9223372036854775807", "offset=99999999999999999999999", "page=9223372036854775807&size=100",
        "page=99999999999999999999", "page=92233720368547759&size=100"}) {
    const ListQuery list = parse(query);
    EXPECT_GE(list.offset, 0) << query;
    EXPECT_LE(list.offset, kMaxOffset) << query;
    EXPECT_GT(list.offset, kMaxOffset / 100) << query;
  }
}

TEST(Cursor, ComesBackAsItWent) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min(),
                         kMax = std::numeric_limits<std::int64_t>::max();
  const std::string text = encode_cursor("newest", {kMax, kMin, -1});
  const auto [a, b, c] = decode_cursor<3>("newest", text);
  EXPECT_TRUE(a == kMax && b == kMin && c == -1);
}

TEST(Cursor, RefusesWhatItDidNotMake) {
  const std::string text = encode_cursor("newest", {42, 7});
  const auto refuses = [](const std::string& cursor, std::size_t count = 2,
                          std::string_view list = "newest") {
    try {
      decode_cursor_of(list, cursor, count);
    } catch (const Problem& problem) {
      return problem.status() == 422 && problem.errors().at(0).field == "cursor";
    }
    return false;
  };
  EXPECT_FALSE(refuses(text));
  EXPECT_TRUE(refuses(text, 1));
  EXPECT_TRUE(refuses(text, 2, "history"));
  for (const char* other : {"", "x", "!!!!", "AAAA", "eyJhIjoxfQ"}) EXPECT_TRUE(refuses(other)) << other;
  EXPECT_TRUE(refuses(text + "A"));
  EXPECT_TRUE(refuses(text + "="));
  EXPECT_TRUE(refuses(std::string(100'000, 'A')));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_TRUE(refuses(changed)) << i;
  }
}

}  // namespace
}  // namespace weir::http

#include "weir/sql/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::sql::detail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Split, TakesScriptsApart) {
  EXPECT_THAT(split_statements("a; b ;c"), ElementsAre("a", " b ", "c"));
  EXPECT_THAT(split_statements("a;\n"), ElementsAre("a"));
  EXPECT_THAT(split_statements(""), IsEmpty());
  EXPECT_THAT(split_statements(";; ; \n;"), IsEmpty());
}

TEST(Split, SeesNoEndWithinQuotes) {
  EXPECT_THAT(split_statements("x 'a;b'; y"), ElementsAre("x 'a;b'", " y"));
  EXPECT_THAT(split_statements("'it''s;' ; \"a;\"\";b\"; `c;`"),
              ElementsAre("'it''s;' ", " \"a;\"\";b\"", " `c;`"));
  // A backslash escapes nothing.
  EXPECT_THAT(split_statements("'a\\'; b"), ElementsAre("'a\\'", " b"));
  EXPECT_THAT(split_statements("'open; b"), ElementsAre("'open; b"));
}

TEST(Split, SeesNoEndWithinComments) {
  EXPECT_THAT(split_statements("a -- x; y'\n; b"), ElementsAre("a -- x; y'\n", " b"));
  EXPECT_THAT(split_statements("a # x; y\n; b"), ElementsAre("a # x; y\n", " b"));
  EXPECT_THAT(split_statements("a /* ; ' */; b"), ElementsAre("a /* ; ' */", " b"));
  EXPECT_THAT(split_statements("-- nothing; here\n /* nor; here */ ; # or here;"), IsEmpty());
  EXPECT_THAT(split_statements("--"), IsEmpty());
  EXPECT_THAT(split_statements("5--1; b"), ElementsAre("5--1", " b"));
  EXPECT_THAT(split_statements("a /* open ; b"), ElementsAre("a /* open ; b"));
}

TEST(Split, FindsTheFirstWord) {
  EXPECT_EQ(first_word("select 1"), "SELECT");
  EXPECT_EQ(first_word("  -- a comment\n/* and */ (( Insert\tinto"), "INSERT");
  EXPECT_EQ(first_word("COMMIT;"), "COMMIT");
  EXPECT_EQ(first_word(" -- nothing"), "");
  EXPECT_EQ(first_word(""), "");
}

}  // namespace
}  // namespace weir::sql::detail

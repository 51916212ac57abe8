#include "weir/base/id.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ParseId, TakesTheCanonicalFormOnly) {
  EXPECT_EQ(parse_id("1"), 1);
  EXPECT_EQ(parse_id("9223372036854775807"), 9223372036854775807LL);
  for (const char* bad : {"", "0", "-1", "+1", "007", "1e3", "1.0", " 1", "1 ", "9223372036854775808",
                          "18446744073709551617", "x", "0x10"}) {
    EXPECT_EQ(parse_id(bad), std::nullopt) << bad;
  }
}

TEST(ParseDecimal, KeepsToItsLimit) {
  EXPECT_EQ(parse_decimal("0", 100), 0u);
  EXPECT_EQ(parse_decimal("100", 100), 100u);
  EXPECT_EQ(parse_decimal("101", 100), std::nullopt);
  EXPECT_EQ(parse_decimal("00", 100), std::nullopt);
}

}  // namespace
}  // namespace weir

#include "weir/base/utf8.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Utf8, CountsCodePoints) {
  EXPECT_EQ(utf8_length(""), 0u);
  EXPECT_EQ(utf8_length("weir"), 4u);
  EXPECT_EQ(utf8_length("堰"), 1u);
  EXPECT_EQ(utf8_length("a😀é"), 3u);
}

TEST(Utf8, RefusesWhatIsNone) {
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf5\x80\x80\x80", "\xe5\xa0", "a\xff"}) {
    EXPECT_EQ(utf8_length(bad), std::nullopt);
  }
}

TEST(Utf8, PrefixNeverCutsACodePoint) {
  EXPECT_EQ(utf8_prefix("堰😀x", 0), "");
  EXPECT_EQ(utf8_prefix("堰😀x", 2), "堰😀");
  EXPECT_EQ(utf8_prefix("堰😀x", 9), "堰😀x");
}

}  // namespace
}  // namespace weir

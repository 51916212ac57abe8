#include "weir/base/units.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsWholeNumbersWithAUnit) {
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("10m"), 10min);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("0s"), 0s);
  for (const char* bad :
       {"", "10", "s", "1.5s", "-1s", "1 s", "1w", "99999999999999999d", "9223372036854775807s"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(Size, ReadsBinaryUnits) {
  EXPECT_EQ(parse_size("64KiB"), 65536u);
  EXPECT_EQ(parse_size("2MiB"), 2u << 20);
  for (const char* bad : {"", "1", "1KB", "1kib", "-1B", "9999999TiB"})
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
}

TEST(Units, FormatIsWhatParseReads) {
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(168h), "7d");
  EXPECT_EQ(format_duration(0s), "0ms");
  EXPECT_EQ(format_size(2u << 20), "2MiB");
  EXPECT_EQ(format_size(1000), "1000B");
}

}  // namespace
}  // namespace weir

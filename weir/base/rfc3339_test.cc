#include "weir/base/rfc3339.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Rfc3339, WritesMillisecondsInUtc) {
  EXPECT_EQ(to_rfc3339(from_micros(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(to_rfc3339(from_micros(1'800'000'000'123'456)), "2027-01-15T08:00:00.123Z");
  EXPECT_EQ(to_rfc3339(from_micros(-1)), "1969-12-31T23:59:59.999Z");
}

TEST(Rfc3339, ReadsOffsetsAndFractions) {
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:01Z"), from_micros(1'000'000));
  EXPECT_EQ(parse_rfc3339("1970-01-01T01:00:00.5+01:00"), from_micros(500'000));
  EXPECT_EQ(parse_rfc3339("2016-08-04T11:52:00Z"), from_micros(1'470'311'520'000'000));
  for (const char* bad :
       {"", "2016-08-04", "2016-02-30T00:00:00Z", "2016-08-04T24:00:00Z", "2016-08-04T11:52:00",
        "2016-08-04T11:52:00Z ", "2016-08-04T11:52:00.Z", "16-08-04T11:52:00Z"}) {
    EXPECT_EQ(parse_rfc3339(bad), std::nullopt) << bad;
  }
}

TEST(CalendarDate, MustExist) {
  EXPECT_TRUE(is_calendar_date("2024-02-29"));
  for (const char* bad : {"2023-02-29", "2024-13-01", "2024-1-1", "2024-01-01T", ""})
    EXPECT_FALSE(is_calendar_date(bad)) << bad;
}

}  // namespace
}  // namespace weir

#include "site/app/csv.h"

#include <gtest/gtest.h>

#include "weir/base/fault.h"
#include "weir/testing/temp_dir.h"

namespace weir::site {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows read(const std::string& text) {
  const TempDir dir;
  Rows rows;
  read_csv(dir.file("rows.csv", text), [&](std::size_t number, const std::vector<std::string>& row) {
    EXPECT_EQ(number, rows.size() + 1);
    rows.push_back(row);
  });
  return rows;
}

TEST(Csv, ReadsQuotesCommasAndLinesWithinFields) {
  EXPECT_EQ(read("a,b\n1,\"x, \"\"y\"\"\nz\"\n2,堰"), (Rows{{"a", "b"}, {"1", "x, \"y\"\nz"}, {"2", "堰"}}));
}

TEST(Csv, RefusesWhatIsNone) {
  EXPECT_THROW(read("a,\"unfinished\n"), Unusable);
  EXPECT_THROW(read("a,b\"c\n"), Unusable);
  EXPECT_THROW(read_csv("/nowhere.csv", [](std::size_t, const std::vector<std::string>&) {}), Unusable);
}

TEST(Csv, ThrowsWhatTheReaderThrows) {
  const TempDir dir;
  const auto path = dir.file("rows.csv", "a\nb\n");
  EXPECT_THROW(
      read_csv(path, [](std::size_t, const std::vector<std::string>&) { throw std::runtime_error("no"); }),
      std::runtime_error);
}

}  // namespace
}  // namespace weir::site

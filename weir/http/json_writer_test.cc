#include "weir/http/json_writer.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <limits>

namespace weir::http {
namespace {

TEST(JsonWriter, WritesEveryKindOfValue) {
  JsonWriter w;
  w.begin_object()
      .key("id")
      .id(9223372036854775807)
      .key("n")
      .integer(-3)
      .key("x")
      .number(0.1)
      .key("yes")
      .boolean(true);
  w.key("nil").null().key("at").time(WallTime(std::chrono::seconds(1'700'000'000)));
  w.key("list")
      .begin_array()
      .integer(1)
      .string("two")
      .begin_object()
      .end_object()
      .begin_array()
      .end_array()
      .end_array();
  w.key("raw").raw(R"({"a":[]})").end_object();
  EXPECT_EQ(
      w.text(),
      R"({"id":"9223372036854775807","n":-3,"x":0.1,"yes":true,"nil":null,"at":"2023-11-14T22:13:20.000Z",)"
      R"("list":[1,"two",{},[]],"raw":{"a":[]}})");
}

TEST(JsonWriter, EscapesWhatMustBe) {
  std::string every;
  for (int c = 0; c < 128; ++c) every += static_cast<char>(c);
  every += "文😀\u2028";
  JsonWriter w;
  w.begin_array().string(every).string("").end_array();
  const auto read = boost::json::parse(w.text());
  EXPECT_EQ(read.at(0).as_string(), every);
  for (const char c : w.text()) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
}

TEST(JsonWriter, KeepsNumbersValid) {
  JsonWriter w;
  w.begin_array()
      .number(std::numeric_limits<double>::infinity())
      .number(std::nan(""))
      .number(1e300)
      .number(-0.0)
      .end_array();
  const auto read = boost::json::parse(w.text());
  EXPECT_TRUE(read.at(0).is_null() && read.at(1).is_null());
  EXPECT_EQ(read.at(2).to_number<double>(), 1e300);
}

}  // namespace
}  // namespace weir::http

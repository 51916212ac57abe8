#include "site/pages/words.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "weir/base/fault.h"

namespace weir::site::pages {
namespace {

// The table that the scripts are held to as well.
const boost::json::object& table() {
  static const auto parsed = [] {
    std::ifstream file(WEIR_UI_TESTS "/words.json");
    std::ostringstream text;
    text << file.rdbuf();
    return boost::json::parse(text.str()).as_object();
  }();
  return parsed;
}

std::string_view text_of(const boost::json::value& row, Language language) {
  return row.at(language == Language::zh ? "zh" : "en").as_string();
}

class EachLanguage : public testing::TestWithParam<Language> {
 protected:
  const Words& words_ = Words::of(GetParam());
};

TEST_P(EachLanguage, ShortNumbers) {
  for (const auto& row : table().at("numbers").as_array())
    EXPECT_EQ(words_.short_number(row.at("n").as_int64()), text_of(row, GetParam()));
}

TEST_P(EachLanguage, Times) {
  const WallTime now(std::chrono::seconds(1'700'000'000));
  for (const auto& row : table().at("times").as_array())
    EXPECT_EQ(words_.when(now - std::chrono::seconds(row.at("age").as_int64()), now),
              text_of(row, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Words, EachLanguage, testing::Values(Language::en, Language::zh),
                         [](const auto& language) { return language.param == Language::zh ? "zh" : "en"; });

TEST(Words, BothLanguagesSayTheSameThings) {
  const auto& english = Words::of(Language::en).all();
  const auto& chinese = Words::of(Language::zh).all();
  ASSERT_GT(english.size(), 100U);
  for (const auto& [key, text] : english) {
    ASSERT_TRUE(chinese.contains(key)) << key;
    EXPECT_FALSE(chinese.at(key).empty()) << key;
    EXPECT_FALSE(text.empty()) << key;
  }
  EXPECT_EQ(english.size(), chinese.size());
}

TEST(Words, ExactNumbersAndTimes) {
  for (const auto& row : table().at("exact").as_array())
    EXPECT_EQ(exact_number(row.at("n").as_int64()), row.at("text").as_string());
  EXPECT_EQ(exact_number(-1234), "-1,234");
  EXPECT_EQ(exact_number(-123), "-123");
  EXPECT_EQ(exact_time(WallTime(std::chrono::seconds(1'700'000'000))), "2023-11-14 22:13 UTC");
}

TEST(Words, OneIsSingular) {
  EXPECT_EQ(Words::of(Language::en).counted("likes", 1), "1 like");
  EXPECT_EQ(Words::of(Language::en).counted("likes", 0), "0 likes");
  EXPECT_EQ(Words::of(Language::zh).counted("reads", 12'345), "1.2 万 阅读");
}

TEST(Words, FillsPlaces) {
  const Words words(Language::en, R"({"a": {"b": "{x} and {y}, {x}{", "c": "plain"}})");
  EXPECT_EQ(words("a.b", {{"x", "1"}, {"y", "{x}"}}), "1 and {x}, 1{");
  EXPECT_EQ(words("a.c"), "plain");
  EXPECT_THROW(words("a.d"), std::logic_error);
}

TEST(Words, RefusesWhatIsNoMessageFile) {
  for (const auto* text : {"", "[]", "{\"a\": 1}", "{\"a\": {\"b\": 1}}", "{"})
    EXPECT_THROW(Words(Language::en, text), Unusable) << text;
}

TEST(Words, ForAScriptCannotEndItsElement) {
  const Words words(Language::en, R"({"a": {"b": "</script><!--"}, "ab": {"c": "other"}})");
  const std::string_view sections[] = {"a"};
  const auto json = words.for_script(sections);
  EXPECT_EQ(json.find('<'), std::string::npos);
  const auto parsed = boost::json::parse(json).as_object();
  EXPECT_EQ(parsed.size(), 1U);
  EXPECT_EQ(parsed.at("a.b").as_string(), "</script><!--");
}

}  // namespace
}  // namespace weir::site::pages

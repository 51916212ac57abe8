#include "site/article/article.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <string>

#include "weir/base/random.h"
#include "weir/base/utf8.h"

namespace weir::site::article {
namespace {

TEST(Abstract, IsTextWithoutMarkup) {
  EXPECT_EQ(abstract_of("# A heading\n\nSome **bold** and [a link](http://x), `code` and ![a picture](y)."),
            "A heading Some bold and a link, code and a picture.");
  EXPECT_EQ(abstract_of("- one\n- two\n\n> three\n\n    four\n"), "one two three four");
  EXPECT_EQ(abstract_of("| a | b |\n|---|---|\n| c | d |\n"), "a b c d");
  EXPECT_EQ(abstract_of("within*word*emphasis and ~~struck~~"), "withinwordemphasis and struck");
}

// With cmark-gfm's table extension each of these takes gigabytes.
TEST(Abstract, IsNotHurtByTablesMadeForIt) {
  const auto repeated = [](std::string_view piece, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += piece;
    return text;
  };
  EXPECT_EQ(abstract_of(repeated("x|", 2000) + "x\n" + repeated("-|", 2000) + "-\n" + repeated("a\n", 4000)),
            repeated("x ", 64));
  EXPECT_EQ(abstract_of(repeated("|", 8000) + "\n" + repeated("-|", 4000)), "");
}

TEST(Abstract, LeavesHtmlOut) {
  EXPECT_EQ(abstract_of("<script>alert(1)</script>\n\nhello <b>you</b>"), "hello you");
}

TEST(Abstract, CollapsesWhiteSpace) {
  EXPECT_EQ(abstract_of("a\t\tb \x01 c\nd\\\ne"), "a b c d e");
  EXPECT_EQ(abstract_of(""), "");
  EXPECT_EQ(abstract_of(" \n\n \n"), "");
}

TEST(Abstract, CountsCodePointsNotBytes) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "字";
  EXPECT_EQ(utf8_length(abstract_of(text)), 128u);
  text.clear();
  for (int i = 0; i < 300; ++i) text += "😀";
  EXPECT_EQ(utf8_length(abstract_of(text)), 128u);
  EXPECT_EQ(abstract_of(std::string(127, 'a')).size(), 127u);
  EXPECT_EQ(abstract_of(std::string(129, 'a')).size(), 128u);
}

// Where the look ends, a code point of any length may be cut: the abstract is valid UTF-8 all the same.
TEST(Abstract, IsValidWhereverTheLookEnds) {
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::string text(16 * 1024 - 200 + shift, ' ');
    text[0] = 'x';
    text[1] = '\n';
    text[2] = '\n';
    text += "\n";
    for (int i = 0; i < 100; ++i) text += "😀";
    EXPECT_TRUE(utf8_length(abstract_of(text)).has_value()) << shift;
  }
}

TEST(Abstract, TakesAnyBytesThatAreUtf8) {
  const auto seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  constexpr std::string_view kPieces[] = {"#",  "*",  "_", "[",  "](", ")",  "`", "```", "<",  ">", "\n", " ",
                                          "\\", "|-", "~", "&#", ";",  "1.", "é", "字",  "😀", "x", "\t"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += kPieces[random.below(std::size(kPieces))];
    const std::string abstract = abstract_of(text);
    const auto length = utf8_length(abstract);
    ASSERT_TRUE(length.has_value()) << text;
    ASSERT_LE(*length, 128u);
    ASSERT_EQ(abstract.find('\n'), std::string::npos);
  }
}

TEST(Faults, OfTitles) {
  EXPECT_TRUE(title_fault(""));
  EXPECT_FALSE(title_fault("x"));
  std::string longest;
  for (int i = 0; i < 10'000; ++i) longest += "题";
  EXPECT_FALSE(title_fault(longest));
  EXPECT_TRUE(title_fault(longest + "x"));
  EXPECT_TRUE(title_fault(std::string_view("a\0b", 3)));
  EXPECT_TRUE(title_fault("\xff"));
}

TEST(Faults, OfContents) {
  EXPECT_FALSE(content_fault(""));
  EXPECT_FALSE(content_fault(std::string(kMaxContentBytes, 'x')));
  EXPECT_TRUE(content_fault(std::string(kMaxContentBytes + 1, 'x')));
  EXPECT_TRUE(content_fault(std::string_view("a\0b", 3)));
  EXPECT_TRUE(content_fault("\xed\xa0\x80"));
}

TEST(ReaderCopy, RendersItsAnswerAndGivesTheContentBack) {
  PublishedArticle article;
  article.id = 42;
  article.author_id = 7;
  article.title = "A \"title\" \\ 标题 😀";
  article.abstract = "short";
  article.content = "line one\nline \"two\"\t\x01 </script> 字 😀";
  article.version = 3;
  article.published_at = from_micros(1'700'000'000'123'456);
  article.updated_at = from_micros(1'700'000'001'000'000);
  const ReaderCopy copy(article);
  const std::string text =
      std::string(copy.json_to_nickname()) + "\"nick\"" + std::string(copy.json_to_interaction()) + "null}";
  const auto json = boost::json::parse(text).as_object();
  EXPECT_EQ(json.at("id").as_string(), "42");
  EXPECT_EQ(std::string(json.at("title").as_string()), article.title);
  EXPECT_EQ(std::string(json.at("content").as_string()), article.content);
  EXPECT_EQ(json.at("author").at("id").as_string(), "7");
  EXPECT_EQ(json.at("author").at("nickname").as_string(), "nick");
  EXPECT_EQ(json.at("published_at").as_string(), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(json.at("updated_at").as_string(), "2023-11-14T22:13:21.000Z");
  EXPECT_EQ(copy.content(), article.content);
  EXPECT_EQ(copy.content_bytes(), article.content.size());
  EXPECT_GE(copy.weight(), text.size());
}

}  // namespace
}  // namespace weir::site::article

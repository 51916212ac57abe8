#include "site/pages/language.h"

#include <gtest/gtest.h>

namespace weir::site::pages {
namespace {

TEST(Language, TheCookieWins) {
  EXPECT_EQ(choose_language("zh", "en"), Language::zh);
  EXPECT_EQ(choose_language("en", "zh-CN"), Language::en);
  EXPECT_EQ(choose_language("fr", "zh-CN"), Language::zh);
}

TEST(Language, ElseTheBrowsersPreference) {
  EXPECT_EQ(choose_language({}, {}), Language::en);
  EXPECT_EQ(choose_language({}, "zh-CN,zh;q=0.9,en;q=0.8"), Language::zh);
  EXPECT_EQ(choose_language({}, "en-GB,en;q=0.9,zh;q=0.8"), Language::en);
  EXPECT_EQ(choose_language({}, "fr, ZH-hant ; q=0.4 , en;q=0.300"), Language::zh);
  EXPECT_EQ(choose_language({}, "zh;q=0, en;q=0.1"), Language::en);
  EXPECT_EQ(choose_language({}, "en;q=0.5, zh;q=0.5"), Language::en);
  EXPECT_EQ(choose_language({}, "de,fr;q=0.7"), Language::en);
}

TEST(Language, SurvivesNonsense) {
  for (const auto* accept : {"", ",,,", ";q=", "zh;q=x", "zhx", "zh;q=", "-", ";", "en;q=9"})
    EXPECT_EQ(choose_language({}, accept), Language::en) << accept;
}

TEST(Language, OfATextByItsScripts) {
  EXPECT_EQ(language_of_text("How caches fail"), "en");
  EXPECT_EQ(language_of_text("缓存为什么会失效"), "zh-CN");
  EXPECT_EQ(language_of_text("用 Rust 重写 LocalCache 的一年"), "zh-CN");
  EXPECT_EQ(language_of_text("キャッシュの仕組みを学ぶ"), "ja");
  EXPECT_EQ(language_of_text("캐시가 실패하는 이유"), "ko");
  EXPECT_EQ(language_of_text("The word 堰 means weir, a low dam that keeps the level"), "en");
  EXPECT_EQ(language_of_text(""), "en");
  EXPECT_EQ(language_of_text("\xF0\x9F"), "en");
}

}  // namespace
}  // namespace weir::site::pages

// The pages from plain values: what they hold, and that nothing that people wrote becomes markup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "site/pages/article_page.h"
#include "site/pages/frame.h"
#include "site/pages/list_page.h"
#include "site/pages/shell_page.h"
#include "weir/base/utf8.h"

namespace weir::site::pages {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kHostile = "\"><script>alert(1)</script><b x='";
const WallTime kNow(std::chrono::seconds(1'700'000'000));

Visit visitor(Language language = Language::en) {
  Visit visit;
  visit.language = language;
  visit.now = kNow;
  visit.address = "/";
  visit.origin = "http://weir.example";
  return visit;
}

Visit reader(Id id = 7) {
  auto visit = visitor();
  visit.reader = id;
  visit.nickname = kHostile;
  return visit;
}

ListRow row(int rank = 1) {
  return {rank,
          42,
          std::string(kHostile),
          std::string(kHostile),
          std::string(kHostile),
          kNow - std::chrono::hours(3),
          interaction::Counts{.reads = 12'345, .likes = 80, .collects = 1}};
}

ArticleView article(std::string_view markdown = "Text.") {
  return {.id = 42,
          .author_id = 7,
          .title = std::string(kHostile),
          .abstract = std::string(kHostile),
          .author = std::string(kHostile),
          .published = kNow - std::chrono::hours(30),
          .updated = kNow - std::chrono::hours(30),
          .counts = interaction::Counts{.reads = 10, .likes = 12'345, .collects = 0},
          .text = std::make_shared<const LaidOut>(lay_out(markdown))};
}

void expect_sound(const std::string& html) {
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, Not(HasSubstr("<b x")));
  EXPECT_EQ(html.find("<h1"), html.rfind("<h1")) << "one h1";
  EXPECT_THAT(html, HasSubstr("<h1"));
  EXPECT_THAT(html, HasSubstr("<main id=\"main\""));
  EXPECT_THAT(html, HasSubstr("<title>"));
  EXPECT_THAT(html, Not(HasSubstr(" style=")));
  EXPECT_THAT(html, Not(HasSubstr(" onclick")));
}

TEST(Page, HostileTextsStayTexts) {
  for (const auto& visit : {visitor(), reader()}) {
    expect_sound(frame(visit, hot_page(visit, {.rows = {row(1), row(2)}, .computed = kNow})));
    expect_sound(frame(visit, newest_page(visit, {.rows = {row(0)}})));
    expect_sound(frame(visit, article_page(visit, article(kHostile))));
    expect_sound(frame(visit, sign_in_page(visit, kHostile)));
    expect_sound(frame(visit, sign_up_page(visit, kHostile)));
    expect_sound(frame(visit, write_page(visit, 42)));
    expect_sound(frame(visit, mine_page(visit, "history")));
  }
}

TEST(Page, TheHotListCarriesItsContent) {
  HotList list{.rows = {row(1)}, .computed = kNow - std::chrono::minutes(2), .stale = false, .more = true};
  list.rows[0].title = "缓存为什么会失效";
  const auto english = frame(visitor(), hot_page(visitor(), list));
  EXPECT_THAT(english, HasSubstr("<html lang=\"en\">"));
  EXPECT_THAT(english, HasSubstr("lang=\"zh-CN\"><a href=\"/articles/42\">缓存为什么会失效</a>"));
  EXPECT_THAT(english, HasSubstr("title=\"12,345\">12.3k reads</span>"));
  EXPECT_THAT(english, HasSubstr("80 likes"));
  EXPECT_THAT(english, HasSubstr("1 collected"));
  EXPECT_THAT(english, HasSubstr(">3 hours ago</time>"));
  EXPECT_THAT(english, HasSubstr("Counted <time"));
  EXPECT_THAT(english, HasSubstr("href=\"/?page=2\""));
  EXPECT_THAT(english, Not(HasSubstr("data-testid=\"stale\"")));
  EXPECT_THAT(english, HasSubstr("property=\"og:title\""));
  EXPECT_THAT(english, HasSubstr("name=\"description\""));

  list.stale = true;
  const auto chinese = frame(visitor(Language::zh), hot_page(visitor(Language::zh), list));
  EXPECT_THAT(chinese, HasSubstr("<html lang=\"zh-CN\">"));
  EXPECT_THAT(chinese, HasSubstr("1.2 万 阅读"));
  EXPECT_THAT(chinese, HasSubstr(">3 小时前</time>"));
  EXPECT_THAT(chinese, HasSubstr("data-testid=\"stale\""));
}

TEST(Page, EmptyAndPartialListsSaySo) {
  EXPECT_THAT(hot_page(visitor(), {}).body.str(), HasSubstr("data-testid=\"empty\""));
  EXPECT_THAT(hot_page(visitor(), {}).body.str(), HasSubstr("Not counted yet"));
  EXPECT_THAT(newest_page(visitor(), {}).body.str(), HasSubstr("data-testid=\"empty\""));
  auto without = row(0);
  without.counts.reset();
  const auto partial = newest_page(visitor(), {.rows = {without}}).body.str();
  EXPECT_THAT(partial, HasSubstr("The counts are resting"));
  EXPECT_THAT(partial, Not(HasSubstr("0 reads")));
}

TEST(Page, AnArticleCarriesItsContent) {
  auto view = article("# One\n\ntext\n\n## Two\n\n# Three\n\n#### Deep");
  view.title = "A weir";
  view.abstract = "Of water.";
  const auto html = frame(visitor(), article_page(visitor(), view));
  EXPECT_THAT(html, HasSubstr("<title>A weir · Weir</title>"));
  EXPECT_THAT(html, HasSubstr("<meta name=\"description\" content=\"Of water.\">"));
  EXPECT_THAT(html, HasSubstr("<meta property=\"og:type\" content=\"article\">"));
  EXPECT_THAT(html, HasSubstr("<meta property=\"og:url\" content=\"http://weir.example/articles/42\">"));
  EXPECT_THAT(html, HasSubstr("<h2 id=\"s-one\">"));
  EXPECT_THAT(html, HasSubstr("<a href=\"#s-two\" class=\"deep\">Two</a>"));
  EXPECT_THAT(html, Not(HasSubstr("<a href=\"#s-deep\"")));
  EXPECT_THAT(html, HasSubstr(">1 day ago</time>"));
  EXPECT_THAT(html, Not(HasSubstr("<span>updated")));
}

TEST(Page, AReaderGetsButtonsAndAVisitorGetsLinks) {
  auto view = article();
  const auto visiting = article_page(visitor(), view).body.str();
  EXPECT_THAT(visiting, HasSubstr("<a class=\"button reaction\" href=\"/signin?next=%2F\""));
  EXPECT_THAT(visiting, HasSubstr("title=\"12,345\">12.3k</span>"));
  EXPECT_THAT(visiting, Not(HasSubstr("data-testid=\"edit\"")));

  view.mine = interaction::Mine{.liked = true};
  const auto reading = article_page(reader(8), view).body.str();
  EXPECT_THAT(reading,
              HasSubstr("data-kind=\"like\" data-id=\"42\" data-count=\"12345\" aria-pressed=\"true\""));
  EXPECT_THAT(reading,
              HasSubstr("data-kind=\"collect\" data-id=\"42\" data-count=\"0\" aria-pressed=\"false\""));
  EXPECT_THAT(reading, Not(HasSubstr("data-testid=\"edit\"")));
  EXPECT_THAT(article_page(reader(7), view).body.str(), HasSubstr("href=\"/write/42\" data-testid=\"edit\""));
}

TEST(Page, AnArticleWithoutWordsOrCountsStillIsOne) {
  auto view = article("");
  view.counts.reset();
  const auto html = article_page(visitor(), view).body.str();
  EXPECT_THAT(html, HasSubstr("has a title and no words yet"));
  EXPECT_THAT(html, Not(HasSubstr("data-testid=\"like-count\"")));
}

TEST(Page, AbstractsEndAtAWord) {
  EXPECT_EQ(shown_abstract("short one"), "short one");
  std::string long_one;
  while (long_one.size() < 128) long_one += "word ";
  long_one.resize(128);
  EXPECT_EQ(shown_abstract(long_one), long_one.substr(0, 124) + "…");
  std::string chinese;
  for (int i = 0; i < 128; ++i) chinese += "堰";
  EXPECT_EQ(shown_abstract(chinese), chinese + "…");
  for (const std::string_view end : {"堰。", "堰？", ".”", "！」", "?)", "…"}) {
    const auto letters = utf8_length(end).value_or(0);
    const auto whole = chinese.substr(0, (128 - letters) * 3) + std::string(end);
    EXPECT_EQ(shown_abstract(whole), whole) << end;
  }
}

TEST(Page, CountsOfNothingAreMarked) {
  EXPECT_THAT(counted_element(visitor(), "likes", 0).str(), HasSubstr("data-none title=\"0\""));
  EXPECT_THAT(counted_element(visitor(), "likes", 1).str(), Not(HasSubstr("data-none")));
}

TEST(Page, AReaderWhoseNameCannotBeHadGetsTheMenuAllTheSame) {
  auto visit = reader();
  visit.nickname.clear();
  const auto html = frame(visit, mine_page(visit, "articles"));
  EXPECT_THAT(html, HasSubstr("data-testid=\"sign-out\""));
  EXPECT_THAT(html, Not(HasSubstr("data-testid=\"who\"")));
}

TEST(Page, TheFrameKnowsItsReader) {
  const auto stranger = frame(visitor(), mine_page(visitor(), "articles"));
  EXPECT_THAT(stranger, HasSubstr("data-testid=\"sign-in-link\""));
  EXPECT_THAT(stranger, HasSubstr("<meta name=\"robots\" content=\"noindex\">"));
  EXPECT_THAT(stranger, Not(HasSubstr("data-theme=")));
  auto visit = reader();
  visit.theme = Theme::dark;
  const auto known = frame(visit, mine_page(visit, "articles"));
  EXPECT_THAT(known, HasSubstr("data-testid=\"sign-out\""));
  EXPECT_THAT(known, HasSubstr("<html lang=\"en\" data-theme=\"dark\">"));
  EXPECT_THAT(
      known,
      HasSubstr("data-theme-choice=\"dark\" href=\"/pages/theme/dark?back=%2F\" aria-current=\"true\""));
}

}  // namespace
}  // namespace weir::site::pages

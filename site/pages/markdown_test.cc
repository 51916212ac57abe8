#include "site/pages/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace weir::site::pages {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string html_of(std::string_view markdown) {
  return render_markdown(markdown).html;
}

std::string repeated(std::string_view piece, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text.append(piece);
  return text;
}

TEST(Markdown, SpeaksTheGitHubDialect) {
  EXPECT_THAT(html_of("a ~~b~~ **c**"), HasSubstr("a <del>b</del> <strong>c</strong>"));
  EXPECT_THAT(html_of("see www.example.com now"), HasSubstr("href=\"http://www.example.com\""));
  EXPECT_THAT(html_of("- [x] done\n- [ ] not"),
              HasSubstr("<input type=\"checkbox\" checked=\"\" disabled=\"\""));
  EXPECT_THAT(html_of("|a|b|\n|-|:-:|\n|1|2|"), HasSubstr("<td align=\"center\">2</td>"));
  EXPECT_THAT(html_of("```cpp\nx < y\n```"), HasSubstr("<code class=\"language-cpp\">x &lt; y"));
  EXPECT_EQ(html_of(""), "");
}

TEST(Markdown, RawHtmlDoesNotPass) {
  for (const auto* text :
       {"<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "<iframe src=x>",
        "<style>*{}</style>", "<svg/onload=alert(1)>", "<!-- x --><b>", "<div>\n\n# x\n\n</div>",
        "<a href=\"javascript:alert(1)\">x</a>", "<ScRiPt\n>x</sCrIpT>"}) {
    const auto html = html_of(text);
    for (const auto* bad :
         {"<script", "<img", "onerror=", "<iframe", "<style", "<svg", "<div>", "<a href", "<ScRiPt"})
      EXPECT_THAT(html, Not(HasSubstr(bad))) << text;
  }
}

TEST(Markdown, DangerousAddressesDoNotPass) {
  for (const auto* text :
       {"[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](java&#115;cript:alert(1))",
        "[x](&#x6A;avascript:alert(1))", "<javascript:alert(1)>", "[x][1]\n\n[1]: javascript:alert(1)",
        "[x](vbscript:x)", "[x](file:///etc/passwd)", "[x](data:text/html,<script>1</script>)",
        "[x](data:text/html;base64,PHNjcmlwdD4=)", "![x](javascript:alert(1))",
        "![x](data:image/svg+xml,<svg/onload=alert(1)>)", "[x](<javascript:alert(1)>)",
        "[x]( javascript:alert(1) )"}) {
    const auto html = html_of(text);
    EXPECT_THAT(html, testing::AnyOf(HasSubstr("href=\"\""), HasSubstr("src=\"\""), Not(HasSubstr("<a "))))
        << text << "\n"
        << html;
    EXPECT_THAT(html, Not(HasSubstr("src=\"data:image/svg"))) << html;
  }
  // Browsers drop such bytes before they look for a scheme; here they are escaped.
  for (const auto* text :
       {"[x](\x01javascript:alert(1))", "[x](java\tscript:alert(1))", "[x](<java\tscript:alert(1)>)"}) {
    const auto html = html_of(text);
    EXPECT_THAT(html, Not(HasSubstr("href=\"javascript"))) << html;
    EXPECT_THAT(html, Not(HasSubstr("href=\"\x01"))) << html;
    EXPECT_THAT(html, Not(HasSubstr("href=\"java\t"))) << html;
  }
}

TEST(Markdown, AttributesCannotBeLeft) {
  EXPECT_THAT(html_of("[x](http://a/\"onmouseover=\"alert(1))"), Not(HasSubstr("\"onmouseover=\"")));
  EXPECT_THAT(html_of("[x](http://a 'y\" onclick=\"z')"), HasSubstr("title=\"y&quot; onclick=&quot;z\""));
  EXPECT_THAT(html_of("![a\"b<c](p.png)"), HasSubstr("alt=\"a&quot;b&lt;c\""));
  EXPECT_THAT(html_of("```\"><script>\nx\n```"), HasSubstr("language-&quot;&gt;&lt;script&gt;"));
  // What looks like the renderer's own markup, but is the author's text.
  EXPECT_THAT(html_of("`<a href=\"x\">` <img src=\"y\">"), Not(HasSubstr("<a rel")));
}

TEST(Markdown, LinksAndPicturesGetTheirAttributes) {
  EXPECT_THAT(html_of("[x](http://a/)"), HasSubstr("<a rel=\"nofollow ugc\" href=\"http://a/\">x</a>"));
  EXPECT_THAT(
      html_of("![x](http://a/b.png)"),
      HasSubstr("<figure>\n<img loading=\"lazy\" decoding=\"async\" src=\"http://a/b.png\" alt=\"x\" />"));
  EXPECT_THAT(html_of("text ![x](b.png) text"), Not(HasSubstr("<figure>")));
  EXPECT_THAT(html_of("|a|\n|-|"), HasSubstr("<div class=\"wide\">\n<table>"));
}

TEST(Markdown, HeadingsBeginBelowTheTitleWithAnchorsOfTheirOwn) {
  const auto rendered =
      render_markdown("# Hello, *World*!\n\n## 缓存：为什么\n\nx\n\n# hello world\n\n###### deep\n\n# !?");
  ASSERT_EQ(rendered.headings.size(), 5U);
  EXPECT_EQ(rendered.headings[0].slug, "s-hello-world");
  EXPECT_EQ(rendered.headings[0].text, "Hello, World!");
  EXPECT_EQ(rendered.headings[0].level, 2);
  EXPECT_EQ(rendered.headings[1].slug, "s-缓存-为什么");
  EXPECT_EQ(rendered.headings[2].slug, "s-hello-world-2");
  EXPECT_EQ(rendered.headings[3].level, 6);
  EXPECT_EQ(rendered.headings[4].slug, "s-section");
  EXPECT_THAT(rendered.html, HasSubstr("<h2 id=\"s-hello-world\">"));
  EXPECT_THAT(rendered.html, HasSubstr("Hello, <em>World</em>!"));
  EXPECT_THAT(rendered.html, HasSubstr("<a class=\"anchor\" href=\"#s-hello-world\""));
  EXPECT_THAT(rendered.html, Not(HasSubstr("<h1")));
}

TEST(Markdown, TheHighestHeadingOfATextIsAnH2) {
  const auto levels = [](std::string_view markdown) {
    std::vector<int> found;
    for (const auto& heading : render_markdown(markdown).headings) found.push_back(heading.level);
    return found;
  };
  EXPECT_THAT(levels("## a\n\n### b\n\n## c"), testing::ElementsAre(2, 3, 2));
  EXPECT_THAT(levels("### a\n\n## b"), testing::ElementsAre(3, 2));
  EXPECT_THAT(levels("###### a"), testing::ElementsAre(2));
  EXPECT_THAT(levels("# a\n\n## b\n\n###### c"), testing::ElementsAre(2, 3, 6));
  EXPECT_THAT(html_of("### a"), HasSubstr("<h2 id=\"s-a\">"));
}

TEST(Markdown, APictureWithoutAnAddressIsItsDescription) {
  EXPECT_EQ(html_of("![a \"b\" <i>c</i> *d*](javascript:x 't>/') e"),
            "<p>a &quot;b&quot; &lt;i&gt;c&lt;/i&gt; d e</p>\n");
  EXPECT_THAT(html_of("![x](vbscript:x)"), HasSubstr("<figure>\nx\n</figure>"));
  EXPECT_EQ(html_of("a ![]() b"), "<p>a  b</p>\n");
  EXPECT_THAT(html_of("`<img src=\"\" alt=\"y\">`"), HasSubstr("&lt;img src="));
}

TEST(Markdown, SlugsAreBoundedAndNeverTheSame) {
  const auto rendered =
      render_markdown("# " + std::string(5000, 'a') + "\n\n# x\n\n# x-2\n\n# x\n\n# x\n\n# <b id=\"q\">\n");
  EXPECT_LE(rendered.headings[0].slug.size(), kMaxSlugBytes + 2);
  std::vector<std::string> slugs;
  for (const auto& heading : rendered.headings) slugs.push_back(heading.slug);
  std::ranges::sort(slugs);
  EXPECT_EQ(std::ranges::adjacent_find(slugs), slugs.end());
}

TEST(Markdown, AnchorsHaveALimit) {
  const auto rendered = render_markdown(repeated("# a\n\n", 5 * (kMaxHeadings + 10)));
  EXPECT_EQ(rendered.headings.size(), kMaxHeadings);
  EXPECT_TRUE(rendered.laid_out);
}

// Each of these takes cmark-gfm alone minutes, or gigabytes, or both.
TEST(Markdown, TextsMadeToHurtEndWithinTheBudget) {
  constexpr std::size_t kBytes = 400'000;
  const std::vector<std::string> texts = {
      repeated("|", kBytes / 2) + "\n" + repeated("-|", kBytes / 2),
      repeated("x|", kBytes / 4) + "x\n" + repeated("-|", kBytes / 4) + "-\n" + repeated("a\n", kBytes / 2),
      "|" + repeated("a|", 400) + "\n|" + repeated("-|", 400) + "\n" + repeated("a\n", kBytes),
      repeated("![[]()", kBytes),
      repeated("a\n", kBytes) + "a|b\n-|-\n",
      "http://a" + repeated(")", kBytes),
      repeated("a@", kBytes),
      repeated(">", kBytes),
      repeated("> * ", kBytes),
      repeated("[a](", kBytes),
      repeated("*a **a ", kBytes),
      repeated("_a __a ", kBytes),
  };
  const RenderBudget budget{.bytes = std::size_t{64} << 20, .time = std::chrono::milliseconds(300)};
  for (const auto& text : texts) {
    const auto begin = std::chrono::steady_clock::now();
    const auto rendered = render_markdown(text, budget);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took, std::chrono::seconds(20)) << text.substr(0, 20);
    EXPECT_LE(rendered.html.size(), std::size_t{64} << 20) << text.substr(0, 20);
    if (!rendered.laid_out) {
      EXPECT_TRUE(rendered.html.starts_with("<pre class=\"as-written\">"));
    }
  }
}

TEST(Markdown, OverTheBudgetTheTextIsShownAsItWasWritten) {
  const auto rendered = render_markdown("# <b>\n\n" + repeated("word ", 100'000), {.bytes = 200'000});
  EXPECT_FALSE(rendered.laid_out);
  EXPECT_TRUE(rendered.headings.empty());
  EXPECT_TRUE(rendered.html.starts_with("<pre class=\"as-written\"># &lt;b&gt;\n\nword word"));
  EXPECT_THAT(html_of("# fine"), HasSubstr("fine"));  // the next one is as good as ever
}

TEST(Markdown, ALongOrdinaryTextIsWithinTheBudget) {
  const auto rendered =
      render_markdown(repeated("河水从堰上漫过去，*水位*就稳了。See [this](http://a/b).\n\n", 1'900'000));
  EXPECT_TRUE(rendered.laid_out);
}

TEST(Markdown, BrokenUtf8DoesNotPass) {
  const auto html = html_of("# a\xFF\xC0\x80 z\n\n\xF0\x9F");
  EXPECT_THAT(html, HasSubstr("\xEF\xBF\xBD"));
  EXPECT_THAT(html, Not(HasSubstr("\xFF")));
}

TEST(MarkdownConcurrency, ManyThreadsGetTheSame) {
  const std::string text = "# a\n\n~~b~~ www.example.com\n\n|x|\n|-|\n|1|\n\n- [x] c\n";
  const auto wanted = html_of(text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) EXPECT_EQ(html_of(text), wanted);
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace weir::site::pages

#include "site/pages/html.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::site::pages {
namespace {

TEST(Html, EscapesWhatPeopleWrote) {
  Html out;
  out("<a title=\""_html, "\"><script>alert('x')</script>&amp;", "\">"_html, 42, "</a>"_html);
  EXPECT_EQ(out.str(),
            "<a title=\"&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;\">42</a>");
}

TEST(Html, KeepsEverythingElseAsItIs) {
  Html out;
  out(std::string("堰 é 🌊 \n\t"));
  EXPECT_EQ(out.str(), "堰 é 🌊 \n\t");
}

TEST(Html, HoldsOtherHtmlWithoutEscapingItTwice) {
  Html inner;
  inner("<b>"_html, "1 < 2", "</b>"_html);
  Html outer;
  outer("<p>"_html, inner, "</p>"_html);
  EXPECT_EQ(outer.str(), "<p><b>1 &lt; 2</b></p>");
}

TEST(Html, SpecialCharactersAtBothEnds) {
  std::string out;
  append_escaped(out, "<a>");
  append_escaped(out, "");
  append_escaped(out, "&");
  EXPECT_EQ(out, "&lt;a&gt;&amp;");
}

}  // namespace
}  // namespace weir::site::pages

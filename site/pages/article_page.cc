#include "site/pages/article_page.h"

#include <algorithm>

#include "site/pages/list_page.h"

namespace weir::site::pages {
namespace {

constexpr std::size_t kFewestForContents = 3;      // headings; fewer need no table of contents
constexpr std::size_t kMostInContents = 60;        // more would be no overview
constexpr std::chrono::minutes kWorthTelling{10};  // a change this soon belongs to the publication

struct Reaction {
  std::string_view kind, off, on;  // keys of the words
  Markup icon;
  std::int64_t count;
  bool pressed;
};

void reaction(Html& out, const Visit& visit, const ArticleView& article, const Reaction& reaction) {
  const Words& words = visit.words();
  const auto& label = words(reaction.pressed ? reaction.on : reaction.off);
  if (visit.reader) {
    out("<button type=\"button\" class=\"button reaction\" data-kind=\""_html, reaction.kind,
        "\" data-id=\""_html, article.id, "\" data-count=\""_html, reaction.count, "\" aria-pressed=\""_html,
        reaction.pressed ? "true"_html : "false"_html, "\""_html);
  } else {
    out("<a class=\"button reaction\" href=\""_html, visit.sign_in_address(), "\" title=\""_html,
        words("article.sign_in_to"), "\""_html);
  }
  out(" data-testid=\""_html, reaction.kind, "\">"_html, reaction.icon, "<span class=\"label\">"_html, label,
      "</span> "_html);
  if (article.counts)
    out("<span class=\"count num\" data-testid=\""_html, reaction.kind, "-count\" title=\""_html,
        exact_number(reaction.count), "\">"_html, words.short_number(reaction.count), "</span>"_html);
  out(visit.reader ? "</button>\n"_html : "</a>\n"_html);
}

void reactions(Html& out, const Visit& visit, const ArticleView& article) {
  const auto counts = article.counts.value_or(interaction::Counts{});
  const auto mine = article.mine.value_or(interaction::Mine{});
  out("<div class=\"reactions\" role=\"group\" aria-label=\""_html, visit.words()("article.reactions"),
      "\">\n"_html);
  reaction(
      out, visit, article,
      {"like", "article.like", "article.liked",
       "<svg viewBox=\"0 0 20 20\" aria-hidden=\"true\"><path d=\"M10 16.8 3.6 10.3a4 4 0 0 1 5.7-5.7l.7.7.7-.7a4 4 0 0 1 5.7 5.7z\"/></svg>"_html,
       counts.likes, mine.liked});
  reaction(
      out, visit, article,
      {"collect", "article.collect", "article.collected",
       "<svg viewBox=\"0 0 20 20\" aria-hidden=\"true\"><path d=\"M5 2.8h10v14.4l-5-3.6-5 3.6z\"/></svg>"_html,
       counts.collects, mine.collected});
  out("<p id=\"reaction-word\" class=\"reaction-word\" role=\"alert\" data-testid=\"reaction-word\"></p>"
      "<p id=\"reaction-said\" class=\"sr\" role=\"status\"></p></div>\n"_html);
}

void article_head(Html& out, const Visit& visit, const ArticleView& article) {
  out("<header class=\"article-head\"><h1 lang=\""_html, language_of_text(article.title), "\">"_html,
      article.title, "</h1>\n<p class=\"meta\"><span class=\"author\" data-testid=\"author\">"_html,
      article.author, "</span><span>"_html, time_element(visit, article.published), "</span>"_html);
  if (article.updated - article.published > kWorthTelling)
    out("<span>"_html, with_time(visit, "article.updated", article.updated), "</span>"_html);
  if (article.counts) out(counted_element(visit, "reads", article.counts->reads));
  if (visit.reader == article.author_id)
    out("<span><a href=\"/write/"_html, article.id, "\" data-testid=\"edit\">"_html,
        visit.words()("article.edit"), "</a></span>"_html);
  out("</p></header>\n"_html);
}

void contents(Html& out, const Visit& visit, const LaidOut& laid_out) {
  const auto shown = [](const Heading& heading) { return heading.level <= 3 && !heading.text.empty(); };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(laid_out.text.headings, shown));
  if (count < kFewestForContents || count > kMostInContents) return;
  out("<nav class=\"contents\" aria-label=\""_html, visit.words()("article.contents"), "\" lang=\""_html,
      laid_out.language, "\">"_html);
  for (const auto& heading : laid_out.text.headings) {
    if (!shown(heading)) continue;
    out("<a href=\"#"_html, heading.slug, "\""_html, heading.level > 2 ? " class=\"deep\""_html : ""_html,
        ">"_html, heading.text, "</a>"_html);
  }
  out("</nav>\n"_html);
}

void text(Html& out, const Visit& visit, const LaidOut& laid_out) {
  if (!laid_out.text.laid_out)
    out("<p class=\"note\">"_html, visit.words()("article.too_big"), "</p>\n"_html);
  out("<div class=\"text\" data-testid=\"text\" lang=\""_html, laid_out.language, "\">\n"_html);
  if (laid_out.text.html.empty()) {
    out("<p class=\"soft\" lang=\""_html, tag_of(visit.language), "\">"_html, visit.words()("article.empty"),
        "</p>\n"_html);
  } else {
    out(Html::rendered(laid_out.text.html));
  }
  out("</div>\n"_html);
}

}  // namespace

LaidOut lay_out(std::string_view markdown, const Clock& clock) {
  return {render_markdown(markdown, {}, clock), language_of_text(markdown)};
}

Page article_page(const Visit& visit, const ArticleView& article) {
  Page page;
  page.title = article.title;
  page.description = article.abstract.empty() ? article.title : shown_abstract(article.abstract);
  page.entry = "article";
  page.sections = {"article"};
  page.kind = "article-page";
  page.canonical = "/articles/" + std::to_string(article.id);
  page.type = "article";
  page.published = article.published;
  page.body("<article data-testid=\"article\" data-id=\""_html, article.id, "\">\n"_html);
  article_head(page.body, visit, article);
  contents(page.body, visit, *article.text);
  text(page.body, visit, *article.text);
  reactions(page.body, visit, article);
  page.body("</article>\n"_html);
  return page;
}

}  // namespace weir::site::pages

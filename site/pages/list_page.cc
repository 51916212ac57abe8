#include "site/pages/list_page.h"

#include <algorithm>
#include <array>

#include "site/article/article.h"
#include "weir/base/utf8.h"

namespace weir::site::pages {
namespace {

void meta(Html& out, const Visit& visit, const ListRow& row) {
  out("<p class=\"meta\"><span class=\"author\">"_html, row.author, "</span>"_html);
  if (row.published) out("<span>"_html, time_element(visit, *row.published), "</span>"_html);
  if (row.counts) {
    out(counted_element(visit, "reads", row.counts->reads),
        counted_element(visit, "likes", row.counts->likes),
        counted_element(visit, "collects", row.counts->collects));
  }
  out("</p>"_html);
}

void row(Html& out, const Visit& visit, const ListRow& row) {
  out("<li class=\"row\" data-id=\""_html, row.id, "\">"_html);
  if (row.rank > 0)
    out("<span class=\"rank\""_html, row.rank <= 3 ? " data-top"_html : ""_html, ">"_html, row.rank,
        "</span>"_html);
  out("<div><h2 class=\"row-title\" lang=\""_html, language_of_text(row.title),
      "\"><a href=\"/articles/"_html, row.id, "\">"_html, row.title, "</a></h2>"_html);
  meta(out, visit, row);
  if (!row.abstract.empty())
    out("<p class=\"abstract\" lang=\""_html, language_of_text(row.abstract), "\">"_html,
        shown_abstract(row.abstract), "</p>"_html);
  out("</div></li>\n"_html);
}

void rows(Html& out, const Visit& visit, const std::vector<ListRow>& list, bool ranked) {
  if (std::ranges::any_of(list, [](const ListRow& one) { return !one.counts.has_value(); }))
    out("<p class=\"note\" role=\"status\">"_html, visit.words()("list.counts_missing"), "</p>\n"_html);
  out("<ol class=\"rows"_html, ranked ? " ranked"_html : ""_html,
      "\" data-walk data-testid=\"list\">\n"_html);
  for (const auto& one : list) row(out, visit, one);
  out("</ol>\n"_html);
}

Html empty_list(const Words& words, std::string_view text, std::string_view href, std::string_view link) {
  Html out;
  out("<div class=\"empty\" data-testid=\"empty\"><p>"_html, words(text),
      "</p><p class=\"actions\"><a class=\"button\" href=\""_html, href, "\">"_html, words(link),
      "</a></p></div>\n"_html);
  return out;
}

std::string hot_address(int page) {
  return page <= 1 ? "/" : "/?page=" + std::to_string(page);
}

void hot_foot(Html& out, const Visit& visit, const HotList& list) {
  const Words& words = visit.words();
  out("<div class=\"list-foot\">"_html);
  if (list.page > 1)
    out("<a class=\"button\" rel=\"prev\" href=\""_html, hot_address(list.page - 1), "\">"_html,
        words("list.previous"), "</a>"_html);
  if (list.more)
    out("<a class=\"button\" rel=\"next\" href=\""_html, hot_address(list.page + 1), "\">"_html,
        words("list.next"), "</a>"_html);
  out("<p data-testid=\"computed\">"_html);
  if (list.computed) {
    out(with_time(visit, "list.computed", *list.computed));
    if (list.stale) out(" · <span data-testid=\"stale\">"_html, words("list.stale"), "</span>"_html);
  } else {
    out(words("list.never"));
  }
  out("</p></div>\n"_html);
}

// Also when a quotation or a parenthesis closes after it.
bool ends_a_sentence(std::string_view text) {
  constexpr std::array<std::string_view, 9> kClosers{"\"", "'", ")", "”", "’", "」", "』", "）", "》"};
  constexpr std::array<std::string_view, 7> kEnds{".", "!", "?", "…", "。", "！", "？"};
  const auto ends_with = [&](std::string_view mark) { return text.ends_with(mark); };
  for (auto at = std::ranges::find_if(kClosers, ends_with); at != kClosers.end();
       at = std::ranges::find_if(kClosers, ends_with))
    text.remove_suffix(at->size());
  return std::ranges::any_of(kEnds, ends_with);
}

}  // namespace

std::string shown_abstract(std::string_view abstract) {
  if (utf8_length(abstract).value_or(0) < article::kAbstractCodePoints || ends_a_sentence(abstract))
    return std::string(abstract);
  constexpr std::size_t kLongestWord = 30;  // bytes; scripts without spaces are cut where they are
  const auto space = abstract.find_last_of(' ');
  if (space != abstract.npos && abstract.size() - space <= kLongestWord && space > 0)
    abstract = abstract.substr(0, space);
  return std::string(abstract) + (ends_a_sentence(abstract) ? "" : "…");
}

Html with_time(const Visit& visit, std::string_view key, WallTime time) {
  // Texts hold no such byte, so that it shows where the element belongs.
  constexpr std::string_view kMark = "\x01";
  const auto text = visit.words()(key, {{"when", kMark}});
  const auto at = text.find(kMark);
  Html out;
  if (at == text.npos) return out(text), out;
  out(std::string_view(text).substr(0, at), time_element(visit, time), std::string_view(text).substr(at + 1));
  return out;
}

Html counted_element(const Visit& visit, std::string_view what, std::int64_t n) {
  Html out;
  out("<span class=\"num\" data-testid=\""_html, what, "\""_html, n == 0 ? " data-none"_html : ""_html,
      " title=\""_html, exact_number(n), "\">"_html, visit.words().counted(what, n), "</span>"_html);
  return out;
}

Page hot_page(const Visit& visit, const HotList& list) {
  const Words& words = visit.words();
  Page page;
  page.description = words("list.hot_description");
  page.here = "hot";
  page.canonical = hot_address(list.page);
  page.body("<h1 class=\"page-title\">"_html, words("list.hot_title"), "</h1>\n"_html);
  if (list.rows.empty()) {
    page.body(empty_list(words, "list.empty_hot", "/newest", "list.see_newest"));
  } else {
    rows(page.body, visit, list.rows, true);
  }
  hot_foot(page.body, visit, list);
  return page;
}

Page newest_page(const Visit& visit, const NewestList& list) {
  const Words& words = visit.words();
  Page page;
  page.title = words("list.newest_title");
  page.description = words("list.newest_description");
  page.here = "newest";
  if (list.first) page.canonical = "/newest";
  page.body("<h1 class=\"page-title\">"_html, words("list.newest_title"), "</h1>\n"_html);
  if (list.rows.empty()) {
    page.body(empty_list(words, "list.empty_newest", "/write", "list.write_first"));
  } else {
    rows(page.body, visit, list.rows, false);
  }
  page.body("<div class=\"list-foot\">"_html);
  if (!list.first)
    page.body("<a class=\"button\" rel=\"prev\" href=\"/newest\">"_html, words("list.first"), "</a>"_html);
  if (!list.next.empty())
    page.body("<a class=\"button\" rel=\"next\" data-testid=\"more\" href=\""_html, list.next, "\">"_html,
              words("list.more"), "</a>"_html);
  page.body("</div>\n"_html);
  return page;
}

}  // namespace weir::site::pages

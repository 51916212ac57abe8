// An article's page. From plain values to HTML.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "site/interaction/interaction.h"
#include "site/pages/frame.h"
#include "site/pages/markdown.h"
#include "site/pages/visit.h"
#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::site::pages {

// How an article is laid out, as it is cached: the part of its page that is the same for everybody.
struct LaidOut {
  Rendered text;
  std::string_view language;  // of the content, as a `lang` value
  std::size_t weight() const { return sizeof(*this) + text.weight(); }
};
LaidOut lay_out(std::string_view markdown, const Clock& clock = Clock::system());

struct ArticleView {
  Id id = 0, author_id = 0;
  std::string title, abstract, author;
  WallTime published{}, updated{};
  std::optional<interaction::Counts> counts;  // nothing: they couldn't be had
  std::optional<interaction::Mine> mine{};    // of the reader who is signed in
  std::shared_ptr<const LaidOut> text;
};
Page article_page(const Visit& visit, const ArticleView& article);

}  // namespace weir::site::pages

// Markdown to HTML by cmark-gfm in its safe mode, with GitHub's extensions: tables, strikethrough, bare
// links, task lists.
//
// It promises: whatever the text, the HTML holds no script, no raw HTML of the author's, and no link or
// picture whose address is of a dangerous kind (javascript:, data: and the like); every element that is
// opened is closed. And whatever the text, it ends: cmark-gfm 0.29 takes quadratic time, or a hundred times
// the text's memory, for texts made to hurt it (thousands of empty table cells, "![[]()" again and again),
// and aborts the process when it gets no memory. So it works in an arena with a budget; a text that exceeds
// it is shown as it was written.
//
// Thread-safe, but one text at a time: cmark-gfm keeps tables of the parser's state that all threads share.
// Blocks, so it belongs on a pool of one thread. An article of 10 KiB takes about 0.3 ms.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/clock.h"

namespace weir::site::pages {

struct Heading {
  int level = 2;     // 2..6: a page's only h1 is its title, so that the highest level that a text uses is h2
  std::string slug;  // the id of the element; begins with "s-", so that it is never an id of the page's own
  std::string text;  // plain
};

struct Rendered {
  std::string html;
  std::vector<Heading> headings;  // at most kMaxHeadings; those after them have no anchors
  bool laid_out = true;           // false: over budget, the HTML is the text as it was written
  // What it weighs in a cache, in bytes.
  std::size_t weight() const;
};

inline constexpr std::size_t kMaxHeadings = 1000;
inline constexpr std::size_t kMaxSlugBytes = 120;

struct RenderBudget {
  std::size_t bytes = std::size_t{256} << 20;  // ordinary texts take 10 to 50 times their size
  std::chrono::milliseconds time{2'000};
};

Rendered render_markdown(std::string_view markdown, const RenderBudget& budget = {},
                         const Clock& clock = Clock::system());

}  // namespace weir::site::pages

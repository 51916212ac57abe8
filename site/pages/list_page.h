// The hot list and the newest: rows of articles. From plain values to HTML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "site/interaction/interaction.h"
#include "site/pages/frame.h"
#include "site/pages/visit.h"
#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::site::pages {

struct ListRow {
  int rank = 0;  // 0: the list has no ranks
  Id id = 0;
  std::string title, abstract, author;
  std::optional<WallTime> published;
  std::optional<interaction::Counts> counts;  // nothing: they couldn't be had
};

struct HotList {
  std::vector<ListRow> rows;
  std::optional<WallTime> computed;
  bool stale = false;
  int page = 1;
  bool more = false;  // there is a next page
};
Page hot_page(const Visit& visit, const HotList& list);

struct NewestList {
  std::vector<ListRow> rows;
  bool first = true;   // it begins with the newest
  std::string next{};  // address of what is older; empty: that is all
};
Page newest_page(const Visit& visit, const NewestList& list);

// An abstract as it is shown: one that was cut ends at a word, with an ellipsis.
std::string shown_abstract(std::string_view abstract);
// The text of `key` with {when} replaced by a <time> element.
Html with_time(const Visit& visit, std::string_view key, WallTime time);
// <span title="12,345">12.3k reads</span>
Html counted_element(const Visit& visit, std::string_view what, std::int64_t n);

}  // namespace weir::site::pages

// The pages that scripts fill: signing in and up, writing, what is mine.
#pragma once

#include <optional>
#include <string_view>

#include "site/pages/frame.h"
#include "site/pages/visit.h"
#include "weir/base/id.h"

namespace weir::site::pages {

// `next`: where to go afterwards, an address on this site.
Page sign_in_page(const Visit& visit, std::string_view next);
Page sign_up_page(const Visit& visit, std::string_view next);

// A new article, or the one with the id.
Page write_page(const Visit& visit, std::optional<Id> article);

// "articles", "collections" or "history".
Page mine_page(const Visit& visit, std::string_view list);

}  // namespace weir::site::pages

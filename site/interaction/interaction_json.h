// Interactions as JSON: what the routes answer, and the schemas that describe it.
#pragma once

#include <string>
#include <string_view>

#include "site/interaction/interaction_service.h"
#include "weir/http/router.h"

namespace weir::site::interaction {

// {"biz":..,"biz_id":..,"read_count":..,..} of one thing.
std::string view_json(std::string_view biz, Id biz_id, const InteractionService::View& view);
// {"items":[..]}, in the order of the ids.
std::string views_json(std::string_view biz, const std::vector<Id>& ids,
                       const std::vector<InteractionService::View>& views);
std::string folder_json(const Folder& folder);
// Lists with `next_cursor` and `total` where they apply; an empty cursor is left out.
std::string folders_json(const Listing<Folder>& listing, std::string_view next_cursor);
// `time_name` is what the entries' time is called: "collected_at", "read_at".
std::string entries_json(const Listing<InteractionService::TitledEntry>& listing, std::string_view time_name,
                         std::string_view next_cursor);

void add_schemas(http::Router& router);

}  // namespace weir::site::interaction

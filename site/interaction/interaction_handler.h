// The interactions' routes: counts, reads, likes, collections with their folders, and the history.
#pragma once

#include "site/interaction/interaction_service.h"
#include "weir/http/router.h"

namespace weir::site::interaction {

// The service must outlive the router.
void add_routes(http::Router& router, InteractionService& interactions);

}  // namespace weir::site::interaction

// The rankings' route.
#pragma once

#include "site/ranking/ranking_service.h"
#include "weir/http/router.h"

namespace weir::site::ranking {

// The service must outlive the router.
void add_routes(http::Router& router, RankingService& rankings);

}  // namespace weir::site::ranking

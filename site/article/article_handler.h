// The doors of the article module: /v1/articles and /v1/me/articles.
#pragma once

#include "site/article/article_service.h"
#include "site/interaction/interaction_service.h"
#include "site/user/user_service.h"
#include "weir/http/router.h"

namespace weir::site::article {

// Adds the routes and their schemas. The services must outlive the server that serves the router.
void add_routes(http::Router& router, ArticleService& articles, user::UserService& users,
                interaction::InteractionService& interactions);

}  // namespace weir::site::article

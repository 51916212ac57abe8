// The doors of the user module: /v1/users, /v1/sessions and /v1/me.
#pragma once

#include "site/user/user_service.h"
#include "weir/http/router.h"
#include "weir/http/server.h"

namespace weir::site::user {

// Adds the routes and their schemas. The service must outlive the router.
void add_routes(http::Router& router, UserService& service);

// Who shows this token (a bearer's, or the value of the cookie `weir_session`), for the server.
http::Authenticator authenticator(const UserService& service);

}  // namespace weir::site::user

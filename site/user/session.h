// The domain of sessions: what one sign-in opened, and the tokens that stand for it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::site::user {

// How somebody comes in: a program that keeps tokens, or a page whose browser keeps a cookie.
enum class Entrance { tokens, page };

// Who makes a request: what a valid access token or page cookie says.
struct Caller {
  Id user_id = 0;
  std::string session;
  bool admin = false;

  bool operator==(const Caller&) const = default;
};

// A live session, with its user's roles as the store has them now.
struct Session {
  std::string id;  // 128 random bits in base64url
  Id user_id = 0;
  std::vector<std::string> roles;
};

// What a sign-in or refresh hands out; `tokens` fills the first two, `page` the third.
struct SignedIn {
  Id user_id = 0;
  std::string access_token;
  std::string refresh_token;
  std::string page_token;           // the cookie's value
  std::chrono::seconds lifetime{};  // of the access token, or of the cookie
};

}  // namespace weir::site::user

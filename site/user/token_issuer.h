// TokenIssuer: the signed tokens by which a request says who makes it. HS256, the algorithm fixed by the
// server.
//
// Two types that can't be taken for each other: an access token (lives access_ttl) for programs, and a page
// token (lives refresh_ttl), the value of the cookie, for browsers. Claims: `sub` the user's id in decimal,
// `sid` the session, `adm` whether an admin, `typ` "access" or "page", `iat` and `exp` in seconds.
//
// A page token lives long, but the admin's rights in it don't: they end access_ttl after it was issued, as
// they do in an access token, until the page renews its cookie. So whoever loses the role loses it within
// access_ttl.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "site/user/session.h"
#include "weir/base/clock.h"

namespace weir::site::user {

class TokenIssuer {
 public:
  TokenIssuer(std::string secret, std::chrono::seconds access_ttl, std::chrono::seconds refresh_ttl);

  std::string access_token(const Session& session, WallTime now) const;
  std::string page_token(const Session& session, WallTime now) const;

  struct Verified {
    Caller caller;
    Entrance entrance = Entrance::tokens;
    WallTime issued_at{};
  };
  // Nothing when the token is foreign, damaged or expired. About 3 us. Whether a page's session still lives
  // is not the token's to say.
  std::optional<Verified> verify(std::string_view token, WallTime now) const;

 private:
  std::string sign(const Session& session, std::string_view type, WallTime now,
                   std::chrono::seconds ttl) const;

  const std::string secret_;
  const std::chrono::seconds access_ttl_, refresh_ttl_;
};

}  // namespace weir::site::user

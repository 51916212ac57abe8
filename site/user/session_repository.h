// SessionRepository: where sessions come from: memory for "has this page session ended?", which every request
// with a cookie asks, and the store for the rest. It also makes the tokens' random parts.
//
// Memory learns of ends from this process, and from the store at start: a session that another process ends
// meanwhile is refused here from the next start on. One serving process a data directory is the rule today.
// Thread-safe.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "site/user/ended_sessions.h"
#include "site/user/session.h"
#include "site/user/session_store.h"
#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::site::user {

class SessionRepository {
 public:
  // A session, and the refresh token that was made for it (empty for a page).
  struct Opened {
    Session session;
    std::string refresh_token;
  };

  // Blocks while it reads which page sessions have ended.
  SessionRepository(SessionStore& store, std::chrono::seconds refresh_ttl,
                    const Clock& clock = Clock::system());

  boost::asio::awaitable<Opened> open(Id user_id, std::vector<std::string> roles, Entrance entrance,
                                      WallTime now);
  // Uses the refresh token up. Nothing when it isn't live; if it was used before, its session has ended now.
  boost::asio::awaitable<std::optional<Opened>> rotate(std::string refresh_token, Entrance entrance,
                                                       WallTime now);
  boost::asio::awaitable<std::optional<Session>> renew_page(std::string session, WallTime now);
  boost::asio::awaitable<void> end(std::string session, WallTime now);

  // Whether a cookie of the page session that was issued then must be refused. Synchronous.
  bool page_ended(const std::string& session, WallTime issued_at) const;

  // The secret that signs tokens, made at the first call ever. Blocks.
  std::string signing_secret_now();

 private:
  SessionStore& store_;
  const std::chrono::seconds refresh_ttl_;
  EndedSessions ended_;
};

}  // namespace weir::site::user

// SessionStore: sessions and the signing secret in SQL.
//
// A session is one row: the digest of the one refresh token that works now, and until when. A token that
// names the session and isn't that one has been used before (its holder couldn't know the session's 128
// random bits otherwise), so reuse is noticed without keeping old tokens.
//
// Thread-safe. Throws sql::Error when the store fails.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "site/user/session.h"
#include "weir/base/clock.h"
#include "weir/base/id.h"
#include "weir/sql/database.h"

namespace weir::site::user {

struct NewSession {
  std::string id;
  Id user_id = 0;
  std::string refresh_digest;
  bool page = false;  // a cookie stands for it
  WallTime created_at{}, expires_at{};
};

struct Rotation {
  std::string session;
  std::string old_digest, new_digest;
  bool page = false;
  WallTime now{}, expires_at{};
};

// The session when the token was the right one. Otherwise nothing, and `ended_page` says that this use ended
// a session which a cookie stands for.
struct Rotated {
  std::optional<Session> session;
  bool ended_page = false;
};

struct EndedSession {
  std::string id;
  WallTime ended_at;
};

class SessionStore {
 public:
  // Each new session clears away at most so many expired ones, so that the table needs no job to stay small.
  static constexpr int kPrunedPerInsert = 16;

  // Brings the tables up to date; blocks. The database must outlive the store.
  explicit SessionStore(sql::Database& database);

  boost::asio::awaitable<void> insert(NewSession session);
  // Compares and sets the digest in one transaction; a wrong one ends the session.
  boost::asio::awaitable<Rotated> rotate(Rotation rotation);
  // Moves the expiry of a live page session; nothing when it isn't one.
  boost::asio::awaitable<std::optional<Session>> renew_page(std::string id, WallTime now,
                                                            WallTime expires_at);
  // Ends a live session; true when a cookie stood for it.
  boost::asio::awaitable<bool> end(std::string id, WallTime now);

  // These block; not for I/O threads.
  // Page sessions that were ended after that time: the latest `limit`, oldest first.
  std::vector<EndedSession> ended_pages_now(WallTime since, std::size_t limit);
  // The secret of that name; `fresh` is kept as such when there is none yet.
  std::string secret_now(std::string_view name, std::string_view fresh);

 private:
  sql::Database& database_;
};

}  // namespace weir::site::user

#include "site/user/session_store.h"

#include <algorithm>
#include <array>

#include "site/user/roles_column.h"

namespace weir::site::user {
namespace {

const std::array kMigrations{sql::Migration{1, "sessions and secrets", R"sql(
  CREATE TABLE sessions (
    id             TEXT PRIMARY KEY,
    user_id        INTEGER NOT NULL,
    refresh_digest TEXT NOT NULL,
    page           INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    ended_at       INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_expiry ON sessions (expires_at);
  CREATE INDEX sessions_by_end ON sessions (ended_at);
  CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
)sql",
                                            R"sql(
  CREATE TABLE sessions (
    id             VARCHAR(64) NOT NULL PRIMARY KEY,
    user_id        BIGINT NOT NULL,
    refresh_digest VARCHAR(128) NOT NULL,
    page           TINYINT NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT NOT NULL,
    ended_at       BIGINT
  );
  CREATE INDEX sessions_by_expiry ON sessions (expires_at);
  CREATE INDEX sessions_by_end ON sessions (ended_at);
  CREATE TABLE secrets (
    name  VARCHAR(64) NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
  );
)sql"}};

const sql::Query kExpired{"user", "expired_sessions",
                          "SELECT id FROM sessions WHERE expires_at < ? ORDER BY expires_at LIMIT ?"};
const sql::Query kDelete{"user", "delete_session", "DELETE FROM sessions WHERE id = ? AND expires_at < ?"};
const sql::Query kInsert{"user", "insert_session",
                         "INSERT INTO sessions (id, user_id, refresh_digest, page, created_at, expires_at) "
                         "VALUES (?, ?, ?, ?, ?, ?)"};
const sql::Query kRotate{"user", "rotate_session",
                         "UPDATE sessions SET refresh_digest = ?, page = (page OR ?), expires_at = ? "
                         "WHERE id = ? AND refresh_digest = ? AND ended_at IS NULL AND expires_at > ?"};
const sql::Query kRenew{"user", "renew_session",
                        "UPDATE sessions SET expires_at = ? "
                        "WHERE id = ? AND page = 1 AND ended_at IS NULL AND expires_at > ?"};
const sql::Query kEndReused{"user", "end_reused_session",
                            "UPDATE sessions SET ended_at = ? WHERE id = ? AND refresh_digest <> ? AND "
                            "ended_at IS NULL AND expires_at > ?"};
const sql::Query kEnd{"user", "end_session",
                      "UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL"};
const sql::Query kIsPage{"user", "is_page_session", "SELECT page FROM sessions WHERE id = ?"};
const sql::Query kSession{"user", "find_session",
                          "SELECT sessions.id, users.id, users.roles FROM sessions "
                          "JOIN users ON users.id = sessions.user_id WHERE sessions.id = ?"};
const sql::Query kEndedPages{"user", "ended_page_sessions",
                             "SELECT id, ended_at FROM sessions WHERE ended_at > ? AND page = 1 "
                             "ORDER BY ended_at DESC LIMIT ?"};
const sql::Query kKeepSecret{"user", "keep_secret",
                             "INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
                             "INSERT INTO secrets (name, value) VALUES (?, ?) "
                             "ON DUPLICATE KEY UPDATE value = value"};
const sql::Query kSecret{"user", "secret", "SELECT value FROM secrets WHERE name = ?"};

Session read_session(const sql::Row& row) {
  return {row.get<std::string>(0), row.get<Id>(1), read_roles(row, 2)};
}

bool is_page(sql::Session& session, const std::string& id) {
  return session.one(kIsPage, sql::first<bool>, id).value_or(false);
}

Rotated rotate_in(sql::Session& session, const Rotation& r) {
  const auto changes =
      session.execute(kRotate, r.new_digest, r.page, r.expires_at, r.session, r.old_digest, r.now);
  if (changes.rows == 1) return {session.one(kSession, read_session, r.session), false};
  const bool ended = session.execute(kEndReused, r.now, r.session, r.old_digest, r.now).rows == 1;
  return {std::nullopt, ended && is_page(session, r.session)};
}

}  // namespace

SessionStore::SessionStore(sql::Database& database) : database_(database) {
  database_.migrate("session", kMigrations);
}

boost::asio::awaitable<void> SessionStore::insert(NewSession s) {
  // Looked for outside of the write: within it MySQL would lock what was read, and every sign-in reads the same
  // rows. In the order of their ids, and after the insert, so that no two writes wait for each other.
  auto expired = co_await database_.read([now = s.created_at](sql::Session& session) {
    return session.all(kExpired, sql::first<std::string>, now, kPrunedPerInsert);
  });
  std::ranges::sort(expired);
  co_await database_.write([s = std::move(s), expired = std::move(expired)](sql::Session& session) {
    session.execute(kInsert, s.id, s.user_id, s.refresh_digest, s.page, s.created_at, s.expires_at);
    for (const auto& id : expired) session.execute(kDelete, id, s.created_at);
  });
}

boost::asio::awaitable<Rotated> SessionStore::rotate(Rotation rotation) {
  // The wrong token's answer is a value: an exception would undo the ending of the session.
  co_return co_await database_.write(
      [rotation = std::move(rotation)](sql::Session& session) { return rotate_in(session, rotation); });
}

boost::asio::awaitable<std::optional<Session>> SessionStore::renew_page(std::string id, WallTime now,
                                                                        WallTime expires_at) {
  co_return co_await database_.write(
      [id = std::move(id), now, expires_at](sql::Session& session) -> std::optional<Session> {
        if (session.execute(kRenew, expires_at, id, now).rows == 0) return std::nullopt;
        return session.one(kSession, read_session, id);
      });
}

boost::asio::awaitable<bool> SessionStore::end(std::string id, WallTime now) {
  co_return co_await database_.write([id = std::move(id), now](sql::Session& session) {
    return session.execute(kEnd, now, id).rows == 1 && is_page(session, id);
  });
}

std::vector<EndedSession> SessionStore::ended_pages_now(WallTime since, std::size_t limit) {
  auto ended = database_.read_now([&](sql::Session& session) {
    const auto read = [](const sql::Row& row) {
      return EndedSession{row.get<std::string>(0), row.get<WallTime>(1)};
    };
    return session.all(kEndedPages, read, since, limit);
  });
  std::ranges::reverse(ended);
  return ended;
}

std::string SessionStore::secret_now(std::string_view name, std::string_view fresh) {
  return database_.write_now([&](sql::Session& session) {
    session.execute(kKeepSecret, name, fresh);
    return session.one(kSecret, sql::first<std::string>, name).value();
  });
}

}  // namespace weir::site::user

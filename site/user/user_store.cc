#include "site/user/user_store.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "site/user/roles_column.h"
#include "weir/sql/placeholders.h"

namespace weir::site::user {
namespace {

const std::array kMigrations{sql::Migration{1, "users", R"sql(
  CREATE TABLE users (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    email         TEXT UNIQUE,
    phone         TEXT UNIQUE,
    origin        TEXT UNIQUE,
    password_hash TEXT,
    nickname      TEXT NOT NULL,
    about         TEXT NOT NULL,
    birthday      TEXT,
    roles         TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
  ) STRICT;
)sql",
                                            R"sql(
  CREATE TABLE users (
    id            BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    email         VARCHAR(254) UNIQUE,
    phone         VARCHAR(64) UNIQUE,
    origin        VARCHAR(255) UNIQUE,
    password_hash VARCHAR(255),
    nickname      VARCHAR(64) NOT NULL,
    about         VARCHAR(1024) NOT NULL,
    birthday      VARCHAR(10),
    roles         TEXT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
  );
)sql"}};

#define WEIR_USER_COLUMNS "id, email, phone, nickname, about, birthday, roles, created_at"
const sql::Query kFind{"user", "find", "SELECT " WEIR_USER_COLUMNS " FROM users WHERE id = ?"};
const std::string kFindAll = "SELECT " WEIR_USER_COLUMNS " FROM users WHERE id IN (";
#undef WEIR_USER_COLUMNS
const sql::Query kCredentials{"user", "credentials",
                              "SELECT id, roles, password_hash FROM users WHERE email = ?"};
const sql::Query kEmailExists{"user", "email_exists", "SELECT 1 FROM users WHERE email = ?"};
const sql::Query kInsert{
    "user", "insert",
    "INSERT INTO users (email, phone, origin, password_hash, nickname, about, roles, created_at, updated_at) "
    "VALUES (?, ?, ?, ?, ?, ?, '[]', ?, ?)"};
// Comparing with NULL finds nobody, which is what is meant.
const sql::Query kFindByKeys{
    "user", "find_by_keys",
    "SELECT id FROM users WHERE email = ? UNION ALL SELECT id FROM users WHERE phone = ? "
    "UNION ALL SELECT id FROM users WHERE origin = ? LIMIT 1"};
const sql::Query kUpdate{"user", "update",
                         "UPDATE users SET nickname = coalesce(?, nickname), about = coalesce(?, about), "
                         "birthday = CASE WHEN ? THEN ? ELSE birthday END, updated_at = ? WHERE id = ?"};
// Read to be changed: locked at once, because two that had both read it couldn't change it.
const sql::Query kRolesOf{"user", "roles", "SELECT id, roles FROM users WHERE email = ?",
                          "SELECT id, roles FROM users WHERE email = ? FOR UPDATE"};
const sql::Query kSetRoles{"user", "set_roles", "UPDATE users SET roles = ?, updated_at = ? WHERE id = ?"};

User read_user(const sql::Row& row) {
  User user;
  user.id = row.get<Id>(0);
  user.email = row.get<std::optional<std::string>>(1);
  user.phone = row.get<std::optional<std::string>>(2);
  user.nickname = row.get<std::string>(3);
  user.about = row.get<std::string>(4);
  user.birthday = row.get<std::optional<std::string>>(5);
  user.roles = read_roles(row, 6);
  user.created_at = row.get<WallTime>(7);
  return user;
}

Id run_insert(sql::Session& session, const NewUser& user) {
  return session
      .execute(kInsert, user.email, user.phone, user.origin, user.password_hash, user.nickname, user.about,
               user.created_at, user.created_at)
      .last_id;
}

Id insert_or_find(sql::Session& session, const NewUser& user) {
  try {
    return run_insert(session, user);
  } catch (const sql::Error& error) {
    if (error.kind() != sql::ErrorKind::unique_violation) throw;
  }
  const auto id = session.one(kFindByKeys, sql::first<Id>, user.email, user.phone, user.origin);
  if (!id) throw sql::Error(sql::ErrorKind::constraint, "user.insert: refused, and nobody has its keys");
  return *id;
}

}  // namespace

UserStore::UserStore(sql::Database& database) : database_(database) {
  database_.migrate("user", kMigrations);
}

boost::asio::awaitable<std::optional<User>> UserStore::find(Id id) {
  co_return co_await database_.read(
      [id](sql::Session& session) { return session.one(kFind, read_user, id); });
}

boost::asio::awaitable<std::vector<User>> UserStore::find_all(std::vector<Id> ids) {
  if (ids.empty()) co_return std::vector<User>{};
  co_return co_await database_.read([ids = std::move(ids)](sql::Session& session) {
    const sql::Query query{"user", "find_all", kFindAll + sql::placeholders(ids.size()) + ")"};
    return session.all_of(query, std::vector<sql::Value>(ids.begin(), ids.end()), read_user);
  });
}

boost::asio::awaitable<std::optional<Credentials>> UserStore::find_credentials(std::string email) {
  co_return co_await database_.read([email = std::move(email)](sql::Session& session) {
    return session.one(
        kCredentials,
        [](const sql::Row& row) {
          return Credentials{row.get<Id>(0), read_roles(row, 1), row.get<std::optional<std::string>>(2)};
        },
        email);
  });
}

boost::asio::awaitable<std::optional<Id>> UserStore::insert(NewUser user) {
  try {
    co_return co_await database_.write(
        [user = std::move(user)](sql::Session& session) { return std::optional(run_insert(session, user)); });
  } catch (const sql::Error& error) {
    if (error.kind() != sql::ErrorKind::unique_violation) throw;
  }
  co_return std::nullopt;
}

boost::asio::awaitable<std::optional<User>> UserStore::update(Id id, ProfileChange change, WallTime now) {
  co_return co_await database_.write([id, change = std::move(change), now](sql::Session& session) {
    const std::optional<std::string> birthday = change.birthday.value_or(std::nullopt);
    session.execute(kUpdate, change.nickname, change.about, change.birthday.has_value(), birthday, now, id);
    return session.one(kFind, read_user, id);
  });
}

bool UserStore::email_exists_now(std::string_view email) {
  return database_
      .read_now([email](sql::Session& session) { return session.one(kEmailExists, sql::first<int>, email); })
      .has_value();
}

std::vector<Id> UserStore::insert_all_now(std::span<const NewUser> users) {
  return database_.write_now([users](sql::Session& session) {
    std::vector<Id> ids;
    ids.reserve(users.size());
    for (const NewUser& user : users) ids.push_back(insert_or_find(session, user));
    return ids;
  });
}

std::optional<Id> UserStore::set_role_now(std::string_view email, std::string_view role, bool held,
                                          WallTime now) {
  return database_.write_now([&](sql::Session& session) -> std::optional<Id> {
    const auto read = [](const sql::Row& row) { return std::pair(row.get<Id>(0), read_roles(row, 1)); };
    auto found = session.one(kRolesOf, read, email);
    if (!found) return std::nullopt;
    auto& [id, roles] = *found;
    std::erase(roles, role);
    if (held) roles.emplace_back(role);
    session.execute(kSetRoles, roles_value(roles), now, id);
    return id;
  });
}

}  // namespace weir::site::user

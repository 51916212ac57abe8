// UserStore: people in SQL. One table; email, phone and origin are unique where they are not NULL.
//
// Thread-safe. Throws sql::Error when the store fails; a value that is taken is an outcome, not an error.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/user/user.h"
#include "weir/base/id.h"
#include "weir/sql/database.h"

namespace weir::site::user {

// What signing in needs to know.
struct Credentials {
  Id user_id = 0;
  std::vector<std::string> roles;
  std::optional<std::string> password_hash;
};

class UserStore {
 public:
  // One statement asks for at most this many users, and one transaction writes at most this many: a bulk must
  // not keep other writes waiting for long.
  static constexpr std::size_t kMaxBatch = 1'000;

  // Brings the tables up to date; blocks. The database must outlive the store.
  explicit UserStore(sql::Database& database);

  boost::asio::awaitable<std::optional<User>> find(Id id);
  // Those who exist, in any order; ids.size() <= kMaxBatch.
  boost::asio::awaitable<std::vector<User>> find_all(std::vector<Id> ids);
  boost::asio::awaitable<std::optional<Credentials>> find_credentials(std::string email);

  // The new id, or nothing when the email, phone or origin is taken.
  boost::asio::awaitable<std::optional<Id>> insert(NewUser user);
  // The profile after the change, or nothing when there is no such user.
  boost::asio::awaitable<std::optional<User>> update(Id id, ProfileChange change, WallTime now);

  // These block; not for I/O threads.
  bool email_exists_now(std::string_view email);
  // Ids in the order given; who is there already keeps what they have. users.size() <= kMaxBatch.
  std::vector<Id> insert_all_now(std::span<const NewUser> users);
  // The id of the user whose roles were set, or nothing when nobody has that email.
  std::optional<Id> set_role_now(std::string_view email, std::string_view role, bool held, WallTime now);

 private:
  sql::Database& database_;
};

}  // namespace weir::site::user

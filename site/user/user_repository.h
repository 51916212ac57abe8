// UserRepository: where people come from: the cache "user" by id first, the store second.
//
// Cached is the profile by its id, which every page with a nickname on it asks for. What maps an email to a
// user is not: few sign in twice within a TTL, and a password's hash has no business in a cache. Thread-safe.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/user/user.h"
#include "site/user/user_store.h"
#include "weir/base/clock.h"
#include "weir/base/id.h"
#include "weir/cache/read_through.h"

namespace weir::cache {
class RemoteLevels;
}

namespace weir::site::user {

class UserRepository {
 public:
  using UserPtr = std::shared_ptr<const User>;  // null: there is certainly no such user

  struct Options {
    std::size_t capacity = std::size_t{16} << 20;  // bytes of the cache
    // How long a change by another process (`weir admin grant`) may stay unseen that can't tell.
    std::chrono::milliseconds ttl{std::chrono::minutes(5)};
    const Clock* clock = &Clock::system();
    const cache::RemoteLevels* remote = nullptr;  // none: this process alone
  };

  // Loads run on `loads`. The store must outlive the repository and what runs there.
  UserRepository(UserStore& store, Options options, boost::asio::any_io_executor loads);

  boost::asio::awaitable<UserPtr> get(Id id);
  // Nothing: not known here.
  std::optional<UserPtr> find(Id id);
  boost::asio::awaitable<std::vector<UserPtr>> get_all(std::span<const Id> ids);
  boost::asio::awaitable<std::optional<Credentials>> find_credentials(std::string email);

  // Nothing: the email (or phone, or origin) is taken.
  boost::asio::awaitable<std::optional<Id>> insert(NewUser user);
  // The profile after the change; null when there is no such user.
  boost::asio::awaitable<UserPtr> update(Id id, ProfileChange change, WallTime now);
  // Tells what roles the store has just shown, so that a cached profile with others is dropped.
  boost::asio::awaitable<void> note_roles(Id id, std::vector<std::string> roles);

  // Ends waits for loads; before their executors go.
  void stop() { cache_.stop(); }

  // These block; not for I/O threads.
  bool email_exists_now(std::string_view email);
  // In transactions of at most UserStore::kMaxBatch; ids in the order given.
  std::vector<Id> insert_all_now(std::span<const NewUser> users);
  // False when nobody has that email.
  bool set_role_now(std::string_view email, std::string_view role, bool held, WallTime now);

 private:
  // After a commit, for who may block.
  void forget_now(std::vector<Id> ids);

  UserStore& store_;
  const boost::asio::any_io_executor loads_;
  cache::ReadThrough<Id, User> cache_;
};

}  // namespace weir::site::user

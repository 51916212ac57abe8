#include "site/user/user_repository.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <utility>

#include "site/user/user_codec.h"
#include "weir/base/offload.h"
#include "weir/cache/remote_levels.h"

namespace weir::site::user {
namespace {

std::size_t weight_of(const Id& /*id*/, const User& user) {
  std::size_t bytes = sizeof(User) + user.nickname.capacity() + user.about.capacity();
  for (const auto* text : {&user.email, &user.phone, &user.birthday})
    if (*text) bytes += (*text)->capacity();
  for (const auto& role : user.roles) bytes += sizeof(std::string) + role.capacity();
  return bytes;
}

cache::ReadThrough<Id, User>::Options cache_options(UserStore& store,
                                                    const UserRepository::Options& options) {
  cache::ReadThrough<Id, User>::Options out;
  out.name = "user";
  out.capacity = options.capacity;
  out.ttl = options.ttl;
  out.clock = options.clock;
  out.max_bulk = UserStore::kMaxBatch;
  out.weigher = weight_of;
  out.bulk_load = [&store](std::vector<Id> ids) -> boost::asio::awaitable<std::vector<std::pair<Id, User>>> {
    std::vector<std::pair<Id, User>> found;
    for (User& user : co_await store.find_all(std::move(ids))) found.emplace_back(user.id, std::move(user));
    co_return found;
  };
  if (options.remote != nullptr) options.remote->give(out, user_codec(), {.version = kUserFormat});
  return out;
}

}  // namespace

UserRepository::UserRepository(UserStore& store, Options options, boost::asio::any_io_executor loads)
    : store_(store),
      loads_(loads),
      cache_(cache_options(store, options), [&store](Id id) { return store.find(id); }, std::move(loads)) {}

boost::asio::awaitable<UserRepository::UserPtr> UserRepository::get(Id id) {
  auto found = co_await cache_.get(id);
  co_return std::move(found.value);
}

std::optional<UserRepository::UserPtr> UserRepository::find(Id id) {
  auto found = cache_.find(id);
  if (!found) return std::nullopt;
  return std::move(found->value);
}

boost::asio::awaitable<std::vector<UserRepository::UserPtr>> UserRepository::get_all(
    std::span<const Id> ids) {
  auto found = co_await cache_.get_all(ids);
  std::vector<UserPtr> users;
  users.reserve(found.size());
  for (auto& each : found) users.push_back(std::move(each.value));
  co_return users;
}

boost::asio::awaitable<std::optional<Credentials>> UserRepository::find_credentials(std::string email) {
  return store_.find_credentials(std::move(email));
}

boost::asio::awaitable<std::optional<Id>> UserRepository::insert(NewUser user) {
  co_await without_cancellation();
  const auto id = co_await store_.insert(std::move(user));
  if (id) co_await cache_.invalidate_all({*id});  // its absence may have been cached
  co_return id;
}

boost::asio::awaitable<UserRepository::UserPtr> UserRepository::update(Id id, ProfileChange change,
                                                                       WallTime now) {
  co_await without_cancellation();
  auto updated = co_await store_.update(id, std::move(change), now);
  if (!updated) co_return nullptr;
  co_await cache_.invalidate_all({id});
  co_return std::make_shared<const User>(std::move(*updated));
}

boost::asio::awaitable<void> UserRepository::note_roles(Id id, std::vector<std::string> roles) {
  const auto cached = cache_.find(id);
  if (cached && (!*cached || (*cached)->roles != roles)) co_await cache_.invalidate_all({id});
}

void UserRepository::forget_now(std::vector<Id> ids) {
  boost::asio::co_spawn(loads_, cache_.invalidate_all(std::move(ids)), boost::asio::use_future).get();
}

bool UserRepository::email_exists_now(std::string_view email) {
  return store_.email_exists_now(email);
}

std::vector<Id> UserRepository::insert_all_now(std::span<const NewUser> users) {
  std::vector<Id> ids;
  ids.reserve(users.size());
  while (!users.empty()) {
    const auto batch = users.first(std::min(users.size(), UserStore::kMaxBatch));
    const auto inserted = store_.insert_all_now(batch);
    forget_now(inserted);
    ids.insert(ids.end(), inserted.begin(), inserted.end());
    users = users.subspan(batch.size());
  }
  return ids;
}

bool UserRepository::set_role_now(std::string_view email, std::string_view role, bool held, WallTime now) {
  const auto id = store_.set_role_now(email, role, held, now);
  if (id) forget_now({*id});
  return id.has_value();
}

}  // namespace weir::site::user

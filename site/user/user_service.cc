#include "site/user/user_service.h"

#include <algorithm>
#include <utility>

#include "site/user/password.h"
#include "site/user/session_repository.h"
#include "site/user/token_issuer.h"
#include "site/user/user_repository.h"

namespace weir::site::user {

UserService::UserService(UserRepository& users, SessionRepository& sessions, Options options,
                         const Clock& clock)
    : users_(users),
      sessions_(sessions),
      clock_(clock),
      refresh_ttl_(options.refresh_ttl),
      access_ttl_(options.access_ttl),
      hasher_(std::make_unique<PasswordHasher>(
          PasswordHasher::Options{options.hash_threads, options.max_waiting_hashes})),
      tokens_(std::make_unique<TokenIssuer>(
          options.secret.empty() ? sessions.signing_secret_now() : options.secret, options.access_ttl,
          options.refresh_ttl)) {}

UserService::~UserService() = default;

void UserService::stop() {
  hasher_->stop();
}

boost::asio::awaitable<UserPtr> UserService::get(Id id) {
  return users_.get(id);
}

std::optional<UserPtr> UserService::find(Id id) {
  return users_.find(id);
}

boost::asio::awaitable<std::vector<UserPtr>> UserService::get_all(std::span<const Id> ids) {
  return users_.get_all(ids);
}

boost::asio::awaitable<UserPtr> UserService::change_profile(Id id, ProfileChange change) {
  if (change.empty()) co_return co_await users_.get(id);
  co_return co_await users_.update(id, std::move(change), clock_.now());
}

boost::asio::awaitable<std::optional<Id>> UserService::sign_up(SignUp sign_up) {
  NewUser user;
  user.email = normalised_email(sign_up.email);
  user.nickname = sign_up.nickname ? std::move(*sign_up.nickname) : nickname_from_email(sign_up.email);
  user.created_at = clock_.now();

  // Asked when the hash's turn has come: when a crowd wants one email, those who wait behind the winner cost
  // a look-up each and no hash. The store's UNIQUE decides in the end.
  auto still_free = [this, email = *user.email] { return !users_.email_exists_now(email); };
  user.password_hash = co_await hasher_->hash(std::move(sign_up.password), std::move(still_free));
  if (!user.password_hash) co_return std::nullopt;
  co_return co_await users_.insert(std::move(user));
}

boost::asio::awaitable<std::optional<SignedIn>> UserService::sign_in(std::string email, std::string password,
                                                                     Entrance entrance) {
  auto found = co_await users_.find_credentials(normalised_email(email));
  std::optional<std::string> hash;
  if (found) hash = std::move(found->password_hash);
  const bool right = co_await hasher_->verify(std::move(hash), std::move(password));
  if (!right) co_return std::nullopt;

  co_await users_.note_roles(found->user_id, found->roles);
  const WallTime now = clock_.now();
  const auto opened = co_await sessions_.open(found->user_id, std::move(found->roles), entrance, now);
  co_return tokens_for(opened.session, opened.refresh_token, entrance, now);
}

boost::asio::awaitable<std::optional<SignedIn>> UserService::refresh(std::string refresh_token,
                                                                     Entrance entrance) {
  const WallTime now = clock_.now();
  const auto rotated = co_await sessions_.rotate(std::move(refresh_token), entrance, now);
  if (!rotated) co_return std::nullopt;
  co_await users_.note_roles(rotated->session.user_id, rotated->session.roles);
  co_return tokens_for(rotated->session, rotated->refresh_token, entrance, now);
}

boost::asio::awaitable<std::optional<SignedIn>> UserService::renew_page(Caller caller) {
  const WallTime now = clock_.now();
  const auto session = co_await sessions_.renew_page(std::move(caller.session), now);
  if (!session) co_return std::nullopt;
  co_await users_.note_roles(session->user_id, session->roles);
  co_return tokens_for(*session, {}, Entrance::page, now);
}

boost::asio::awaitable<void> UserService::sign_out(Caller caller) {
  return sessions_.end(std::move(caller.session), clock_.now());
}

std::optional<Caller> UserService::authenticate(std::string_view token) const {
  auto verified = tokens_->verify(token, clock_.now());
  if (!verified) return std::nullopt;
  if (verified->entrance == Entrance::page &&
      sessions_.page_ended(verified->caller.session, verified->issued_at))
    return std::nullopt;
  return std::move(verified->caller);
}

std::vector<Id> UserService::create_many(std::span<const NewUser> users) {
  return users_.insert_all_now(users);
}

bool UserService::email_taken_now(std::string_view email) {
  return users_.email_exists_now(normalised_email(email));
}

std::string UserService::hash_password_now(std::string_view password) {
  return PasswordHasher::hash_now(password);
}

bool UserService::grant_admin(std::string_view email) {
  return users_.set_role_now(normalised_email(email), kAdminRole, true, clock_.now());
}

bool UserService::revoke_admin(std::string_view email) {
  return users_.set_role_now(normalised_email(email), kAdminRole, false, clock_.now());
}

SignedIn UserService::tokens_for(const Session& session, std::string refresh_token, Entrance entrance,
                                 WallTime now) const {
  SignedIn out;
  out.user_id = session.user_id;
  if (entrance == Entrance::page) {
    out.page_token = tokens_->page_token(session, now);
    out.lifetime = refresh_ttl_;
  } else {
    out.access_token = tokens_->access_token(session, now);
    out.refresh_token = std::move(refresh_token);
    out.lifetime = access_ttl_;
  }
  return out;
}

}  // namespace weir::site::user

// UserService: the business of people: signing up and in, sessions that rotate, profiles.
//
// It promises: of many sign-ups at once with one email exactly one wins; an unknown email costs the caller as
// much time as a wrong password; a refresh token works once, and showing a used one ends its session; the
// store loads a profile once however many ask. Passwords are hashed by threads of their own, a bounded number
// at a time, behind a bounded queue.
//
// Thread-safe. What goes wrong outside is an exception (weir::Unavailable: the store is away, or too many
// passwords wait to be hashed); what the business decides is a value.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/user/session.h"
#include "site/user/user.h"
#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::site::user {

class UserRepository;
class SessionRepository;
class PasswordHasher;
class TokenIssuer;

using UserPtr = std::shared_ptr<const User>;  // null: there is certainly no such user

class UserService {
 public:
  struct Options {
    std::string secret;  // signs tokens; empty: made once and kept in the store, so that all nodes agree
    std::chrono::seconds access_ttl{std::chrono::minutes(30)};
    std::chrono::seconds refresh_ttl{std::chrono::hours(24 * 7)};
    std::size_t hash_threads = 0;  // 0: one per core. Each uses 19 MiB while it hashes.
    // How many may wait for a hash, which takes about 16 ms: at most 4 seconds for two cores.
    std::size_t max_waiting_hashes = 512;
  };

  // Blocks while it reads (or makes) the secret and the ended page sessions. What it is given must outlive
  // it.
  UserService(UserRepository& users, SessionRepository& sessions, Options options,
              const Clock& clock = Clock::system());
  ~UserService();

  // Finishes the hashes that wait and refuses later ones (Unavailable). Before the executors of those who
  // wait for one are destroyed.
  void stop();

  // --- Profiles ---

  // Local cache first, then the store; null when there is no such user.
  boost::asio::awaitable<UserPtr> get(Id id);
  // What the local cache knows, without waiting: nothing = not known here; a null pointer = no such user.
  std::optional<UserPtr> find(Id id);
  // Profiles in the order of `ids` (null for who isn't there); one statement for all that the cache lacks.
  // The ids must live until it is done.
  boost::asio::awaitable<std::vector<UserPtr>> get_all(std::span<const Id> ids);
  // Writes what the change names and returns the profile as it is now; null when there is no such user.
  boost::asio::awaitable<UserPtr> change_profile(Id id, ProfileChange change);

  // --- Signing up and in ---

  struct SignUp {
    std::string email;  // in any spelling that fault_of_email accepts
    std::string password;
    std::optional<std::string> nickname;
  };
  // The new user's id, or nothing when the email is taken.
  boost::asio::awaitable<std::optional<Id>> sign_up(SignUp sign_up);

  // Opens a session; nothing when the email is unknown or the password wrong, and the two take equally long.
  boost::asio::awaitable<std::optional<SignedIn>> sign_in(std::string email, std::string password,
                                                          Entrance entrance);

  // Exchanges a refresh token for new tokens. The old one is used up; who shows it again, or loses a race for
  // it, ends the session for everybody, since one of the two has stolen it. Nothing: not a live token.
  boost::asio::awaitable<std::optional<SignedIn>> refresh(std::string refresh_token, Entrance entrance);
  // Renews a page's cookie before it expires; nothing when the session has ended meanwhile.
  boost::asio::awaitable<std::optional<SignedIn>> renew_page(Caller caller);

  // Ends the session: its refresh token and its page cookie at once, access tokens when they expire.
  boost::asio::awaitable<void> sign_out(Caller caller);

  // Who shows this access token or page cookie; nothing when it isn't valid now. Synchronous, about 3 us.
  std::optional<Caller> authenticate(std::string_view token) const;

  // --- For commands: these block the calling thread, which must not be an I/O thread ---

  // Writes users whose values were checked, in transactions of at most 1,000. Who is there already (by email,
  // phone or origin) is left as is. Ids in the order given.
  std::vector<Id> create_many(std::span<const NewUser> users);
  // Whether somebody has signed up with it.
  bool email_taken_now(std::string_view email);
  // For users made in bulk, who may share one hash. About 16 ms.
  std::string hash_password_now(std::string_view password);
  // False when nobody has that email. A running server shows it at the next sign-in or refresh.
  bool grant_admin(std::string_view email);
  bool revoke_admin(std::string_view email);

 private:
  SignedIn tokens_for(const Session& session, std::string refresh_token, Entrance entrance,
                      WallTime now) const;

  UserRepository& users_;
  SessionRepository& sessions_;
  const Clock& clock_;
  const std::chrono::seconds refresh_ttl_, access_ttl_;
  std::unique_ptr<PasswordHasher> hasher_;
  std::unique_ptr<TokenIssuer> tokens_;
};

}  // namespace weir::site::user

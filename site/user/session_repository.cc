#include "site/user/session_repository.h"

#include <utility>

#include "site/user/refresh_token.h"

namespace weir::site::user {

namespace {

// A page gets none: then nobody has the token, and the row is as every other.
std::string handed_out(const RefreshToken& token, Entrance entrance) {
  return entrance == Entrance::tokens ? token.text() : std::string();
}

}  // namespace

SessionRepository::SessionRepository(SessionStore& store, std::chrono::seconds refresh_ttl,
                                     const Clock& clock)
    : store_(store), refresh_ttl_(refresh_ttl), ended_(refresh_ttl) {
  // One more than are kept: if there are that many, the set refuses older cookies altogether.
  for (const auto& session :
       store_.ended_pages_now(clock.now() - refresh_ttl_, EndedSessions::kMaxEntries + 1))
    ended_.add(session.id, session.ended_at);
}

boost::asio::awaitable<SessionRepository::Opened> SessionRepository::open(Id user_id,
                                                                          std::vector<std::string> roles,
                                                                          Entrance entrance, WallTime now) {
  const auto token = RefreshToken::make(new_session_id());
  NewSession row{token.session, user_id, token.digest(), entrance == Entrance::page, now, now + refresh_ttl_};
  co_await store_.insert(std::move(row));
  co_return Opened{{token.session, user_id, std::move(roles)}, handed_out(token, entrance)};
}

boost::asio::awaitable<std::optional<SessionRepository::Opened>> SessionRepository::rotate(
    std::string refresh_token, Entrance entrance, WallTime now) {
  const auto used = RefreshToken::parse(refresh_token);
  if (!used) co_return std::nullopt;

  const auto next = RefreshToken::make(used->session);
  Rotation rotation{used->session, used->digest(),    next.digest(), entrance == Entrance::page,
                    now,           now + refresh_ttl_};
  auto rotated = co_await store_.rotate(std::move(rotation));
  if (rotated.ended_page) ended_.add(used->session, now);
  if (!rotated.session) co_return std::nullopt;
  co_return Opened{std::move(*rotated.session), handed_out(next, entrance)};
}

boost::asio::awaitable<std::optional<Session>> SessionRepository::renew_page(std::string session,
                                                                             WallTime now) {
  co_return co_await store_.renew_page(std::move(session), now, now + refresh_ttl_);
}

boost::asio::awaitable<void> SessionRepository::end(std::string session, WallTime now) {
  const bool page = co_await store_.end(session, now);
  if (page) ended_.add(session, now);
}

bool SessionRepository::page_ended(const std::string& session, WallTime issued_at) const {
  return ended_.has(session, issued_at);
}

std::string SessionRepository::signing_secret_now() {
  return store_.secret_now("auth", new_secret());
}

}  // namespace weir::site::user

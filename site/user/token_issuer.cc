#include "site/user/token_issuer.h"

#include <boost/json/object.hpp>
#include <utility>

#include "site/user/user.h"
#include "weir/base/id.h"
#include "weir/http/token.h"

namespace weir::site::user {
namespace {

namespace json = boost::json;

std::int64_t seconds_of(WallTime t) {
  return std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count();
}

const json::string* string_claim(const json::object& claims, std::string_view name) {
  const json::value* value = claims.if_contains(name);
  return value ? value->if_string() : nullptr;
}

}  // namespace

TokenIssuer::TokenIssuer(std::string secret, std::chrono::seconds access_ttl,
                         std::chrono::seconds refresh_ttl)
    : secret_(std::move(secret)), access_ttl_(access_ttl), refresh_ttl_(refresh_ttl) {}

std::string TokenIssuer::access_token(const Session& session, WallTime now) const {
  return sign(session, "access", now, access_ttl_);
}

std::string TokenIssuer::page_token(const Session& session, WallTime now) const {
  return sign(session, "page", now, refresh_ttl_);
}

std::string TokenIssuer::sign(const Session& session, std::string_view type, WallTime now,
                              std::chrono::seconds ttl) const {
  json::object claims;
  claims["sub"] = std::to_string(session.user_id);
  claims["sid"] = session.id;
  claims["adm"] = is_admin(session.roles);
  claims["typ"] = type;
  claims["iat"] = seconds_of(now);
  claims["exp"] = seconds_of(now + ttl);
  return http::sign_token(claims, secret_);
}

std::optional<TokenIssuer::Verified> TokenIssuer::verify(std::string_view token, WallTime now) const {
  const auto claims = http::verify_token(token, secret_, now);
  if (!claims) return std::nullopt;
  const json::string* user = string_claim(*claims, "sub");
  const json::string* session = string_claim(*claims, "sid");
  const json::string* type = string_claim(*claims, "typ");
  const json::value* admin = claims->if_contains("adm");
  const json::value* issued = claims->if_contains("iat");
  if (!user || !session || !type || !admin || !admin->is_bool() || !issued || !issued->is_int64())
    return std::nullopt;
  if (*type != "access" && *type != "page") return std::nullopt;
  const auto id = parse_id(*user);
  if (!id) return std::nullopt;

  Verified verified;
  verified.entrance = *type == "page" ? Entrance::page : Entrance::tokens;
  verified.issued_at = WallTime(std::chrono::seconds(issued->get_int64()));
  verified.caller.user_id = *id;
  verified.caller.session = std::string(*session);
  verified.caller.admin = admin->get_bool() && now < verified.issued_at + access_ttl_;
  return verified;
}

}  // namespace weir::site::user

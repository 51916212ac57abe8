#include "site/user/user_handler.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>

#include "site/user/user_schemas.h"
#include "weir/http/fields.h"
#include "weir/http/json_writer.h"
#include "weir/http/problem.h"

namespace weir::site::user {
namespace {

using http::Fields;
using http::JsonWriter;
using http::Reply;
using http::Request;
using http::Response;

constexpr std::string_view kCookie = "weir_session";

using Fault = std::optional<std::string> (*)(std::string_view);

std::optional<std::string> optional_text(Fields& fields, std::string_view name, Fault fault) {
  auto value = fields.optional_string(name);
  if (value)
    if (auto message = fault(*value)) fields.refuse(name, std::move(*message));
  return value;
}

std::string required_text(Fields& fields, std::string_view name, Fault fault) {
  if (!fields.has(name)) {
    fields.refuse(name, "is required");
    return {};
  }
  return optional_text(fields, name, fault).value_or(std::string());
}

// Secure when the browser's side is TLS: on a plain connection it would keep the cookie from coming back.
std::string cookie(const Request& request, std::string_view value, std::chrono::seconds lifetime) {
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", kCookie, value,
                     lifetime.count(), request.secure ? "; Secure" : "");
}

Entrance entrance_of(const Request& request) {
  return request.from_page ? Entrance::page : Entrance::tokens;
}

Caller caller_of(const Request& request) {
  const auto& principal = request.user();
  return {principal.user_id, principal.session, principal.admin};
}

// Tokens for programs; for a page a cookie, which its scripts never see, and when it ends.
Response signed_in(const Request& request, const SignedIn& session) {
  JsonWriter w;
  w.begin_object();
  if (request.from_page) {
    w.key("expires_in").integer(session.lifetime.count()).end_object();
    return Response::json(200, std::move(w))
        .with("Cache-Control", "no-store")
        .with("Set-Cookie", cookie(request, session.page_token, session.lifetime));
  }
  w.key("access_token").string(session.access_token);
  w.key("refresh_token").string(session.refresh_token);
  w.key("token_type").string("Bearer");
  w.key("expires_in").integer(session.lifetime.count()).end_object();
  return Response::json(200, std::move(w)).with("Cache-Control", "no-store");
}

Response profile(const User& user) {
  JsonWriter w;
  w.begin_object().key("id").id(user.id);
  if (user.email) w.key("email").string(*user.email);
  if (user.phone) w.key("phone").string(*user.phone);
  w.key("nickname").string(user.nickname).key("about").string(user.about).key("birthday");
  user.birthday ? w.string(*user.birthday) : w.null();
  w.key("roles").begin_array();
  for (const auto& role : user.roles) w.string(role);
  w.end_array().key("created_at").time(user.created_at).end_object();
  return Response::json(200, std::move(w)).with("Cache-Control", "private, no-cache");
}

Reply sign_up(UserService& service, Request& request) {
  Fields fields(request);
  UserService::SignUp wanted;
  wanted.email = required_text(fields, "email", fault_of_email);
  wanted.password = required_text(fields, "password", fault_of_password);
  wanted.nickname = optional_text(fields, "nickname", fault_of_nickname);
  fields.check();

  const auto id = co_await service.sign_up(std::move(wanted));
  if (!id) throw http::conflict("email_taken", "Somebody has signed up with this email already.");
  JsonWriter w;
  w.begin_object().key("id").id(*id).end_object();
  co_return Response::json(201, std::move(w));
}

// Any texts will do: what can't be an email or a password is a wrong one.
Reply sign_in(UserService& service, Request& request) {
  Fields fields(request);
  std::string email = fields.string("email");
  std::string password = fields.string("password");
  fields.check();

  const auto session = co_await service.sign_in(std::move(email), std::move(password), entrance_of(request));
  if (!session) throw http::Problem(401, "bad_credentials", "The email or the password is wrong.");
  co_return signed_in(request, *session);
}

// A page has no refresh token: its cookie is renewed.
Reply refresh(UserService& service, Request& request) {
  Fields fields(request);
  std::optional<SignedIn> session;
  if (request.from_page && !fields.has("refresh_token")) {
    session = co_await service.renew_page(caller_of(request));
  } else {
    std::string token = fields.string("refresh_token");
    fields.check();
    session = co_await service.refresh(std::move(token), entrance_of(request));
  }
  if (!session) throw http::unauthenticated("This session has ended; sign in again.");
  co_return signed_in(request, *session);
}

Reply sign_out(UserService& service, Request& request) {
  co_await service.sign_out(caller_of(request));
  Response response = Response::empty(204);
  if (request.from_page) response.with("Set-Cookie", cookie(request, "", std::chrono::seconds(0)));
  co_return response;
}

Reply show_me(UserService& service, Request& request) {
  const Id id = request.user().user_id;
  auto known = service.find(id);
  const UserPtr user = known ? std::move(*known) : co_await service.get(id);
  if (!user) throw http::unauthenticated("This account is gone.");
  co_return profile(*user);
}

Reply change_me(UserService& service, Request& request) {
  Fields fields(request);
  ProfileChange change;
  if (fields.is_null("nickname")) fields.refuse("nickname", "can't be cleared");
  change.nickname = optional_text(fields, "nickname", fault_of_nickname);
  change.about = optional_text(fields, "about", fault_of_about);
  if (fields.is_null("about")) change.about = "";
  if (auto birthday = optional_text(fields, "birthday", fault_of_birthday))
    change.birthday = std::move(birthday);
  if (fields.is_null("birthday")) change.birthday.emplace(std::nullopt);
  fields.check();

  const auto user = co_await service.change_profile(request.user().user_id, std::move(change));
  if (!user) throw http::unauthenticated("This account is gone.");
  co_return profile(*user);
}

using Handle = Reply (*)(UserService&, Request&);

http::Handler bound(UserService& service, Handle handle) {
  return [&service, handle](Request& request) { return handle(service, request); };
}

http::Doc doc(std::string summary, std::string takes, std::map<unsigned, std::string> answers,
              std::vector<unsigned> problems, std::string tag) {
  http::Doc out;
  out.summary = std::move(summary);
  out.request_schema = std::move(takes);
  out.responses = std::move(answers);
  out.problems = std::move(problems);
  out.tag = std::move(tag);
  return out;
}

// Signing up and in waits for its turn to hash, and holds its body meanwhile: names and passwords are short.
constexpr std::size_t kMaxBody = 16 << 10;

}  // namespace

void add_routes(http::Router& router, UserService& service) {
  using http::Access;
  for (auto& [name, schema] : schemas()) router.add_schema(name, std::move(schema));

  router.add({"POST", "/v1/users", Access::anyone, bound(service, sign_up),
              doc("Sign up with an email and a password", "NewUser", {{201, "UserId"}}, {409, 422}, "people"),
              kMaxBody});
  router.add({"POST", "/v1/sessions", Access::anyone, bound(service, sign_in),
              doc("Sign in; with X-Weir-Page: 1 a cookie is set instead of answering tokens", "Credentials",
                  {{200, "SignedIn"}}, {401, 422}, "sessions"),
              kMaxBody});
  auto about_refresh = doc("Exchange a refresh token, which works once; a used one ends its session",
                           "Refresh", {{200, "SignedIn"}}, {401, 422}, "sessions");
  about_refresh.request_optional = true;  // a page sends its cookie
  router.add(
      {"POST", "/v1/sessions/refresh", Access::anyone, bound(service, refresh), about_refresh, kMaxBody});
  router.add({"DELETE", "/v1/sessions", Access::user, bound(service, sign_out),
              doc("Sign out: the refresh token ends now, access tokens when they expire", "", {{204, ""}}, {},
                  "sessions")});
  router.add({"GET", "/v1/me", Access::user, bound(service, show_me),
              doc("Who I am", "", {{200, "Me"}}, {}, "people")});
  auto about_change =
      doc("Change my profile; what isn't named stays", "ProfileChange", {{200, "Me"}}, {422}, "people");
  about_change.request_optional = true;
  router.add({"PATCH", "/v1/me", Access::user, bound(service, change_me), about_change, kMaxBody});
}

http::Authenticator authenticator(const UserService& service) {
  return [&service](std::string_view token) -> std::optional<http::Principal> {
    auto caller = service.authenticate(token);
    if (!caller) return std::nullopt;
    return http::Principal{caller->user_id, caller->admin, std::move(caller->session)};
  };
}

}  // namespace weir::site::user

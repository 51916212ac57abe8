#include "site/user/user_handler.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/parse.hpp>
#include <map>

#include "site/user/user_fixture.h"
#include "site/user/user_schemas.h"
#include "weir/base/rfc3339.h"
#include "weir/http/openapi.h"
#include "weir/http/token.h"

namespace weir::site::user {
namespace {

namespace beast = boost::beast;
namespace json = boost::json;
using Headers = std::map<std::string, std::string>;

struct Answer {
  unsigned status;
  std::string body;
  Headers headers;

  json::object object() const { return json::parse(body).as_object(); }
  std::string text(std::string_view field) const { return std::string(object().at(field).as_string()); }
  std::string code() const { return text("code"); }
  // The fields that a 422 names.
  std::vector<std::string> fields() const {
    std::vector<std::string> names;
    const json::object problem = object();
    for (const auto& error : problem.at("errors").as_array())
      names.emplace_back(error.as_object().at("field").as_string());
    return names;
  }
};

class UserHandlerTest : public testing::Test {
 protected:
  UserHandlerTest() {
    http::Router router;
    add_routes(router, module.service);
    http::ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.threads = 2;
    options.trusted_proxies = {"127.0.0.1"};
    options.access_log = http::AccessLogLevel::none;
    server.emplace(options, std::move(router), authenticator(module.service));
    server->start();
  }
  ~UserHandlerTest() override {
    server->stop();
    module.service.stop();
    module.database.stop();
  }

  // One request on a connection of its own.
  Answer call(beast::http::verb method, const std::string& path, const std::string& body = "",
              const Headers& headers = {}) const {
    boost::asio::io_context context;
    boost::asio::ip::tcp::socket socket(context);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), server->port()});
    beast::http::request<beast::http::string_body> request(method, path, 11);
    request.set(beast::http::field::host, "127.0.0.1");
    request.set(beast::http::field::connection, "close");
    if (!body.empty()) request.set(beast::http::field::content_type, "application/json");
    for (const auto& [name, value] : headers) request.set(name, value);
    request.body() = body;
    request.prepare_payload();
    beast::http::write(socket, request);
    beast::flat_buffer buffer;
    beast::http::response<beast::http::string_body> response;
    beast::http::read(socket, buffer, response);
    Answer answer{response.result_int(), response.body(), {}};
    for (const auto& field : response)
      answer.headers[std::string(field.name_string())] = std::string(field.value());
    return answer;
  }
  Answer post(const std::string& path, const std::string& body, const Headers& headers = {}) const {
    return call(beast::http::verb::post, path, body, headers);
  }
  Answer me(const Headers& headers) const { return call(beast::http::verb::get, "/v1/me", "", headers); }
  Answer change_me(const std::string& body, const Headers& headers) const {
    return call(beast::http::verb::patch, "/v1/me", body, headers);
  }
  Answer sign_out(const Headers& headers) const {
    return call(beast::http::verb::delete_, "/v1/sessions", "", headers);
  }

  static std::string account(const std::string& email = "ann@example.com") {
    return R"({"email":")" + email + R"(","password":"password 1"})";
  }
  static Headers bearer(const std::string& token) { return {{"Authorization", "Bearer " + token}}; }
  Headers signed_in(const std::string& email = "ann@example.com") const {
    post("/v1/users", account(email));
    return bearer(post("/v1/sessions", account(email)).text("access_token"));
  }
  // The cookie that an answer sets, as a browser sends it back.
  static Headers page_with(const Answer& answer) {
    const std::string set = answer.headers.at("Set-Cookie");
    return {{"Cookie", set.substr(0, set.find(';'))}, {"X-Weir-Page", "1"}};
  }

  sql::SqliteStore test_store;
  Module module{test_store};
  std::optional<http::Server> server;
};

TEST_F(UserHandlerTest, SignUpSignInAndProfile) {
  const auto created =
      post("/v1/users", R"({"email":"Ann@example.com","password":"password 1","nickname":"安🦦"})");
  ASSERT_EQ(created.status, 201U) << created.body;
  const std::string id = created.text("id");

  const auto session = post("/v1/sessions", account());
  ASSERT_EQ(session.status, 200U) << session.body;
  EXPECT_EQ(session.text("token_type"), "Bearer");
  EXPECT_EQ(session.object().at("expires_in"), 1800);
  EXPECT_EQ(session.headers.at("Cache-Control"), "no-store");
  EXPECT_FALSE(session.headers.contains("Set-Cookie"));

  const auto profile = me(bearer(session.text("access_token")));
  ASSERT_EQ(profile.status, 200U);
  const json::object expected{{"id", id},
                              {"email", "ann@example.com"},
                              {"nickname", "安🦦"},
                              {"about", ""},
                              {"birthday", nullptr},
                              {"roles", json::array()},
                              {"created_at", to_rfc3339(module.clock.now())}};
  EXPECT_EQ(profile.object(), expected);
}

TEST_F(UserHandlerTest, ATakenEmailIsAConflict) {
  ASSERT_EQ(post("/v1/users", account()).status, 201U);
  const auto again = post("/v1/users", account("ANN@example.com"));
  EXPECT_EQ(again.status, 409U);
  EXPECT_EQ(again.code(), "email_taken");
  EXPECT_EQ(again.headers.at("Content-Type"), "application/problem+json");
}

TEST_F(UserHandlerTest, EveryBadFieldOfASignUpIsNamed) {
  using Names = std::vector<std::string>;
  const std::map<std::string, Names> wrong{
      {"", {"email", "password"}},
      {"{}", {"email", "password"}},
      {R"({"email":null,"password":null})", {"email", "password"}},
      {R"({"email":1,"password":[]})", {"email", "password"}},
      {R"({"email":"ann","password":"password 1"})", {"email"}},
      {R"({"email":"a\u0000@b","password":"password 1"})", {"email"}},
      {R"({"email":"a@b","password":"1234567"})", {"password"}},
      {R"({"email":"a@b","password":"password\u0000 1"})", {"password"}},
      {R"({"email":"a@b","password":")" + std::string(1025, 'a') + "\"}", {"password"}},
      {R"({"email":"a@b","password":"password 1","nickname":""})", {"nickname"}},
      {R"({"email":"a@b","password":"password 1","nickname":")" + std::string(65, 'a') + "\"}", {"nickname"}},
      {R"({"email":"a@b","password":"password 1","nickname":7})", {"nickname"}},
  };
  for (const auto& [body, fields] : wrong) {
    const auto answer = post("/v1/users", body);
    EXPECT_EQ(answer.status, 422U) << body;
    EXPECT_EQ(answer.code(), "invalid_field");
    EXPECT_EQ(answer.fields(), fields) << body;
  }
  EXPECT_EQ(post("/v1/users", "{").code(), "malformed_json");
}

TEST_F(UserHandlerTest, BadCredentialsAreToldAlike) {
  post("/v1/users", account());
  const auto wrong = post("/v1/sessions", R"({"email":"ann@example.com","password":"password 2"})");
  const auto unknown = post("/v1/sessions", R"({"email":"bob@example.com","password":"password 1"})");
  for (const auto& answer : {wrong, unknown}) {
    EXPECT_EQ(answer.status, 401U);
    EXPECT_EQ(answer.code(), "bad_credentials");
  }
  EXPECT_EQ(wrong.text("detail"), unknown.text("detail"));
  EXPECT_EQ(post("/v1/sessions", R"({"email":"","password":"short"})").status, 401U);
  EXPECT_EQ(post("/v1/sessions", R"({"email":"a@b"})").status, 422U);
}

TEST_F(UserHandlerTest, OnlyAValidTokenOpensTheProfile) {
  const auto session = signed_in();
  const std::string token = session.at("Authorization").substr(7);
  const std::string payload = token.substr(token.find('.'));
  const std::string unsigned_token =
      http::base64url_encode(R"({"alg":"none","typ":"JWT"})") + payload.substr(0, payload.rfind('.') + 1);
  const std::string foreign = http::sign_token(
      {{"sub", "1"}, {"sid", "x"}, {"adm", true}, {"typ", "access"}, {"iat", 1}, {"exp", 9'999'999'999}},
      "guess");
  EXPECT_EQ(me(session).status, 200U);
  for (const auto& bad : {std::string("x"), token.substr(0, token.size() - 1), unsigned_token, foreign}) {
    const auto answer = me(bearer(bad));
    EXPECT_EQ(answer.status, 401U) << bad;
    EXPECT_EQ(answer.code(), "unauthenticated");
  }
  EXPECT_EQ(me({}).status, 401U);
  module.clock.advance(std::chrono::minutes(31));
  EXPECT_EQ(me(session).status, 401U);
}

TEST_F(UserHandlerTest, ProfilesChangeFieldByField) {
  const auto session = signed_in();
  ASSERT_EQ(change_me(R"({"nickname":"Ann","about":"你好","birthday":"2000-02-29"})", session).status, 200U);
  auto changed = change_me(R"({"about":null})", session);
  EXPECT_EQ(changed.text("nickname"), "Ann");
  EXPECT_EQ(changed.text("about"), "");
  EXPECT_EQ(changed.text("birthday"), "2000-02-29");
  changed = change_me(R"({"birthday":null,"email":"other@example.com","roles":["admin"]})", session);
  EXPECT_TRUE(changed.object().at("birthday").is_null());
  EXPECT_EQ(changed.text("email"), "ann@example.com");
  EXPECT_TRUE(changed.object().at("roles").as_array().empty());
  EXPECT_EQ(me(session).body, changed.body);
  EXPECT_EQ(change_me("", session).body, changed.body);
  EXPECT_EQ(change_me("{}", {}).status, 401U);
}

TEST_F(UserHandlerTest, EveryBadFieldOfAProfileIsNamed) {
  const auto session = signed_in();
  const auto answer = change_me(
      R"({"nickname":null,"about":")" + std::string(1025, 'a') + R"(","birthday":"2001-02-29"})", session);
  EXPECT_EQ(answer.status, 422U);
  EXPECT_EQ(answer.fields(), (std::vector<std::string>{"nickname", "about", "birthday"}));
  EXPECT_EQ(change_me(R"({"birthday":20000229})", session).status, 422U);
  EXPECT_EQ(change_me("[]", session).status, 422U);
}

TEST_F(UserHandlerTest, RefreshTokensWorkOnce) {
  post("/v1/users", account());
  const auto first = post("/v1/sessions", account());
  const auto use = [&](const std::string& token) {
    return post("/v1/sessions/refresh", R"({"refresh_token":")" + token + "\"}");
  };
  const auto second = use(first.text("refresh_token"));
  ASSERT_EQ(second.status, 200U) << second.body;
  EXPECT_EQ(me(bearer(second.text("access_token"))).status, 200U);
  const auto reused = use(first.text("refresh_token"));
  EXPECT_EQ(reused.status, 401U);
  EXPECT_EQ(reused.code(), "unauthenticated");
  EXPECT_EQ(use(second.text("refresh_token")).status, 401U) << "the session was revoked";
  EXPECT_EQ(use("nonsense").status, 401U);
  EXPECT_EQ(post("/v1/sessions/refresh", "{}").status, 422U);
}

TEST_F(UserHandlerTest, SigningOutEndsTheRefreshToken) {
  post("/v1/users", account());
  const auto session = post("/v1/sessions", account());
  const auto token = bearer(session.text("access_token"));
  EXPECT_EQ(sign_out(token).status, 204U);
  EXPECT_EQ(me(token).status, 200U);
  const auto refreshed =
      post("/v1/sessions/refresh", R"({"refresh_token":")" + session.text("refresh_token") + "\"}");
  EXPECT_EQ(refreshed.status, 401U);
  EXPECT_EQ(sign_out({}).status, 401U);
}

TEST_F(UserHandlerTest, PagesAreSignedInByACookie) {
  post("/v1/users", account());
  const auto session = post("/v1/sessions", account(), {{"X-Weir-Page", "1"}});
  ASSERT_EQ(session.status, 200U) << session.body;
  EXPECT_EQ(session.object(), (json::object{{"expires_in", 604'800}}));
  const std::string cookie = session.headers.at("Set-Cookie");
  for (const std::string part :
       {"weir_session=", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=604800"})
    EXPECT_NE(cookie.find(part), std::string::npos) << cookie;
  EXPECT_EQ(cookie.find("Secure"), std::string::npos);

  const auto page = page_with(session);
  EXPECT_EQ(me(page).status, 200U);
  EXPECT_EQ(change_me(R"({"nickname":"Ann"})", page).status, 200U);
  const Headers another_site{{"Cookie", page.at("Cookie")}};
  EXPECT_EQ(change_me(R"({"nickname":"Eve"})", another_site).status / 100, 4U);
  EXPECT_EQ(me(page).text("nickname"), "Ann");

  const auto renewed = post("/v1/sessions/refresh", "", page);
  ASSERT_EQ(renewed.status, 200U) << renewed.body;
  EXPECT_EQ(me(page_with(renewed)).status, 200U);

  const auto out = sign_out(page);
  EXPECT_EQ(out.status, 204U);
  EXPECT_TRUE(out.headers.at("Set-Cookie").starts_with("weir_session=; Path=/; Max-Age=0; HttpOnly"));
  EXPECT_EQ(me(page).status, 401U);
  EXPECT_EQ(me(page_with(renewed)).status, 401U);
  EXPECT_EQ(post("/v1/sessions/refresh", "", page).status, 401U);
}

TEST_F(UserHandlerTest, TheCookieIsSecureBehindTls) {
  post("/v1/users", account());
  const auto session =
      post("/v1/sessions", account(), {{"X-Weir-Page", "1"}, {"X-Forwarded-Proto", "https"}});
  ASSERT_EQ(session.status, 200U);
  EXPECT_TRUE(session.headers.at("Set-Cookie").ends_with("; Secure"));
}

TEST_F(UserHandlerTest, APersonWhoIsGoneIsNobody) {
  const auto session = signed_in();
  module.database.write_now([](sql::Session& s) {
    const sql::Query remove{"test", "remove", "DELETE FROM users"};
    s.execute(remove);
  });
  EXPECT_EQ(me(session).status, 401U);
  EXPECT_EQ(change_me(R"({"about":"x"})", session).status, 401U);
}

TEST(UserSchemas, TellTheLimitsThatAreChecked) {
  const auto all = schemas();
  const auto limit = [&](const char* schema, const char* field, const char* what) {
    return all.at(schema).at("properties").at(field).at(what).to_number<std::size_t>();
  };
  EXPECT_EQ(limit("NewUser", "email", "maxLength"), kMaxEmailBytes);
  EXPECT_EQ(limit("NewUser", "password", "minLength"), kMinPasswordBytes);
  EXPECT_EQ(limit("NewUser", "password", "maxLength"), kMaxPasswordBytes);
  EXPECT_EQ(limit("NewUser", "nickname", "maxLength"), kMaxNicknameCodePoints);
  EXPECT_EQ(limit("ProfileChange", "nickname", "maxLength"), kMaxNicknameCodePoints);
  EXPECT_EQ(limit("ProfileChange", "about", "maxLength"), kMaxAboutCodePoints);
}

TEST_F(UserHandlerTest, EveryDoorIsDocumented) {
  http::Router router;
  add_routes(router, module.service);
  const auto document = http::openapi(router, "Weir", "1");
  const auto& paths = document.at("paths").as_object();
  for (const char* path : {"/v1/users", "/v1/sessions", "/v1/sessions/refresh", "/v1/me"})
    EXPECT_TRUE(paths.contains(path)) << path;
}

class UserHandlerConcurrency : public UserHandlerTest {};

TEST_F(UserHandlerConcurrency, OfManySignUpsAtOnceOneIsCreatedAndTheOthersAreConflicts) {
  std::map<unsigned, int> statuses;
  std::mutex mutex;
  std::vector<std::thread> crowd;
  crowd.reserve(50);
  for (int i = 0; i < 50; ++i)
    crowd.emplace_back([&] {
      const auto answer = post("/v1/users", account());
      const std::lock_guard lock(mutex);
      ++statuses[answer.status];
    });
  for (auto& one : crowd) one.join();
  EXPECT_EQ(statuses, (std::map<unsigned, int>{{201, 1}, {409, 49}}));
}

}  // namespace
}  // namespace weir::site::user

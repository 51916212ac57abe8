#include "weir/http/token.h"

#include <gtest/gtest.h>

#include "weir/base/random.h"

namespace weir::http {
namespace {

constexpr std::string_view kSecret = "0123456789abcdef0123456789abcdef";
const WallTime kNow{std::chrono::seconds(1'700'000'000)};

std::string good() {
  return sign_token({{"sub", "42"}, {"exp", 1'700'000'060}}, kSecret);
}

bool valid(std::string_view token, WallTime now = kNow, std::string_view secret = kSecret) {
  return verify_token(token, secret, now).has_value();
}

TEST(Token, ComesBackAsItWasSigned) {
  const auto claims = verify_token(good(), kSecret, kNow);
  ASSERT_TRUE(claims);
  EXPECT_EQ(claims->at("sub").as_string(), "42");
}

// RFC 7515 has the same header with other spacing; this value was made by Python's hmac module.
TEST(Token, SignsAsOthersDo) {
  EXPECT_EQ(sign_token({{"exp", 1}}, "secret"),
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjF9.8onrqJhmsoas7S-2eOXSmQe1UZfbsK0zZyIw7ik8gZE");
}

TEST(Token, Expires) {
  EXPECT_TRUE(valid(good(), kNow + std::chrono::seconds(59)));
  EXPECT_FALSE(valid(good(), kNow + std::chrono::seconds(60)));
  EXPECT_FALSE(valid(sign_token({{"sub", "42"}}, kSecret))) << "without exp";
  EXPECT_FALSE(valid(sign_token({{"exp", "1700000060"}}, kSecret))) << "exp as a text";
  EXPECT_FALSE(valid(sign_token({{"exp", 1.8e9}}, kSecret)));
  EXPECT_FALSE(valid(sign_token({{"exp", -1}}, kSecret)));
  EXPECT_FALSE(valid(sign_token({{"exp", 1'700'000'060}, {"nbf", 1'700'000'001}}, kSecret))) << "not yet";
  EXPECT_TRUE(valid(sign_token({{"exp", 1'700'000'060}, {"nbf", 1'700'000'000}}, kSecret)));
}

TEST(Token, RefusesForeignOnes) {
  EXPECT_FALSE(valid(good(), kNow, "another secret"));
  EXPECT_FALSE(valid(good(), kNow, ""));
  EXPECT_THROW(sign_token({}, ""), std::logic_error);
}

TEST(Token, RefusesOtherAlgorithms) {
  const std::string token = good();
  const std::string payload = token.substr(token.find('.'));
  const std::string unsigned_payload = payload.substr(0, payload.rfind('.') + 1);
  for (const char* header :
       {R"({"alg":"none","typ":"JWT"})", R"({"alg":"None"})", R"({"alg":"HS512","typ":"JWT"})",
        R"({"alg":"RS256","typ":"JWT"})", R"({"typ":"JWT","alg":"HS256"})", "{}", ""}) {
    EXPECT_FALSE(valid(base64url_encode(header) + unsigned_payload)) << header;
    EXPECT_FALSE(valid(base64url_encode(header) + payload)) << header;
  }
}

TEST(Token, RefusesOtherShapes) {
  const std::string token = good();
  for (std::size_t size = 0; size < token.size(); ++size) EXPECT_FALSE(valid(token.substr(0, size))) << size;
  for (const std::string& other :
       {"." + token, token + ".", token + "A", token + "=", " " + token, token + " ", std::string("..")}) {
    EXPECT_FALSE(valid(other)) << other;
  }
  EXPECT_FALSE(valid(std::string(10'000, 'a')));
  EXPECT_FALSE(valid(std::string("\xff\xfe.\x80.\x00", 7)));
}

// Base64 that spells the same bytes in another way would make two tokens of one.
TEST(Token, HasOneSpelling) {
  std::string token = good();
  const std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::size_t spellings = 0;
  for (const char c : alphabet) {
    token.back() = c;
    spellings += valid(token) ? 1U : 0U;
  }
  EXPECT_EQ(spellings, 1U);
}

TEST(Token, StandsRandomBytes) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const std::string token = good();
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = token;
    const std::uint64_t changes = 1 + random.below(4);
    for (std::uint64_t i = 0; i < changes; ++i) {
      const std::size_t at = random.below(changed.size());
      switch (random.below(3)) {
        case 0:
          changed[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          changed.erase(at, 1 + random.below(8));
          break;
        default:
          changed.insert(at, 1, static_cast<char>(random.below(256)));
      }
      if (changed.empty()) changed = ".";
    }
    if (changed != token) ASSERT_FALSE(valid(changed)) << testing::PrintToString(changed);
  }
}

TEST(Base64Url, IsStrict) {
  for (const char* bytes : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) {
    EXPECT_EQ(base64url_decode(base64url_encode(bytes)), bytes);
  }
  EXPECT_EQ(base64url_encode("foob"), "Zm9vYg");
  EXPECT_EQ(base64url_encode("\xfb\xff"), "-_8");
  for (const char* text : {"Z", "Zm9vY", "Zh", "Zm9vYh", "Zg==", "Z g", "+w", "/w", "\xc3\xa9"}) {
    EXPECT_EQ(base64url_decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace weir::http

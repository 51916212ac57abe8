#include "site/user/token_issuer.h"

#include <gtest/gtest.h>

#include <set>

#include "site/user/refresh_token.h"
#include "weir/base/random.h"

namespace weir::site::user {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const WallTime kNow{seconds(1'700'000'000)};
const Session kAnn{"sessionsessionsession1", 42, {}};
const Session kAdmin{"sessionsessionsession2", 7, {"admin"}};

TokenIssuer issuer(std::string secret = "a secret") {
  return TokenIssuer(std::move(secret), minutes(30), hours(24 * 7));
}

TEST(TokenIssuer, AccessTokensLiveForAccessTtl) {
  const auto tokens = issuer();
  const std::string token = tokens.access_token(kAnn, kNow);
  const auto verified = tokens.verify(token, kNow + minutes(30) - seconds(1));
  ASSERT_TRUE(verified);
  EXPECT_EQ(verified->caller, (Caller{42, "sessionsessionsession1", false}));
  EXPECT_EQ(verified->entrance, Entrance::tokens);
  EXPECT_FALSE(tokens.verify(token, kNow + minutes(30) + seconds(1)));
}

TEST(TokenIssuer, PageTokensLiveForRefreshTtlButTheAdminInThemDoesNot) {
  const auto tokens = issuer();
  const std::string token = tokens.page_token(kAdmin, kNow);
  const auto young = tokens.verify(token, kNow + minutes(29));
  ASSERT_TRUE(young);
  EXPECT_EQ(young->entrance, Entrance::page);
  EXPECT_TRUE(young->caller.admin);
  const auto old = tokens.verify(token, kNow + hours(24 * 7) - seconds(1));
  ASSERT_TRUE(old);
  EXPECT_FALSE(old->caller.admin);
  EXPECT_FALSE(tokens.verify(token, kNow + hours(24 * 7) + seconds(1)));
}

TEST(TokenIssuer, ForeignAndDamagedTokensAreNobody) {
  const auto tokens = issuer();
  const std::string token = tokens.access_token(kAnn, kNow);
  EXPECT_FALSE(issuer("another secret").verify(token, kNow));
  for (std::size_t size = 0; size < token.size(); ++size)
    EXPECT_FALSE(tokens.verify(token.substr(0, size), kNow)) << size;
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string damaged = token;
    damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(tokens.verify(damaged, kNow)) << i;
  }
}

TEST(RefreshToken, ReadsBackWhatItWrote) {
  const auto token = RefreshToken::make(new_session_id());
  const auto again = RefreshToken::parse(token.text());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->session, token.session);
  EXPECT_EQ(again->digest(), token.digest());
  EXPECT_EQ(token.text().find(token.digest()), std::string::npos);
}

TEST(RefreshToken, OtherShapesAreNone) {
  const std::string text = RefreshToken::make(new_session_id()).text();
  EXPECT_FALSE(RefreshToken::parse(""));
  EXPECT_FALSE(RefreshToken::parse(text.substr(1)));
  EXPECT_FALSE(RefreshToken::parse(text + "A"));
  std::string strange = text;
  strange[30] = '+';
  EXPECT_FALSE(RefreshToken::parse(strange));
  strange[30] = '\0';
  EXPECT_FALSE(RefreshToken::parse(strange));
}

TEST(RefreshToken, NoTwoAreAlike) {
  std::set<std::string> seen;
  for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(seen.insert(new_secret()).second);
  EXPECT_EQ(seen.begin()->size(), 43U);
  EXPECT_EQ(new_session_id().size(), 22U);
}

}  // namespace
}  // namespace weir::site::user

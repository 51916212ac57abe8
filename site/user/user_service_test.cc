#include "site/user/user_service.h"

#include <gtest/gtest.h>

#include "site/user/password.h"
#include "site/user/user_fixture.h"
#include "weir/testing/metrics.h"

namespace weir::site::user {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class UserServiceTest : public sql::OnEachStore {
 protected:
  void restart(UserService::Options options = {}) {
    module.reset();
    module = std::make_unique<Module>(*test_store, options);
  }
  UserService& service() { return module->service; }
  std::optional<Caller> caller(const std::string& token) { return service().authenticate(token); }

  std::unique_ptr<Module> module = std::make_unique<Module>(*test_store);
};

INSTANTIATE_TEST_SUITE_P(Stores, UserServiceTest, sql::each_store(), sql::name_of_store);

TEST_P(UserServiceTest, SignsUpAndIn) {
  const auto id = module->sign_up("Ann@Example.com");
  ASSERT_TRUE(id);
  const auto user = module->io.run(service().get(*id));
  ASSERT_TRUE(user);
  EXPECT_EQ(user->email, "ann@example.com");
  EXPECT_EQ(user->phone, std::nullopt);
  EXPECT_EQ(user->nickname, "Ann");
  EXPECT_EQ(user->about, "");
  EXPECT_EQ(user->birthday, std::nullopt);
  EXPECT_TRUE(user->roles.empty());
  EXPECT_EQ(user->created_at, module->clock.now());

  const auto session = module->sign_in("ANN@example.com");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->lifetime, minutes(30));
  EXPECT_TRUE(session->page_token.empty());
  const auto who = caller(session->access_token);
  ASSERT_TRUE(who);
  EXPECT_EQ(who->user_id, *id);
  EXPECT_FALSE(who->admin);
}

TEST_P(UserServiceTest, AnEmailIsTakenInEverySpelling) {
  ASSERT_TRUE(module->sign_up("ann@example.com"));
  EXPECT_FALSE(module->sign_up("ann@example.com"));
  EXPECT_FALSE(module->sign_up("ANN@EXAMPLE.COM", "another password"));
  EXPECT_TRUE(module->sign_up("ann@example.org"));
}

TEST_P(UserServiceTest, WrongPasswordsAndUnknownEmailsAreRefused) {
  ASSERT_TRUE(module->sign_up("ann@example.com"));
  EXPECT_FALSE(module->sign_in("ann@example.com", "password 2"));
  EXPECT_FALSE(module->sign_in("bob@example.com"));
  EXPECT_FALSE(module->sign_in(""));
}

TEST_P(UserServiceTest, ManyWithoutEmailOrPhoneLiveSideBySide) {
  std::vector<NewUser> users(3);
  for (auto& user : users) user.nickname = "one of many";
  const auto ids = service().create_many(users);
  ASSERT_EQ(ids.size(), 3U);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[1], ids[2]);
}

TEST_P(UserServiceTest, CreatingManyTwiceAddsNothing) {
  std::vector<NewUser> users(2'500);
  const std::string hash = service().hash_password_now("seed password");
  for (std::size_t i = 0; i < users.size(); ++i) {
    users[i].nickname = "user" + std::to_string(i);
    if (i % 2 == 0) {
      users[i].email = users[i].nickname + "@example.com";
      users[i].password_hash = hash;
    } else {
      users[i].origin = "hn:" + users[i].nickname;
    }
  }
  const auto ids = service().create_many(users);
  users[0].nickname = "changed";
  users.emplace_back().nickname = "new";
  const auto again = service().create_many(users);
  ASSERT_EQ(again.size(), ids.size() + 1);
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), again.begin()));
  EXPECT_EQ(module->io.run(service().get(ids[0]))->nickname, "user0");
  EXPECT_TRUE(module->sign_in("user2@example.com", "seed password"));
  // Imported people have no password to sign in with.
  EXPECT_EQ(module->io.run(service().get(ids[1]))->email, std::nullopt);
}

TEST_P(UserServiceTest, AHundredReadsLoadOnce) {
  const auto id = module->sign_up("ann@example.com");
  const double before = statements("user", "find");
  EXPECT_FALSE(service().find(*id));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(module->io.run(service().get(*id)));
  EXPECT_EQ(statements("user", "find") - before, 1);
  ASSERT_TRUE(service().find(*id));
  EXPECT_EQ((*service().find(*id))->id, *id);
}

TEST_P(UserServiceTest, ABulkIsOneStatementForWhatTheCacheLacks) {
  std::vector<NewUser> users(50);
  for (auto& user : users) user.nickname = "n";
  auto ids = service().create_many(users);
  module->io.run(service().get(ids[3]));
  ids.insert(ids.begin(), 999'999);  // nobody
  const double one = statements("user", "find"), all = statements("user", "find_all");
  const auto found = module->io.run(service().get_all(ids));
  ASSERT_EQ(found.size(), ids.size());
  EXPECT_EQ(found[0], nullptr);
  for (std::size_t i = 1; i < ids.size(); ++i) EXPECT_EQ(found[i]->id, ids[i]);
  EXPECT_EQ(statements("user", "find_all") - all, 1);
  module->io.run(service().get_all(ids));
  EXPECT_EQ(statements("user", "find_all") - all, 1);
  EXPECT_EQ(statements("user", "find") - one, 0);
}

TEST_P(UserServiceTest, NobodyIsNullUntilThereIsSomebody) {
  EXPECT_EQ(module->io.run(service().get(1)), nullptr);
  ASSERT_EQ(module->sign_up("ann@example.com"), 1);
  EXPECT_NE(module->io.run(service().get(1)), nullptr);
}

TEST_P(UserServiceTest, AChangedProfileShowsAtOnce) {
  const auto id = module->sign_up("ann@example.com");
  module->io.run(service().get(*id));
  ProfileChange change;
  change.nickname = "安 🦦";
  change.birthday = std::optional<std::string>("1990-05-17");
  const auto changed = module->io.run(service().change_profile(*id, change));
  EXPECT_EQ(changed->nickname, "安 🦦");
  EXPECT_EQ(*module->io.run(service().get(*id)), *changed);

  ProfileChange more;
  more.about = "About me";
  more.birthday.emplace(std::nullopt);
  module->io.run(service().change_profile(*id, more));
  const auto user = module->io.run(service().get(*id));
  EXPECT_EQ(user->nickname, "安 🦦");
  EXPECT_EQ(user->about, "About me");
  EXPECT_EQ(user->birthday, std::nullopt);

  EXPECT_EQ(*module->io.run(service().change_profile(*id, {})), *user);
  EXPECT_EQ(module->io.run(service().change_profile(12'345, more)), nullptr);
}

TEST_P(UserServiceTest, RefreshTokensRotate) {
  module->sign_up("ann@example.com");
  const auto first = module->sign_in("ann@example.com");
  module->clock.advance(hours(1));
  EXPECT_FALSE(caller(first->access_token));
  const auto second = module->refresh(first->refresh_token);
  ASSERT_TRUE(second);
  EXPECT_NE(second->refresh_token, first->refresh_token);
  const auto who = caller(second->access_token);
  ASSERT_TRUE(who);
  EXPECT_EQ(who->user_id, first->user_id);
  EXPECT_TRUE(module->refresh(second->refresh_token));
}

TEST_P(UserServiceTest, AUsedRefreshTokenEndsItsSession) {
  module->sign_up("ann@example.com");
  const auto first = module->sign_in("ann@example.com");
  const auto other = module->sign_in("ann@example.com");
  const auto second = module->refresh(first->refresh_token);
  ASSERT_TRUE(second);
  EXPECT_FALSE(module->refresh(first->refresh_token));
  EXPECT_FALSE(module->refresh(second->refresh_token));
  EXPECT_TRUE(caller(second->access_token)) << "access tokens end when they expire";
  EXPECT_TRUE(module->refresh(other->refresh_token)) << "other sessions go on";
}

TEST_P(UserServiceTest, RefreshTokensExpireAfterTheirLastUse) {
  module->sign_up("ann@example.com");
  auto session = module->sign_in("ann@example.com");
  for (int day = 0; day < 10; day += 6) {
    module->clock.advance(hours(24 * 6));
    session = module->refresh(session->refresh_token);
    ASSERT_TRUE(session);
  }
  module->clock.advance(hours(24 * 7) + seconds(1));
  EXPECT_FALSE(module->refresh(session->refresh_token));
}

TEST_P(UserServiceTest, OddRefreshTokensAreRefused) {
  module->sign_up("ann@example.com");
  const auto session = module->sign_in("ann@example.com");
  for (const std::string& token :
       {std::string(), std::string("x"), std::string(65, 'A'), session->access_token,
        session->refresh_token.substr(1), session->refresh_token + "A"})
    EXPECT_FALSE(module->refresh(token)) << token;
  EXPECT_TRUE(module->refresh(session->refresh_token));
}

TEST_P(UserServiceTest, SigningOutEndsTheRefreshToken) {
  module->sign_up("ann@example.com");
  const auto session = module->sign_in("ann@example.com");
  module->io.run(service().sign_out(*caller(session->access_token)));
  EXPECT_FALSE(module->refresh(session->refresh_token));
  const auto who = caller(session->access_token);
  ASSERT_TRUE(who);
  module->io.run(service().sign_out(*who));  // again: harmless
  module->clock.advance(minutes(30) + seconds(1));
  EXPECT_FALSE(caller(session->access_token));
}

TEST_P(UserServiceTest, PagesGetACookieThatEndsAtOnce) {
  module->sign_up("ann@example.com");
  const auto page = module->sign_in("ann@example.com", "password 1", Entrance::page);
  const auto other = module->sign_in("ann@example.com", "password 1", Entrance::page);
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->access_token.empty());
  EXPECT_TRUE(page->refresh_token.empty());
  EXPECT_EQ(page->lifetime, hours(24 * 7));
  module->clock.advance(hours(24 * 6));
  const auto who = caller(page->page_token);
  ASSERT_TRUE(who);

  const auto renewed = module->io.run(service().renew_page(*who));
  ASSERT_TRUE(renewed);
  module->clock.advance(hours(24 * 2));
  EXPECT_FALSE(caller(page->page_token));
  ASSERT_TRUE(caller(renewed->page_token));

  module->io.run(service().sign_out(*who));
  EXPECT_FALSE(caller(renewed->page_token));
  EXPECT_FALSE(module->io.run(service().renew_page(*who)));
  EXPECT_FALSE(caller(other->page_token)) << "expired by itself";
}

TEST_P(UserServiceTest, EndedPagesStayEndedAfterARestart) {
  module->sign_up("ann@example.com");
  const auto page = module->sign_in("ann@example.com", "password 1", Entrance::page);
  const auto other = module->sign_in("ann@example.com", "password 1", Entrance::page);
  module->io.run(service().sign_out(*caller(page->page_token)));
  restart();
  EXPECT_FALSE(caller(page->page_token));
  EXPECT_TRUE(caller(other->page_token)) << "the secret is kept";
}

TEST_P(UserServiceTest, AProgramsSessionIsNotRenewedAsAPage) {
  module->sign_up("ann@example.com");
  const auto session = module->sign_in("ann@example.com");
  EXPECT_FALSE(module->io.run(service().renew_page(*caller(session->access_token))));
}

TEST_P(UserServiceTest, ATokenExchangedForACookieIsUsedUp) {
  module->sign_up("ann@example.com");
  const auto session = module->sign_in("ann@example.com");
  const auto page = module->refresh(session->refresh_token, Entrance::page);
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->refresh_token.empty());
  ASSERT_TRUE(caller(page->page_token));
  EXPECT_FALSE(module->refresh(session->refresh_token)) << "used";
  EXPECT_FALSE(caller(page->page_token)) << "and its second use ended the page's session";
}

TEST_P(UserServiceTest, ASecretOfTheConfigurationIsUsed) {
  UserService::Options options;
  options.secret = "first secret";
  restart(options);
  module->sign_up("ann@example.com");
  const auto session = module->sign_in("ann@example.com");
  restart(options);
  EXPECT_TRUE(caller(session->access_token));
  options.secret = "second secret";
  restart(options);
  EXPECT_FALSE(caller(session->access_token));
}

TEST_P(UserServiceTest, AdminsAreMadeAndUnmade) {
  const auto id = module->sign_up("ann@example.com");
  EXPECT_FALSE(service().grant_admin("nobody@example.com"));
  module->io.run(service().get(*id));
  EXPECT_TRUE(service().grant_admin("Ann@example.com"));
  EXPECT_TRUE(service().grant_admin("ann@example.com"));  // again: the same
  EXPECT_EQ(module->io.run(service().get(*id))->roles, std::vector<std::string>{"admin"});

  const auto session = module->sign_in("ann@example.com");
  EXPECT_TRUE(caller(session->access_token)->admin);
  EXPECT_TRUE(service().revoke_admin("ann@example.com"));
  const auto refreshed = module->refresh(session->refresh_token);
  EXPECT_FALSE(caller(refreshed->access_token)->admin);
}

// `weir admin grant` beside a running server writes to the store behind its cache.
TEST_P(UserServiceTest, ARoleFromAnotherProcessShowsAtTheNextSignIn) {
  const auto id = module->sign_up("ann@example.com");
  module->io.run(service().get(*id));
  module->user_store.set_role_now("ann@example.com", kAdminRole, true, module->clock.now());
  EXPECT_TRUE(module->io.run(service().get(*id))->roles.empty());
  const auto session = module->sign_in("ann@example.com");
  EXPECT_TRUE(caller(session->access_token)->admin);
  EXPECT_EQ(module->io.run(service().get(*id))->roles, std::vector<std::string>{"admin"});
}

TEST_P(UserServiceTest, ExpiredSessionsAreClearedAwayByNewOnes) {
  module->sign_up("ann@example.com");
  for (int i = 0; i < 5; ++i) module->sign_in("ann@example.com");
  module->clock.advance(hours(24 * 8));
  module->sign_in("ann@example.com");
  const auto left = module->database.read_now([](sql::Session& session) {
    const sql::Query count{"test", "count", "SELECT count(*) FROM sessions"};
    return session.one(count, sql::first<int>);
  });
  EXPECT_EQ(left, 1);
}

TEST_P(UserServiceTest, NoSecretIsStoredAsItIs) {
  module->sign_up("ann@example.com", "a very secret password");
  const auto session = module->sign_in("ann@example.com", "a very secret password");
  const auto digest = module->database.read_now([](sql::Session& s) {
    const sql::Query read{"test", "read",
                          "SELECT refresh_digest || (SELECT password_hash FROM users) FROM sessions"};
    return s.one(read, sql::first<std::string>);
  });
  ASSERT_TRUE(digest);
  EXPECT_EQ(digest->find("a very secret password"), std::string::npos);
  EXPECT_EQ(digest->find(session->refresh_token.substr(22)), std::string::npos);
}

class UserServiceConcurrency : public UserServiceTest {};

INSTANTIATE_TEST_SUITE_P(Stores, UserServiceConcurrency, sql::each_store(), sql::name_of_store);

TEST_P(UserServiceConcurrency, OfManySignUpsWithOneEmailOneWins) {
  std::vector<std::future<std::optional<Id>>> all;
  all.reserve(200);
  for (int i = 0; i < 200; ++i)
    all.push_back(module->io.start(service().sign_up({"ann@example.com", "password 1", std::nullopt})));
  int won = 0;
  for (auto& one : all) won += one.get().has_value();  // throws if it failed
  EXPECT_EQ(won, 1);
}

// The look before the hash is only there to save work: without it the store decides.
TEST_P(UserServiceConcurrency, TheStoreLetsOneOfManyInsertsThrough) {
  NewUser user;
  user.email = "ann@example.com";
  user.nickname = "Ann";
  std::vector<std::future<std::optional<Id>>> all;
  all.reserve(200);
  for (int i = 0; i < 100; ++i) all.push_back(module->io.start(module->users.insert(user)));
  int won = 0;
  for (auto& one : all) won += one.get().has_value();
  EXPECT_EQ(won, 1);
}

TEST_P(UserServiceConcurrency, OfTwoUsesOfATokenOneWinsAndTheSessionEnds) {
  module->sign_up("ann@example.com");
  for (int round = 0; round < 20; ++round) {
    const auto session = module->sign_in("ann@example.com");
    std::vector<std::future<std::optional<SignedIn>>> uses;
    uses.reserve(4);
    for (int i = 0; i < 4; ++i)
      uses.push_back(module->io.start(service().refresh(session->refresh_token, Entrance::tokens)));
    std::optional<SignedIn> winner;
    int won = 0;
    for (auto& use : uses)
      if (auto result = use.get()) {
        ++won;
        winner = std::move(result);
      }
    ASSERT_EQ(won, 1);
    EXPECT_FALSE(module->refresh(winner->refresh_token));
  }
}

TEST_P(UserServiceConcurrency, AHundredReadersAtOnceLoadOnce) {
  const auto id = module->sign_up("ann@example.com");
  const double before = statements("user", "find");
  std::vector<std::future<UserPtr>> all;
  all.reserve(100);
  for (int i = 0; i < 100; ++i) all.push_back(module->io.start(service().get(*id)));
  for (auto& one : all) EXPECT_TRUE(one.get());
  EXPECT_EQ(statements("user", "find") - before, 1);
}

TEST_P(UserServiceConcurrency, AReadBesideAChangeNeverKeepsTheOldNickname) {
  const auto id = module->sign_up("ann@example.com");
  for (int round = 0; round < 50; ++round) {
    ProfileChange change;
    change.nickname = "n" + std::to_string(round);
    auto reads = module->io.start(service().get(*id));
    auto changed = module->io.start(service().change_profile(*id, change));
    auto more = module->io.start(service().get(*id));
    reads.get();
    changed.get();
    more.get();
    EXPECT_EQ(module->io.run(service().get(*id))->nickname, change.nickname);
  }
}

}  // namespace
}  // namespace weir::site::user

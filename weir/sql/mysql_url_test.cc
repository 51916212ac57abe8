#include "weir/sql/mysql_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/fault.h"
#include "weir/sql/mysql.h"

namespace weir::sql {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string refusal(std::string_view url) {
  try {
    (void)MysqlAddress::parse(url);
  } catch (const Unusable& error) {
    return error.what();
  }
  return "taken";
}

TEST(MysqlUrl, IsTakenApart) {
  const auto full = MysqlAddress::parse("mysql://weir:secret@db.example:3307/site");
  EXPECT_EQ(full.host, "db.example");
  EXPECT_EQ(full.port, 3307);
  EXPECT_EQ(full.user, "weir");
  EXPECT_EQ(full.password, "secret");
  EXPECT_EQ(full.database, "site");
  EXPECT_EQ(full.place(), "mysql://weir@db.example:3307/site");
  const auto least = MysqlAddress::parse("mysql://root@localhost/x");
  EXPECT_EQ(least.port, 3306);
  EXPECT_EQ(least.password, "");
  const auto six = MysqlAddress::parse("mysql://root:@[::1]:33/x");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.password, "");
  EXPECT_EQ(six.place(), "mysql://root@[::1]:33/x");
}

TEST(MysqlUrl, IsDecoded) {
  const auto address = MysqlAddress::parse("mysql://we%40ir:p%3Aw%2f%23%25%e6%b1%89@h/my%20db");
  EXPECT_EQ(address.user, "we@ir");
  EXPECT_EQ(address.password, "p:w/#%\xE6\xB1\x89");
  EXPECT_EQ(address.database, "my db");
  // Further colons are the password's.
  EXPECT_EQ(MysqlAddress::parse("mysql://u:a:b@h/x").password, "a:b");
}

TEST(MysqlUrl, BadOnesAreRefusedWithTheReasonAndWithoutThePassword) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "can't be parsed"},
      {"db.example/site", "can't be parsed"},
      // Not encoded, and therefore understood in another way than it was meant.
      {"mysql://u:hunter2@h@x/site", ""},
      {"mysql://u:hunter2#@h/site", ""},
      {"mysql://u:hun/ter2@h/site", ""},
      {"mysql://u:hunter2%zz@h/site", "can't be parsed"},
      {"mysql://u:hunter2%00@h/site", "NUL"},
      {"postgres://u:hunter2@h/site", "the scheme isn't mysql"},
      {"mysql:///site", "no host"},
      {"mysql://u:hunter2@/site", "no host"},
      {"mysql://h/site", "no user"},
      {"mysql://:hunter2@h/site", "no user"},
      {"mysql://u:hunter2@h", "no database"},
      {"mysql://u:hunter2@h/", "no database"},
      {"mysql://u:hunter2@h/a/b", "isn't the name of a database"},
      {"mysql://u:hunter2@h:0/site", "the port"},
      {"mysql://u:hunter2@h:65536/site", "the port"},
      {"mysql://u:hunter2@h:/site", "the port"},
      {"mysql://u:hunter2@h/site?tls=1", "a query"},
      {"mysql://u:hunter2@h/site#x", "a fragment"},
  };
  for (const auto& [url, why] : cases) {
    const std::string text = refusal(url);
    EXPECT_THAT(text, HasSubstr("not the URL of a MySQL server")) << url;
    EXPECT_THAT(text, HasSubstr(why)) << url;
    EXPECT_THAT(text, Not(HasSubstr("hun"))) << url;
  }
}

TEST(MysqlOptions, NumbersThatCantBeMeantAreRefused) {
  using std::chrono::milliseconds;
  const std::string url = "mysql://u@h/d";
  EXPECT_NO_THROW(mysql({.url = url}));
  EXPECT_THROW(mysql({}), Unusable);
  EXPECT_THROW(mysql({.url = url, .writers = 0}), Unusable);
  EXPECT_THROW(mysql({.url = url, .connect_timeout = milliseconds(0)}), Unusable);
  EXPECT_THROW(mysql({.url = url, .read_timeout = milliseconds(2'000)}), Unusable);
  EXPECT_THROW(mysql({.url = url, .lock_timeout = milliseconds(9'500)}), Unusable);
}

}  // namespace
}  // namespace weir::sql

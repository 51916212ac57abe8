#include "site/user/user.h"

#include <gtest/gtest.h>

namespace weir::site::user {
namespace {

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Email, AddressesAreTaken) {
  for (const std::string email : {"ann@example.com", "a@b", "ann+tag@mail.example.co.uk", "\"q\"@example.com",
                                  "用户@例子.公司", "x@[127.0.0.1]"})
    EXPECT_EQ(fault_of_email(email), std::nullopt) << email;
}

TEST(Email, WhatCannotBeOneIsRefused) {
  for (const std::string email :
       {"", "ann", "@example.com", "ann@", "a@b@c", "a b@example.com", " a@example.com", "a@example.com ",
        "a@exam\tple.com", "a@.com", "a@example.", "a@ex..ample", "a\x7f@example.com", "\xff@example.com"})
    EXPECT_NE(fault_of_email(email), std::nullopt) << email;
  EXPECT_NE(fault_of_email(std::string("a\0b@example.com", 15)), std::nullopt);
}

TEST(Email, LengthsHaveAnEnd) {
  const std::string longest = "a@" + repeated("b", kMaxEmailBytes - 2);
  EXPECT_EQ(fault_of_email(longest), std::nullopt);
  EXPECT_NE(fault_of_email(longest + "b"), std::nullopt);
  EXPECT_EQ(fault_of_email(repeated("a", 64) + "@b"), std::nullopt);
  EXPECT_NE(fault_of_email(repeated("a", 65) + "@b"), std::nullopt);
}

TEST(Email, CaseDoesNotTellPeopleApart) {
  EXPECT_EQ(normalised_email("Ann.B@Example.COM"), "ann.b@example.com");
  EXPECT_EQ(normalised_email("ÄNN@x"), "Änn@x");  // ASCII only
}

TEST(Password, LengthIsInBytes) {
  EXPECT_NE(fault_of_password(repeated("a", 7)), std::nullopt);
  EXPECT_EQ(fault_of_password(repeated("a", 8)), std::nullopt);
  EXPECT_EQ(fault_of_password("密码密"), std::nullopt);  // 9 bytes
  EXPECT_EQ(fault_of_password(repeated("a", 1024)), std::nullopt);
  EXPECT_NE(fault_of_password(repeated("a", 1025)), std::nullopt);
  EXPECT_NE(fault_of_password(std::string("12345678\0", 9)), std::nullopt);
  EXPECT_NE(fault_of_password("1234567\xff"), std::nullopt);
}

TEST(Nickname, LengthIsInCodePoints) {
  EXPECT_NE(fault_of_nickname(""), std::nullopt);
  EXPECT_EQ(fault_of_nickname(repeated("🦦", 64)), std::nullopt);
  EXPECT_NE(fault_of_nickname(repeated("🦦", 65)), std::nullopt);
  EXPECT_NE(fault_of_nickname(std::string("a\0b", 3)), std::nullopt);
  EXPECT_NE(fault_of_nickname("\xc3\x28"), std::nullopt);
}

TEST(Nickname, ComesFromTheEmailWhenNoneIsGiven) {
  EXPECT_EQ(nickname_from_email("Ann.B@example.com"), "Ann.B");
  EXPECT_EQ(fault_of_nickname(nickname_from_email(repeated("a", 64) + "@example.com")), std::nullopt);
}

TEST(About, MayBeEmpty) {
  EXPECT_EQ(fault_of_about(""), std::nullopt);
  EXPECT_EQ(fault_of_about(repeated("好", 1024)), std::nullopt);
  EXPECT_NE(fault_of_about(repeated("好", 1025)), std::nullopt);
}

TEST(Birthday, IsADayThatExists) {
  EXPECT_EQ(fault_of_birthday("2000-02-29"), std::nullopt);
  for (const std::string day : {"", "1900-02-29", "2001-13-01", "2001-1-1", "2001-01-01T00:00:00Z", "x"})
    EXPECT_NE(fault_of_birthday(day), std::nullopt) << day;
}

TEST(Roles, OnlyAdminMakesAnAdmin) {
  EXPECT_TRUE(is_admin({"editor", "admin"}));
  EXPECT_FALSE(is_admin({"administrator"}));
  EXPECT_FALSE(is_admin({}));
}

}  // namespace
}  // namespace weir::site::user

#include "site/user/user_codec.h"

#include <gtest/gtest.h>

namespace weir::site::user {
namespace {

TEST(UserCodec, GivesBackWhatItWasGiven) {
  const auto codec = user_codec();
  User user{.id = (Id{1} << 62) + 7,
            .email = "ann@example.com",
            .phone = "+4930123456",
            .nickname = "Ann 安 😀 \"x\"",
            .about = "line\nline",
            .birthday = "1990-02-28",
            .roles = {"admin", "editor"},
            .created_at = from_micros(1'467'331'200'123'456)};
  EXPECT_EQ(codec.decode(codec.encode(user)), user);
  user.email = user.phone = user.birthday = std::nullopt;
  user.about.clear();
  user.roles.clear();
  EXPECT_EQ(codec.decode(codec.encode(user)), user);
  EXPECT_EQ(codec.key(user.id), "4611686018427387911");
}

TEST(UserCodec, WhatIsNoProfileThrows) {
  const auto codec = user_codec();
  User user;
  user.nickname = "n";
  user.roles = {"admin"};
  const std::string whole = codec.encode(user);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_ANY_THROW(codec.decode(whole.substr(0, size))) << size;
  for (const char* text : {"[]", "{}", "null", "7", R"({"id":"7"})"})
    EXPECT_ANY_THROW(codec.decode(text)) << text;
}

}  // namespace
}  // namespace weir::site::user

#include "weir/redis/command.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "weir/base/fault.h"
#include "weir/redis/address.h"
#include "weir/redis/script.h"

namespace weir::redis {
namespace {

TEST(Command, IsEncodedAsRedisReadsIt) {
  const Command set("set", "key", std::string("a\0\r\n", 4), "PX", 1500, -1);
  EXPECT_EQ(set.name(), "SET");
  EXPECT_FALSE(set.is_idempotent());
  EXPECT_EQ(
      set.bytes(),
      std::string("*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$4\r\na\0\r\n\r\n$2\r\nPX\r\n$4\r\n1500\r\n$2\r\n-1\r\n",
                  58));
  EXPECT_EQ(Command("PING").bytes(), "*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(Command("GET", "").bytes(), "*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
  EXPECT_TRUE(Command::read("GET", "key").is_idempotent());
  const std::vector<Command::Argument> keys{"a", "b"};
  EXPECT_EQ(Command("DEL", std::span(keys)).bytes(), "*3\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\nb\r\n");
}

TEST(Command, RefusesWhatOthersWouldSufferFrom) {
  for (const char* name :
       {"SUBSCRIBE", "unsubscribe", "BLPOP", "monitor", "MULTI", "EXEC", "SELECT", "AUTH", "WATCH"})
    EXPECT_THROW(Command{name}, std::invalid_argument) << name;
  EXPECT_THROW(Command("CLIENT", "Reply", "OFF"), std::invalid_argument);
  EXPECT_NO_THROW(Command("CLIENT", "LIST"));
  for (const char* name : {"", "GET key", "G\r\n", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG"})
    EXPECT_THROW(Command{name}, std::invalid_argument) << name;
}

TEST(Address, IsReadFromAUrl) {
  const auto plain = Address::parse("redis://cache.local");
  EXPECT_EQ(plain.host, "cache.local");
  EXPECT_EQ(plain.port, 6379);
  EXPECT_EQ(plain.database, 0U);
  const auto full = Address::parse("redis://ann:p%40ss%3A%2F@10.1.2.3:7000/12");
  EXPECT_EQ(full.user, "ann");
  EXPECT_EQ(full.password, "p@ss:/");
  EXPECT_EQ(full.host, "10.1.2.3");
  EXPECT_EQ(full.port, 7000);
  EXPECT_EQ(full.database, 12U);
  const auto password = Address::parse("redis://:secret@localhost:6379/0");
  EXPECT_EQ(password.user, "");
  EXPECT_EQ(password.password, "secret");
  const auto six = Address::parse("redis://[::1]:6380/");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.endpoint(), "[::1]:6380");
}

TEST(Address, RefusesWhatItCantMeanAndKeepsThePassword) {
  for (const char* url :
       {"", "localhost", "http://localhost", "rediss://localhost", "redis://", "redis://:6379", "redis:///0",
        "redis://h:0", "redis://h:65536", "redis://h:x", "redis://:secret@h:70000", "redis://h/x",
        "redis://h/-1", "redis://h/1/2", "redis://h/0?timeout=1", "redis://h/0#x", "redis://ann@h",
        "redis://:secret@h /0"}) {
    try {
      (void)Address::parse(url);
      FAIL() << url;
    } catch (const Unusable& error) {
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
    }
  }
}

TEST(Servers, AreOneOrACluster) {
  const auto one = Servers::parse("redis://:secret@h:7000/3");
  EXPECT_TRUE(one.seeds.empty());
  EXPECT_EQ(one.address, Address::parse("redis://:secret@h:7000/3"));
  const auto several = Servers::parse("redis-cluster://ann:p%40ss%2F@a:7000,[::1]:7001,c/0");
  ASSERT_EQ(several.seeds.size(), 3U);
  EXPECT_EQ(several.seeds[0], (Address{.host = "a", .port = 7000, .user = "ann", .password = "p@ss/"}));
  EXPECT_EQ(several.seeds[1].endpoint(), "[::1]:7001");
  EXPECT_EQ(several.seeds[2], (Address{.host = "c", .user = "ann", .password = "p@ss/"}));
  EXPECT_EQ(Servers::parse("redis-cluster://a").seeds.size(), 1U);
  EXPECT_EQ(Servers::parse("redis-cluster://a,b/").seeds.size(), 2U);
}

TEST(Servers, RefuseWhatTheyCantMeanAndKeepThePassword) {
  std::string many = "redis-cluster://h";
  for (std::size_t i = 0; i < Servers::kMaxSeeds; ++i) many += ",h";
  for (const std::string& url :
       {std::string("redis://:secret@a:1,b:2/0"), std::string("redis-cluster://"),
        std::string("redis-cluster://a,"), std::string("redis-cluster://,a"),
        std::string("redis-cluster://a,,b"), std::string("redis-cluster://a/1"),
        std::string("redis-cluster://a:0"), std::string("redis-cluster://a:1,b:x"),
        std::string("redis-cluster://:secret@a,b@c"), std::string("redis-cluster:///0"),
        std::string("redis-cluster://:secret@a/0?x"), std::string("rediss-cluster://a"), many}) {
    try {
      (void)Servers::parse(url);
      ADD_FAILURE() << url;
    } catch (const Unusable& error) {
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
    }
  }
}

TEST(Script, IsKnownByItsDigest) {
  EXPECT_EQ(Script("one", "return 1").sha1(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
}

}  // namespace
}  // namespace weir::redis

#include "weir/queue/rabbit_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/fault.h"
#include "weir/queue/rabbit_queue.h"

namespace weir::queue {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string refusal(std::string_view url) {
  try {
    (void)RabbitAddress::parse(url);
  } catch (const Unusable& error) {
    return error.what();
  }
  return "taken";
}

TEST(RabbitUrl, IsTakenApart) {
  const auto full = RabbitAddress::parse("amqp://weir:secret@mq.example:5673/site");
  EXPECT_EQ(full.host, "mq.example");
  EXPECT_EQ(full.port, 5673);
  EXPECT_EQ(full.user, "weir");
  EXPECT_EQ(full.password, "secret");
  EXPECT_EQ(full.vhost, "site");
  EXPECT_EQ(full.place(), "amqp://weir@mq.example:5673, virtual host site");
  const auto least = RabbitAddress::parse("amqp://localhost");
  EXPECT_EQ(least.port, 5672);
  EXPECT_EQ(least.user, "guest");
  EXPECT_EQ(least.password, "guest");
  EXPECT_EQ(least.vhost, "/");
  EXPECT_EQ(RabbitAddress::parse("amqp://localhost/").vhost, "/");
  const auto six = RabbitAddress::parse("amqp://u:p@[::1]:33/x");
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.place(), "amqp://u@[::1]:33, virtual host x");
}

TEST(RabbitUrl, IsDecoded) {
  const auto address = RabbitAddress::parse("amqp://we%40ir:p%3Aw%2f%23%25%e6%b1%89@h/%2F");
  EXPECT_EQ(address.user, "we@ir");
  EXPECT_EQ(address.password, "p:w/#%\xE6\xB1\x89");
  EXPECT_EQ(address.vhost, "/");
  EXPECT_EQ(RabbitAddress::parse("amqp://u:a:b@h/a%2Fb%20c").vhost, "a/b c");
  EXPECT_EQ(RabbitAddress::parse("amqp://u:a:b@h/x").password, "a:b");
}

TEST(RabbitUrl, BadOnesAreRefusedWithTheReasonAndWithoutThePassword) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "can't be parsed"},
      {"mq.example/site", "can't be parsed"},
      {"amqp://u:hunter2@h@x/site", ""},
      {"amqp://u:hunter2#@h/site", ""},
      {"amqp://u:hun/ter2@h/site", ""},
      {"amqp://u:hunter2%zz@h/site", "can't be parsed"},
      {"amqp://u:hunter2%00@h/site", "NUL"},
      {"amqps://u:hunter2@h/site", "TLS isn't supported"},
      {"kafka://u:hunter2@h/site", "the scheme isn't amqp"},
      {"amqp:///site", "no host"},
      {"amqp://u:hunter2@/site", "no host"},
      {"amqp://:hunter2@h/site", "no user"},
      {"amqp://u@h/site", "without a password"},
      {"amqp://u:hunter2@h/a/b", "one virtual host"},
      {"amqp://u:hunter2@h:0/site", "the port"},
      {"amqp://u:hunter2@h:65536/site", "the port"},
      {"amqp://u:hunter2@h:/site", "the port"},
      {"amqp://u:hunter2@h/site?heartbeat=1", "a query"},
      {"amqp://u:hunter2@h/site#x", "a fragment"},
  };
  for (const auto& [url, why] : cases) {
    const std::string text = refusal(url);
    EXPECT_THAT(text, HasSubstr("not the URL of a RabbitMQ broker")) << url;
    EXPECT_THAT(text, HasSubstr(why)) << url;
    EXPECT_THAT(text, Not(HasSubstr("hun"))) << url;
  }
  EXPECT_THAT(refusal("amqp://u:hunter2@h/" + std::string(256, 'v')), HasSubstr("too long"));
}

TEST(RabbitOptions, NumbersThatCantBeMeantAreRefused) {
  using std::chrono::milliseconds;
  const std::string url = "amqp://u:p@h/d";
  EXPECT_THROW(RabbitQueue({}), Unusable);
  EXPECT_THROW(RabbitQueue({.url = url, .partitions = 0}), Unusable);
  EXPECT_THROW(RabbitQueue({.url = url, .retention = std::chrono::seconds(0)}), Unusable);
  EXPECT_THROW(RabbitQueue({.url = url, .replication = 0}), Unusable);
  EXPECT_THROW(RabbitQueue({.url = url, .prefetch = 0}), Unusable);
  EXPECT_THROW(RabbitQueue({.url = url, .connect_timeout = milliseconds(0)}), Unusable);
  EXPECT_THROW(RabbitQueue({.url = url, .publish_timeout = milliseconds(0)}), Unusable);
  EXPECT_THROW(RabbitQueue({.url = url, .heartbeat = std::chrono::seconds(0)}), Unusable);
}

}  // namespace
}  // namespace weir::queue

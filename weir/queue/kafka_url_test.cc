#include "weir/queue/kafka_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/base/fault.h"

namespace weir::queue {
namespace {

std::string bootstrap(std::string_view url) {
  return KafkaAddress::parse(url).bootstrap();
}

TEST(KafkaUrl, NamesItsBrokers) {
  EXPECT_EQ(bootstrap("kafka://broker"), "broker:9092");
  EXPECT_EQ(bootstrap("kafka://127.0.0.1:19092/"), "127.0.0.1:19092");
  EXPECT_EQ(bootstrap("kafka://a.example:1,b_2.example,[::1]:65535,[fe80::1]"),
            "a.example:1,b_2.example:9092,[::1]:65535,[fe80::1]:9092");
  const auto address = KafkaAddress::parse("kafka://[::1]:9093");
  ASSERT_EQ(address.brokers.size(), 1U);
  EXPECT_EQ(address.brokers[0].host, "::1");
  EXPECT_EQ(address.brokers[0].port, 9093);
}

TEST(KafkaUrl, RefusesWhatItDoesNotMeanWithoutRepeatingIt) {
  for (const std::string url : {"",
                                "kafka",
                                "kafka:",
                                "kafka:/",
                                "kafka://",
                                "kafka:///",
                                "amqp://secret",
                                "KAFKA://secret",
                                "kafka://secret:",
                                "kafka://secret:0",
                                "kafka://secret:65536",
                                "kafka://secret:9092x",
                                "kafka://secret:-1",
                                "kafka://secret: 1",
                                "kafka://secret,",
                                "kafka://,secret",
                                "kafka://secret,,b",
                                "kafka://secret/topic",
                                "kafka://secret?a=b",
                                "kafka://secret#a",
                                "kafka://secret//",
                                "kafka://se cret",
                                "kafka://secr\xc3\xa9t",
                                "kafka://secret:1:2",
                                "kafka://::1",
                                "kafka://[::1",
                                "kafka://[]",
                                "kafka://[secret]",
                                "kafka://[::1]secret",
                                "kafka://[::1]9092",
                                "kafka://[::secret/1]",
                                "kafka://me:secret@host",
                                "kafka://secret@host:9092",
                                "kafka://[::1],[",
                                "kafka://secret\n"}) {
    SCOPED_TRACE(url);
    try {
      KafkaAddress::parse(url);
      ADD_FAILURE() << "was taken";
    } catch (const Unusable& error) {
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("secret")));
    }
  }
  EXPECT_THROW(KafkaAddress::parse(std::string_view("kafka://a\0b", 11)), Unusable);
  EXPECT_THROW(KafkaAddress::parse("kafka://" + std::string(254, 'a')), Unusable);
}

TEST(KafkaUrl, SaysThatPasswordsAreForLater) {
  try {
    KafkaAddress::parse("kafka://user:word@host");
    FAIL();
  } catch (const Unusable& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("SASL is not supported yet"));
  }
}

}  // namespace
}  // namespace weir::queue

#include "weir/queue/kafka_record.h"

#include <gtest/gtest.h>

#include <string>

#include "weir/base/random.h"

namespace weir::queue::detail {
namespace {

std::string encoded(const Record& record) {
  const auto bytes = encode_identity(record);
  return {bytes.data(), bytes.size()};
}

// As other clients are told to write it.
TEST(KafkaRecord, IsWhatTheHeaderPromises) {
  Record record;
  record.producer = 0x0102030405060708;
  record.lane = 0x0a0b0c0d;
  record.sequence = 0x1112131415161718;
  record.appended_at = from_micros(-2);
  EXPECT_EQ(encoded(record), std::string("\x01"
                                         "\x08\x07\x06\x05\x04\x03\x02\x01"
                                         "\x0d\x0c\x0b\x0a"
                                         "\x18\x17\x16\x15\x14\x13\x12\x11"
                                         "\xfe\xff\xff\xff\xff\xff\xff\xff"));
}

TEST(KafkaRecord, ComesBackAsItWas) {
  Random random(20260701);
  for (int i = 0; i < 1'000; ++i) {
    Record record, back;
    record.producer = random.next();
    record.lane = static_cast<std::uint32_t>(random.next());
    record.sequence = random.next();
    record.appended_at = from_micros(static_cast<std::int64_t>(random.next()));
    ASSERT_TRUE(decode_identity(encoded(record), back));
    EXPECT_EQ(back.producer, record.producer);
    EXPECT_EQ(back.lane, record.lane);
    EXPECT_EQ(back.sequence, record.sequence);
    EXPECT_EQ(back.appended_at, record.appended_at);
  }
}

TEST(KafkaRecord, BytesOfAnotherLengthOrVersionAreNone) {
  Record record;
  record.producer = 7;
  const std::string good = encoded(record);
  Record back;
  back.producer = 99;
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(decode_identity(good.substr(0, length), back));
  EXPECT_FALSE(decode_identity(good + '\0', back));
  for (int version : {0, 2, 127, 255}) {
    std::string other = good;
    other[0] = static_cast<char>(version);
    EXPECT_FALSE(decode_identity(other, back));
  }
  EXPECT_EQ(back.producer, 99U);
}

}  // namespace
}  // namespace weir::queue::detail

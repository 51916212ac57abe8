#include "weir/queue/rabbit_wire.h"

#include <gtest/gtest.h>

#include "weir/base/random.h"
#include "weir/queue/rabbit_catalog.h"

namespace weir::queue::detail {
namespace {

constexpr WallTime kNow{std::chrono::seconds(1'800'000'000)};

// What is wrong with it, or nothing; `message` has it then.
std::optional<std::string> receive(RabbitMessage& message, const amqp_basic_properties_t& properties,
                                   std::string_view body, std::string_view routing_key = "3") {
  auto fault = message.begin(properties, body.size(), routing_key);
  if (fault) return fault;
  for (std::size_t at = 0; at < body.size(); at += 7) message.add(body.substr(at, 7));
  EXPECT_TRUE(message.whole());
  message.finish("t", 3, 11, 99, kNow);
  return fault;
}

amqp_table_entry_t header(const char* name, std::uint8_t kind, std::string_view value) {
  amqp_table_entry_t entry;
  entry.key = amqp_cstring_bytes(name);
  entry.value.kind = kind;
  entry.value.value.bytes = to_bytes(value);
  return entry;
}

TEST(RabbitWire, ARecordComesBackAsItWas) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 500; ++round) {
    const auto text = [&](std::size_t most) {
      std::string bytes(random.below(most + 1), ' ');
      for (char& byte : bytes) byte = static_cast<char>(random.next());
      return bytes;
    };
    const std::string key = text(kMaxKeyBytes), id = text(kMaxEventIdBytes), payload = text(200);
    const Record record{"t",
                        key,
                        payload,
                        id,
                        random.next() >> random.below(64),
                        static_cast<std::uint32_t>(random.next() >> random.below(64)),
                        random.next() >> random.below(64),
                        from_micros(static_cast<std::int64_t>(random.next() >> random.below(64)))};
    const RabbitProperties properties(record);
    EXPECT_EQ(properties.get().delivery_mode, 2);
    RabbitMessage received;
    ASSERT_FALSE(receive(received, properties.get(), payload));
    const Message& message = received.message();
    EXPECT_EQ(message.topic, "t");
    EXPECT_EQ(message.key, key);
    EXPECT_EQ(message.payload, payload);
    EXPECT_EQ(message.event_id, id);
    EXPECT_EQ(message.producer, record.producer);
    EXPECT_EQ(message.lane, record.lane);
    EXPECT_EQ(message.sequence, record.sequence);
    EXPECT_EQ(message.appended_at, record.appended_at);
    EXPECT_EQ(message.partition, 3U);
    EXPECT_EQ(message.offset, 11);
  }
}

TEST(RabbitWire, AMessageOfAnotherProgramIsARecordOfProducer0) {
  RabbitMessage bare;
  ASSERT_FALSE(receive(bare, {}, "body", "article:42"));
  EXPECT_EQ(bare.message().producer, 0U);
  EXPECT_EQ(bare.message().key, "article:42");
  EXPECT_EQ(bare.message().payload, "body");
  EXPECT_EQ(bare.message().event_id, "");
  EXPECT_EQ(bare.message().lane, 3U);
  EXPECT_EQ(bare.message().sequence, 99U);
  EXPECT_EQ(bare.message().appended_at, kNow);

  std::array headers{header("other", AMQP_FIELD_KIND_UTF8, "x"),
                     header("key", AMQP_FIELD_KIND_BYTES, "article:7")};
  amqp_basic_properties_t full{};
  full._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TIMESTAMP_FLAG;
  full.headers = {static_cast<int>(headers.size()), headers.data()};
  full.message_id = to_bytes("id-1");
  full.timestamp = 1'700'000'000;
  RabbitMessage message;
  ASSERT_FALSE(receive(message, full, ""));
  EXPECT_EQ(message.message().key, "article:7");
  EXPECT_EQ(message.message().payload, "");
  EXPECT_EQ(message.message().event_id, "id-1");
  EXPECT_EQ(message.message().appended_at, WallTime(std::chrono::seconds(1'700'000'000)));
  // A time that can't be: as if there were none.
  full.timestamp = ~std::uint64_t{0};
  RabbitMessage undated;
  ASSERT_FALSE(receive(undated, full, ""));
  EXPECT_EQ(undated.message().appended_at, kNow);
}

TEST(RabbitWire, WhatCantBeARecordIsRefused) {
  const auto fault = [](const amqp_basic_properties_t& properties, std::uint64_t size = 1,
                        std::string_view routing_key = "") {
    return RabbitMessage().begin(properties, size, routing_key).value_or("taken");
  };
  EXPECT_EQ(fault({}, kMaxRabbitBody), "taken");
  EXPECT_EQ(fault({}, kMaxRabbitBody + 1), "its body is too large");
  const std::string long_id(kMaxEventIdBytes + 1, 'i'), long_key(kMaxKeyBytes + 1, 'k');
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_MESSAGE_ID_FLAG;
  properties.message_id = to_bytes(long_id);
  EXPECT_EQ(fault(properties), "its message id is too long");
  const auto with = [&](const amqp_table_entry_t& entry) {
    amqp_table_entry_t copy = entry;
    amqp_basic_properties_t some{};
    some._flags = AMQP_BASIC_HEADERS_FLAG;
    some.headers = {1, &copy};
    return fault(some);
  };
  EXPECT_EQ(with(header("key", AMQP_FIELD_KIND_UTF8, long_key)), "its key is too long");
  const RabbitProperties good({"t", "k", "", "", 1, 2, 3, kNow});
  const std::string identity(to_view(good.get().headers.entries[1].value.value.bytes));
  EXPECT_EQ(with(header("weir", AMQP_FIELD_KIND_BYTES, identity)), "taken");
  for (std::size_t cut = 0; cut < identity.size(); ++cut)
    EXPECT_EQ(with(header("weir", AMQP_FIELD_KIND_BYTES, identity.substr(0, cut))),
              "its header weir can't be read")
        << cut;
  EXPECT_EQ(with(header("weir", AMQP_FIELD_KIND_BYTES, identity + '\0')), "its header weir can't be read");
  EXPECT_EQ(with(header("weir", AMQP_FIELD_KIND_BYTES, '\2' + identity.substr(1))),
            "its header weir can't be read");
}

TEST(RabbitCatalog, SaysTogetherWhatItsMessagesSay) {
  RabbitCatalog one, other;
  one.add("a", {4, {"g"}});
  one.add("b.c", {1, {}});
  other.add("a", {2, {"h"}});
  other.add("d", {8, {"g", "h"}});
  auto merged = RabbitCatalog::decode(one.encode());
  ASSERT_TRUE(merged);
  EXPECT_EQ(*merged, one);
  merged->merge(*RabbitCatalog::decode(other.encode()));
  EXPECT_EQ(merged->topics().at("a"), (RabbitCatalog::Topic{4, {"g", "h"}}));
  EXPECT_EQ(merged->topics().at("b.c"), (RabbitCatalog::Topic{1, {}}));
  EXPECT_EQ(merged->topics().at("d"), (RabbitCatalog::Topic{8, {"g", "h"}}));
  const std::string bytes = merged->encode();
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(RabbitCatalog::decode(std::string_view(bytes).substr(0, cut))) << cut;
  EXPECT_FALSE(RabbitCatalog::decode(bytes + "x"));
}

}  // namespace
}  // namespace weir::queue::detail

#include "weir/queue/record_batch.h"

#include <gtest/gtest.h>

#include "weir/base/random.h"
#include "weir/queue/dead_letter.h"

namespace weir::queue {
namespace {

std::string random_text(Random& random, std::size_t most) {
  std::string text(random.below(most + 1), '\0');
  for (char& c : text) c = static_cast<char>(random.below(256));
  return text;
}

TEST(RecordBatch, GivesBackWhatItWasGiven) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::array<std::string, 3>> texts(random.below(50));
    std::vector<Record> records;
    for (auto& [key, payload, event_id] : texts) {
      key = random_text(random, 40);
      payload = random_text(random, 300);
      event_id = random.chance(0.2) ? random_text(random, 128) : "";
      const bool next = !records.empty() && random.chance(0.7);
      Record record = next ? records.back() : Record{};
      record.key = key;
      record.payload = payload;
      record.event_id = event_id;
      if (next) {
        ++record.sequence;
      } else {
        record.producer = random.next();
        record.lane = static_cast<std::uint32_t>(random.next());
        record.sequence = random.next();
      }
      record.appended_at = from_micros(static_cast<std::int64_t>(random.next()) >> random.below(60));
      records.push_back(record);
    }
    BatchWriter writer;
    for (const auto& record : records) writer.add(record);
    BatchReader reader(writer.finish());
    ASSERT_TRUE(reader.whole());
    Record got;
    for (const auto& want : records) {
      ASSERT_TRUE(reader.next(got));
      EXPECT_EQ(got.key, want.key);
      EXPECT_EQ(got.payload, want.payload);
      EXPECT_EQ(got.event_id, want.event_id);
      EXPECT_EQ(got.producer, want.producer);
      EXPECT_EQ(got.lane, want.lane);
      EXPECT_EQ(got.sequence, want.sequence);
      EXPECT_EQ(got.appended_at, want.appended_at);
    }
    EXPECT_FALSE(reader.next(got));
  }
}

TEST(RecordBatch, IsSmallForConsecutiveRecords) {
  BatchWriter writer;
  for (std::uint64_t i = 1; i <= 1000; ++i)
    writer.add(
        {"t", "article:42", "", "", 77, 3, i, from_micros(1'700'000'000'000'000 + 20 * std::int64_t(i))});
  EXPECT_LT(writer.finish().size(), 1000 * 16u);
}

TEST(RecordBatch, RefusesDamage) {
  BatchWriter writer;
  writer.add({"t", "article:42", "payload", "", 77, 3, 1, {}});
  const auto bytes = writer.finish();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> damaged(bytes.begin(), bytes.end());
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(BatchReader(damaged).whole()) << "byte " << i;
    EXPECT_FALSE(BatchReader(bytes.first(i)).whole()) << "cut at " << i;
  }
}

TEST(DeadLetter, KeepsReasonPositionAndPayload) {
  Message message;
  message.topic = "read_events";
  message.payload = std::string_view("\0with a nul", 11);
  message.partition = 5;
  message.offset = 123'456'789'012;
  const std::string payload = encode_dead_letter(message, "interaction", std::string(2'000, 'x'));
  const auto letter = decode_dead_letter(payload);
  ASSERT_TRUE(letter);
  EXPECT_EQ(letter->reason, std::string(1'000, 'x'));
  EXPECT_EQ(letter->topic, "read_events");
  EXPECT_EQ(letter->group, "interaction");
  EXPECT_EQ(letter->partition, 5u);
  EXPECT_EQ(letter->offset, 123'456'789'012);
  EXPECT_EQ(letter->payload, message.payload);
  EXPECT_FALSE(decode_dead_letter(""));
  EXPECT_FALSE(decode_dead_letter(std::string_view(payload).substr(0, 900)));
  EXPECT_EQ(dead_letter_topic("read_events", "interaction"), "read_events.interaction.dead");
}

}  // namespace
}  // namespace weir::queue

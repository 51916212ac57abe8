#include "weir/queue/embedded_queue.h"

#include <gtest/gtest.h>

#include <fstream>

#include "weir/queue/record_batch.h"
#include "weir/queue/test_support.h"
#include "weir/testing/temp_dir.h"

namespace weir::queue {
namespace {

using namespace std::chrono_literals;

std::size_t sum(const std::vector<std::int64_t>& numbers) {
  std::int64_t total = 0;
  for (const auto number : numbers) total += number;
  return static_cast<std::size_t>(total);
}

// The payloads of a key, by offset.
std::vector<std::string> stored(EmbeddedQueue& queue, const std::string& topic, const std::string& key) {
  std::vector<std::string> found;
  for (std::uint32_t partition = 0; partition < queue.partitions(topic); ++partition)
    for (const auto& batch : queue.fetch(topic, partition, 0, 1'000)) {
      BatchReader reader(batch.records);
      for (Record record; reader.next(record);)
        if (record.key == key) found.emplace_back(record.payload);
    }
  return found;
}

TEST(EmbeddedQueue, KeepsOrderByKeyAcrossPublishesAndStarts) {
  TempDir dir;
  {
    EmbeddedQueue queue({.path = dir / "queue.db"});
    queue.publish(Records(100));
  }
  EmbeddedQueue queue({.path = dir / "queue.db"});
  EXPECT_EQ(queue.topics(), std::vector<std::string>{"t"});
  EXPECT_EQ(queue.partitions("t"), 8u);
  EXPECT_EQ(sum(queue.ends("t")), 100u);
  queue.publish(Records(50));
  EXPECT_EQ(sum(queue.ends("t")), 150u);
  const auto of_k3 = stored(queue, "t", "k3");
  ASSERT_EQ(of_k3.size(), 15u);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(of_k3[i], std::to_string((i % 10) * 10 + 3));
}

TEST(EmbeddedQueue, FetchesFromAnOffsetWithinABatch) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 1});
  queue.publish(Records(10));
  queue.publish(Records(10));
  queue.publish(Records(10));
  const auto batches = queue.fetch("t", 0, 15, 10);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].first_offset, 10);
  EXPECT_EQ(batches[0].count, 10);
  EXPECT_EQ(batches[1].first_offset, 20);
  EXPECT_EQ(queue.fetch("t", 0, 0, 1).size(), 1u);
  EXPECT_TRUE(queue.fetch("t", 0, 30, 10).empty());
}

TEST(EmbeddedQueue, GroupsKeepTheirOwnOffsetsWhichOnlyGrow) {
  TempDir dir;
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 2});
  queue.publish(Records(20));
  queue.subscribe("t", "early");
  queue.subscribe("t", "late", From::latest);
  EXPECT_EQ(total_lag(queue, "t", "early"), 20);
  EXPECT_EQ(total_lag(queue, "t", "late"), 0);
  queue.publish(Records(10));
  EXPECT_EQ(total_lag(queue, "t", "early"), 30);
  EXPECT_EQ(total_lag(queue, "t", "late"), 10);
  const std::vector<EmbeddedQueue::Offset> to{{0, 5}, {1, 3}}, back{{0, 2}, {1, 4}};
  queue.commit("t", "early", to);
  queue.commit("t", "early", back);
  EXPECT_EQ(queue.committed("t", "early"), (std::vector<std::int64_t>{5, 4}));
  queue.subscribe("t", "early", From::latest);  // known: keeps its offsets
  EXPECT_EQ(queue.committed("t", "early"), (std::vector<std::int64_t>{5, 4}));
  EXPECT_EQ(total_lag(queue, "t", "late"), 10);
  // The same as a metric.
  double shown = 0;
  telemetry::scrape();
  for (const char* partition : {"0", "1"})
    shown += telemetry::gauge("weir_queue_lag", "Events published and not yet committed by the group",
                              {{"topic", "t"}, {"group", "early"}, {"partition", partition}})
                 .value();
  EXPECT_EQ(shown, 21);
}

TEST(EmbeddedQueue, TopicsGrowToMorePartitionsAndNeverShrink) {
  TempDir dir;
  {
    EmbeddedQueue({.path = dir / "queue.db", .partitions = 4}).publish(Records(10));
  }
  {
    EXPECT_EQ(EmbeddedQueue({.path = dir / "queue.db", .partitions = 2}).partitions("t"), 4u);
  }
  EmbeddedQueue queue({.path = dir / "queue.db", .partitions = 6});
  EXPECT_EQ(queue.partitions("t"), 6u);
  EXPECT_EQ(sum(queue.ends("t")), 10u);
}

TEST(EmbeddedQueue, CountsWhatItTook) {
  TempDir dir;
  const auto published = [] {
    return telemetry::counter("weir_queue_published_total", "Events that the queue has taken",
                              {{"topic", "counted"}})
        .value();
  };
  EmbeddedQueue queue({.path = dir / "queue.db"});
  const double before = published();
  queue.publish(Records(42, "counted"));
  EXPECT_EQ(published(), before + 42);
}

TEST(EmbeddedQueue, DeletesWhatIsPastTheRetentionInSmallSteps) {
  TempDir dir;
  ManualClock clock;
  EmbeddedQueue queue(
      {.path = dir / "queue.db", .partitions = 1, .retention = std::chrono::hours(1), .clock = &clock});
  const int batches = EmbeddedQueue::kPruneRows + 10;
  for (int i = 0; i < batches; ++i) queue.publish(Records(2));
  clock.advance(40min);
  queue.publish(Records(2));
  EXPECT_FALSE(queue.prune_step());
  EXPECT_EQ(queue.fetch("t", 0, 0, 1'000).size(), static_cast<std::size_t>(batches) + 1);
  clock.advance(30min);
  EXPECT_TRUE(queue.prune_step());
  EXPECT_EQ(queue.fetch("t", 0, 0, 1'000).size(), 11u);
  EXPECT_FALSE(queue.prune_step());
  const auto left = queue.fetch("t", 0, 0, 1'000);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].first_offset, 2 * batches);
  // Offsets go on after everything is gone, and a new group begins at what is there.
  clock.advance(2h);
  queue.prune_step();
  EXPECT_TRUE(queue.fetch("t", 0, 0, 1'000).empty());
  queue.publish(Records(1));
  EXPECT_EQ(queue.fetch("t", 0, 0, 10).at(0).first_offset, 2 * batches + 2);
  queue.subscribe("t", "new");
  EXPECT_EQ(total_lag(queue, "t", "new"), 1);
}

TEST(EmbeddedQueue, RefusesAFileThatIsNoDatabase) {
  TempDir dir;
  std::ofstream(dir / "queue.db") << std::string(10'000, 'x');
  EXPECT_THROW(EmbeddedQueue({.path = dir / "queue.db"}), Unusable);
}

TEST(EmbeddedQueueConcurrency, TheHousekeeperPrunesUntilNothingIsLeftToPrune) {
  TempDir dir;
  ManualClock clock;
  EmbeddedQueue queue({.path = dir / "queue.db",
                       .partitions = 1,
                       .retention = std::chrono::hours(1),
                       .prune_every = 1ms,
                       .clock = &clock});
  for (int i = 0; i < 3 * EmbeddedQueue::kPruneRows; ++i) queue.publish(Records(1));
  clock.advance(2h);
  EXPECT_TRUE(eventually([&] { return queue.fetch("t", 0, 0, 1).empty(); }));
}

TEST(EmbeddedQueueConcurrency, SeesWhatAnotherProcessPublishes) {
  TempDir dir;
  EmbeddedQueue ours({.path = dir / "queue.db"});
  ours.create_topic("t");
  EmbeddedQueue theirs({.path = dir / "queue.db"});
  theirs.publish(Records(5));
  ours.publish(Records(5));
  EXPECT_TRUE(eventually([&] { return sum(ours.ends("t")) == 10; }));
  EXPECT_TRUE(eventually([&] { return sum(theirs.ends("t")) == 10; }));
}

}  // namespace
}  // namespace weir::queue

#include "weir/queue/kafka_queue.h"

#include <gtest/gtest.h>

#include "weir/base/fault.h"

namespace weir::queue {
namespace {

TEST(KafkaTopic, NamesAreChecked) {
  for (const std::string name : {"a", "read_events", "read_events.interaction.dead", "A-9._", "..."})
    EXPECT_NO_THROW(check_kafka_topic(name)) << name;
  EXPECT_NO_THROW(check_kafka_topic(std::string(249, 'x')));
  for (const std::string name : {"", ".", "..", "a b", "a/b", "a:b", "caf\xc3\xa9", "a\n"})
    EXPECT_THROW(check_kafka_topic(name), Unusable) << name;
  EXPECT_THROW(check_kafka_topic(std::string(250, 'x')), Unusable);
}

}  // namespace
}  // namespace weir::queue

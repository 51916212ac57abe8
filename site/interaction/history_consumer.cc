#include "site/interaction/history_consumer.h"

#include <string>

namespace weir::site::interaction {
namespace {

// Each event of somebody known may be a row of its own, so a batch is smaller than one that only counts: it
// holds the store's writer for about 20 ms at most.
constexpr std::size_t kMaxBatch = 2'000;

}  // namespace

HistoryConsumer::HistoryConsumer(InteractionService& interactions, queue::Queue& queue,
                                 std::chrono::seconds remember, const Clock& clock)
    : inbox_({.consumer = std::string(kHistoryGroup), .retention = remember, .clock = &clock}),
      consumer_(
          queue,
          {.topic = std::string(kReadTopic), .group = std::string(kHistoryGroup), .max_batch = kMaxBatch},
          [this, &interactions](std::span<const queue::Message> messages) {
            interactions.record_history_now(inbox_, messages);
          }) {}

}  // namespace weir::site::interaction

#include "site/interaction/interaction_consumer.h"

#include <string>

namespace weir::site::interaction {

InteractionConsumer::InteractionConsumer(InteractionService& interactions, queue::Queue& queue,
                                         std::chrono::seconds remember, const Clock& clock)
    : inbox_({.consumer = std::string(kCountGroup), .retention = remember, .clock = &clock}),
      consumer_(queue, {.topic = std::string(kReadTopic), .group = std::string(kCountGroup)},
                [this, &interactions](std::span<const queue::Message> messages) {
                  interactions.count_reads_now(inbox_, messages);
                }) {}

}  // namespace weir::site::interaction

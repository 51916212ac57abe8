// HistoryConsumer: remembers what each person read. The group `history` of the topic of reads; what nobody
// known has read is skipped. Its inbox keeps a replay from bringing back what was deleted meanwhile.
#pragma once

#include <chrono>

#include "site/interaction/interaction_service.h"
#include "weir/idempotency/inbox.h"
#include "weir/queue/batch_consumer.h"
#include "weir/queue/queue.h"

namespace weir::site::interaction {

class HistoryConsumer {
 public:
  // See InteractionConsumer.
  HistoryConsumer(InteractionService& interactions, queue::Queue& queue, std::chrono::seconds remember,
                  const Clock& clock = Clock::system());

  void start() { consumer_.start(); }
  void stop() { consumer_.stop(); }
  const idempotency::Inbox& inbox() const { return inbox_; }

 private:
  idempotency::Inbox inbox_;
  queue::BatchConsumer consumer_;
};

}  // namespace weir::site::interaction

// InteractionConsumer: counts reads. The group `interaction` of the topic of reads: batches, each in one
// transaction with its inbox, so that each event counts exactly once however often it is delivered.
#pragma once

#include <chrono>

#include "site/interaction/interaction_service.h"
#include "weir/idempotency/inbox.h"
#include "weir/queue/batch_consumer.h"
#include "weir/queue/queue.h"

namespace weir::site::interaction {

class InteractionConsumer {
 public:
  // `remember`: how long the inbox vouches for what it has seen; it must exceed the queue's retention. Makes
  // the group known, and what it is given must outlive it. Begins with start().
  InteractionConsumer(InteractionService& interactions, queue::Queue& queue, std::chrono::seconds remember,
                      const Clock& clock = Clock::system());

  void start() { consumer_.start(); }
  // Finishes and commits what is in hand.
  void stop() { consumer_.stop(); }

  // Forgets what is past `remember`, by `idempotency::Inbox::prune_step`.
  const idempotency::Inbox& inbox() const { return inbox_; }

 private:
  idempotency::Inbox inbox_;
  queue::BatchConsumer consumer_;
};

}  // namespace weir::site::interaction

// The road that reads take: a journal and a sender where people are answered, and the queue behind them, which
// is also where the counting begins.
#pragma once

#include <memory>
#include <optional>

#include "site/app/roles.h"
#include "weir/config/settings.h"
#include "weir/queue/journal.h"
#include "weir/queue/producer.h"
#include "weir/queue/queue.h"

namespace weir::site {

// The server's alone: commands don't open the journal.
struct ReadEvents {
  // A queue that is away doesn't stop the start: the journal is the spool.
  ReadEvents(const config::Settings& settings, const Roles& roles);

  std::unique_ptr<queue::Queue> queue;      // null for who neither publishes nor counts
  std::optional<queue::Journal> journal;    // web
  std::optional<queue::Producer> producer;  // web
};

}  // namespace weir::site

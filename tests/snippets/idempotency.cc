// What weir/idempotency/README.md takes as given.
#include "weir/idempotency/inbox.h"

namespace weir {

const sql::Query kRemember{"history", "remember", "INSERT INTO history (key, read_at) VALUES (?, ?)"};

void snippet(sql::Database& store, std::span<const queue::Message> batch) {
  // SNIPPET
}

}  // namespace weir

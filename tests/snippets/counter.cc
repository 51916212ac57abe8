// What weir/counter/README.md takes as given.
#include "weir/counter/counter.h"

namespace weir {

void show(const std::string& biz, Id biz_id, std::int64_t count, std::int64_t version);

void snippet(sql::Database& store, const idempotency::Inbox& inbox,
             std::span<const queue::Message> messages) {
  // SNIPPET
}

}  // namespace weir

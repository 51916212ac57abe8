// What weir/counter/README.md takes as given.
#include "weir/counter/counter.h"
#include "weir/counter/counts_follower.h"

namespace weir {

void show(const std::string& biz, Id biz_id, std::int64_t count, std::int64_t version);
boost::asio::awaitable<counter::CountsFollower::Updates> load_rows(std::vector<std::string> keys);

boost::asio::awaitable<void> snippet(sql::Database& store, const idempotency::Inbox& inbox,
                                     std::span<const queue::Message> messages, redis::Client& client) {
  // SNIPPET
}

}  // namespace weir

// What weir/queue/README.md takes as given.
#include "weir/queue/batch_consumer.h"
#include "weir/queue/embedded_queue.h"
#include "weir/queue/journal.h"
#include "weir/queue/producer.h"

namespace weir {

boost::asio::awaitable<void> snippet(std::string data, queue::Acks acks, std::string_view event_id) {
  // SNIPPET
}

}  // namespace weir

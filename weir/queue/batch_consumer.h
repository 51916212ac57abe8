// BatchConsumer: a consumer group that hands its handler whole batches, and commits when the handler is done.
//
// It collects up to `max_batch` messages or for `max_wait`, whichever comes first, calls the handler once,
// then commits the offsets: a crash in between delivers the batch again, with the same ids (see
// idempotency::Inbox). Each partition belongs to one of the group's threads, so work for one key never
// overlaps or reorders. When a partition goes to another member while its batch waits for the world, what is
// left of the batch is dropped here: the other has it.
//
// What the handler throws decides what happens:
// - weir::Unavailable (and sql::Error but for misuse and broken constraints): the world is away. The same
//   batch is tried again with jittered backoff, as long as it takes: parking a whole topic helps nobody.
// - queue::Park: the messages it names are parked, the rest is tried again at once.
// - anything else: bisection finds the poisonous message; alone it is tried `max_tries` times, then parked.
// A parked message goes to the dead-letter topic with its reason and where it came from (see dead_letter.h);
// the rest of its batch goes on. Nothing is committed before the dead letters are.
//
// Metric: weir_queue_consumed_total{topic,group,outcome} with ok (handled), retried (delivered to the handler
// once more) and dead (parked), in messages.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/queue/event.h"
#include "weir/queue/queue.h"

namespace weir::queue {

// Thrown by a handler that knows which messages of its batch can't be processed, by their indices. The
// handler must have had no effect yet (its transaction rolls back).
class Park : public std::runtime_error {
 public:
  Park(std::vector<std::size_t> which, const std::string& reason)
      : std::runtime_error(reason), which_(std::move(which)) {}
  const std::vector<std::size_t>& which() const { return which_; }

 private:
  std::vector<std::size_t> which_;
};

class BatchConsumer {
 public:
  struct Options {
    std::string topic;
    std::string group;
    std::size_t max_batch = 10'000;             // messages that one call of the handler gets
    std::size_t max_bytes = 8 * 1024 * 1024;    // stored bytes that one batch may begin to read
    std::chrono::milliseconds max_wait{100};    // from the first message of a batch
    unsigned threads = 1;                       // members of the group; partitions are dealt to them
    int max_tries = 3;                          // of a message that fails alone
    std::chrono::milliseconds retry_first{50};  // backoff between tries
    std::chrono::milliseconds retry_max{5'000};
    From from = From::earliest;  // where a new group begins
  };
  // Gets messages in the order of each partition, at least one; views are valid during the call. Called by
  // the group's threads, by each for its own partitions.
  using Handler = std::function<void(std::span<const Message>)>;

  // Makes the group known, and the one that keeps its dead letters; while the queue is away, start() goes on
  // trying. The queue must outlive the consumer; stop the consumer first, so that it can commit.
  BatchConsumer(Queue& queue, Options options, Handler handler);
  // Stops.
  ~BatchConsumer();
  BatchConsumer(const BatchConsumer&) = delete;
  BatchConsumer& operator=(const BatchConsumer&) = delete;

  // Once. Throws std::system_error when the system refuses one of the threads; the consumer is stopped then.
  void start();
  // Finishes and commits the batches in hand, then ends. A batch that waits for the world to come back is
  // left to the next start. Idempotent.
  void stop();

 private:
  class Worker;

  void make_known();
  // False when the consumer stops meanwhile.
  bool pause(std::chrono::milliseconds time);

  Queue& queue_;
  const Options options_;
  const Handler handler_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace weir::queue

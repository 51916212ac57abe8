// Queue: where published events wait for their consumers. EmbeddedQueue, KafkaQueue and RabbitQueue stand
// behind this door; Producer and BatchConsumer stand before it and don't know which it is.
//
// A topic has partitions; events of one key are in one of them, in the order in which they were published.
// Each consumer group gets everything, at least once; within a group each partition is read by one member at
// a time. Events keep their ids (see Record) however often they travel.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weir/queue/event.h"

namespace weir::queue {

struct Lag {
  std::string topic, group;
  std::uint32_t partition;
  std::int64_t lag;  // events published and not yet committed by the group
};

// Where a group that is new begins.
enum class From { earliest, latest };

// One member of a group, with the partitions that are its own at the moment. Of one thread at a time, but
// for interrupt(). Leaves the group when it is destroyed.
class Subscription {
 public:
  struct Limits {
    std::size_t messages = 10'000;
    std::size_t bytes = 8 * 1024 * 1024;      // that one take() may begin to read
    std::chrono::milliseconds max_wait{100};  // from the first message on
  };

  Subscription() = default;
  virtual ~Subscription() = default;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // Waits for a message, then gathers more until one of the limits is reached, and appends them, those of a
  // partition in their order. Views are valid until the next take(), commit() or rewind(). Nothing may come,
  // at times: call it again. False when the queue was stopped. Throws weir::Unavailable when the queue can't
  // be read; nothing was taken then.
  virtual bool take(std::vector<Message>& messages, const Limits& limits) = 0;

  // All that was taken is done with: a later member goes on behind it. Only grows, and is nothing when the
  // partition has gone to another member meanwhile. Throws weir::Unavailable; then it can be called again.
  virtual void commit() = 0;

  // For who keeps what he took for long: call it at least each kKeepEvery. False when some of that has gone to
  // another member: what is done for it now may be done twice. Call rewind() then. Doesn't throw.
  virtual bool keep() noexcept = 0;
  static constexpr std::chrono::milliseconds kKeepEvery{1000};

  // Forgets what was taken and not committed: it will be taken again, by whom it belongs to.
  virtual void rewind() = 0;

  // From any thread: take() returns at once, now and from now on.
  virtual void interrupt() noexcept = 0;
};

// Thread-safe. Calls wait for a disk or a network: never from an I/O thread.
class Queue {
 public:
  Queue() = default;
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Creates the topic if it is new, with the configured partitions; one that has fewer grows to them. Its
  // metrics are there at 0 from then on. Publishing to an unknown topic creates it too.
  virtual void create_topic(const std::string& topic) = 0;
  virtual std::vector<std::string> topics() = 0;
  virtual std::uint32_t partitions(const std::string& topic) = 0;

  // Publishes the records, in their order for each key, and returns when the queue has them as its `acks` say.
  // Throws weir::Unavailable when it can't take all of them now: some may have been taken, so publish them
  // again, with the ids that they have.
  virtual void publish(std::span<const Record> records) = 0;

  // Makes the group known: it gets what is published from now on, and what the topic holds if it begins at the
  // earliest. A group that is known stays where it is.
  virtual void subscribe(const std::string& topic, const std::string& group, From from = From::earliest) = 0;

  // Makes a member of a group that is known. A queue that deals partitions itself does so among the `of`
  // members of this process; the others leave that to the broker. The queue must outlive the member.
  struct Share {
    std::uint32_t number = 0, of = 1;
  };
  virtual std::unique_ptr<Subscription> join(const std::string& topic, const std::string& group,
                                             Share share) = 0;

  // Of all groups that are known here.
  virtual std::vector<Lag> lag() = 0;

  // Whether it could be reached lately, without asking.
  virtual bool available() const noexcept = 0;

  // Ends all waiting; what was published is as safe as its `acks` say. Implied by the destructor.
  virtual void stop() = 0;
};

}  // namespace weir::queue

// A group's member that reads its fixed partitions of an EmbeddedQueue: a detail of embedded_queue.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/queue/embedded_queue.h"
#include "weir/queue/queue.h"
#include "weir/queue/record_batch.h"

namespace weir::queue::detail {

class EmbeddedSubscription final : public Subscription {
 public:
  // The group must be known to the queue.
  EmbeddedSubscription(EmbeddedQueue& queue, std::string topic, std::string group, Queue::Share share);
  ~EmbeddedSubscription() override;

  bool take(std::vector<Message>& messages, const Limits& limits) override;
  void commit() override;
  bool keep() noexcept override { return true; }  // partitions are dealt once and for all
  void rewind() override;
  void interrupt() noexcept override;

 private:
  // What take() may still add, and what its views look at.
  struct Room {
    std::vector<Message>& messages;
    std::size_t max_messages;
    std::size_t bytes_left;
    std::vector<std::shared_ptr<const StoredBatch>>& held;
    bool full() const { return messages.size() >= max_messages; }
  };
  class Source;
  struct Place {
    std::uint32_t partition;
    std::int64_t committed;
  };

  void open(const std::vector<Place>& places);
  std::size_t waiting();
  bool gather(const Limits& limits);
  void collect(std::vector<Message>& messages, const Limits& limits);

  EmbeddedQueue& queue_;
  const std::string topic_, group_;
  std::vector<Source> sources_;
  std::vector<std::shared_ptr<const StoredBatch>> held_;  // what the messages taken last look at
  std::atomic<bool> interrupted_{false};
  bool queue_stopped_ = false;
};

}  // namespace weir::queue::detail

// RabbitSubscription: a group's member, with a connection and a thread of its own. Internal.
//
// The thread consumes the queues of the group's partitions, serves the heartbeats, keeps what is delivered until
// take() wants it, and sends the acknowledgements that commit() asks for. A connection that is lost makes all
// that it delivered void: the thread connects again, and the broker delivers again, to whom it likes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/clock.h"
#include "weir/queue/queue.h"
#include "weir/queue/rabbit_connection.h"
#include "weir/queue/rabbit_topology.h"
#include "weir/queue/rabbit_wire.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue::detail {

class RabbitSubscription final : public Subscription {
 public:
  struct Settings {
    RabbitLink link;
    RabbitShape shape;
    std::string topic, group;
    std::uint32_t partitions;
    Queue::Share share;
    std::uint16_t prefetch;
    const Clock* clock;
    std::atomic<bool>* available;                   // is told how it goes
    std::function<void(RabbitSubscription&)> left;  // is called by the destructor, first
  };
  // How long a member leaves the others' partitions to those that they were dealt to, before it stands by for them.
  static constexpr std::chrono::milliseconds kStandByAfter{2'000};

  // Returns when its first attempt to connect has ended, one way or the other. Throws std::system_error.
  explicit RabbitSubscription(Settings settings);
  ~RabbitSubscription() override;

  bool take(std::vector<Message>& messages, const Limits& limits) override;
  void commit() override;
  bool keep() noexcept override;
  void rewind() override;
  void interrupt() noexcept override;

  // From any thread: take() answers that the queue was stopped, now and from now on.
  void stop() noexcept;
  bool is_of(std::string_view topic, std::string_view group) const {
    return settings_.topic == topic && settings_.group == group;
  }
  // From any thread: what it was given of the partition and hasn't committed.
  std::int64_t uncommitted(std::uint32_t partition) const;

 private:
  using Delivery = std::unique_ptr<RabbitMessage>;
  class Reader;

  void run();
  void serve(RabbitConnection& connection);
  void consume(RabbitConnection& connection, bool own);
  void begin_session();
  void end_session(const std::string& why);
  std::optional<std::uint64_t> tag_to_acknowledge();
  void deliver(Delivery delivery, std::uint32_t partition);
  bool is_closing() const;

  bool is_void() const { return taken_session_ != session_; }
  void forget_void();
  bool has_enough(const Limits& limits) const;

  const Settings settings_;
  WakeUp wake_;
  telemetry::Counter damaged_;

  mutable std::mutex mutex_;  // guards all down to the thread
  std::condition_variable changed_;
  std::uint64_t session_ = 0;  // grows with each connection; 0: there was none yet
  bool connected_ = false;
  std::optional<std::string> failure_;  // why there is no connection
  bool interrupted_ = false, stopped_ = false, closing_ = false;
  const Limits* gathering_ = nullptr;  // what take() gathers for, while it waits for more
  std::deque<Delivery> ready_;         // in the order of their tags
  std::size_t ready_bytes_ = 0;
  std::deque<Delivery> taken_;  // of session taken_session_
  std::uint64_t taken_session_ = 0;
  std::vector<std::int64_t> uncommitted_;  // by partition
  std::uint64_t acknowledged_ = 0;         // commit() asks for this tag and all before; 0: for none
  std::int64_t next_offset_ = 0;
  std::uint64_t last_foreign_ = 0;  // sequence of a message of another program
  std::thread thread_;
};

}  // namespace weir::queue::detail

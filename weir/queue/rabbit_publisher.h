// RabbitPublisher: the connection and the thread that a RabbitQueue publishes with. Internal.
//
// The thread serves the connection's heartbeats, sends what publish() is given in windows, and counts the
// confirms. A message is done with when the broker has confirmed it; what it returned because no queue wants it,
// or refused, makes the publish fail.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/clock.h"
#include "weir/queue/event.h"
#include "weir/queue/rabbit_connection.h"
#include "weir/queue/rabbit_topology.h"

namespace weir::queue::detail {

class RabbitPublisher {
 public:
  struct Routed {
    const Record* record;
    std::uint32_t partition;
  };
  // Messages that are sent ahead of their confirms at most, and their bytes, so that they fit into the buffers of
  // a connection whose broker doesn't read.
  static constexpr std::size_t kWindowMessages = 2'000, kWindowBytes = 1024 * 1024;

  // `available` is told how it goes; it must outlive this. Throws std::system_error.
  RabbitPublisher(RabbitLink link, RabbitShape shape, std::chrono::milliseconds timeout,
                  std::atomic<bool>& available);
  ~RabbitPublisher();
  RabbitPublisher(const RabbitPublisher&) = delete;
  RabbitPublisher& operator=(const RabbitPublisher&) = delete;

  // As Queue::publish; the topics must have been made once. Thread-safe: one after the other.
  void publish(std::span<const Routed> records);
  // Those who wait get Unavailable.
  void stop();

 private:
  struct Job;
  class Window;

  void run();
  void serve_idle();
  void work(Job& job);
  void connect();
  void make_topics(const Job& job);
  void transmit(Job& job);
  void send(const Routed& routed);
  void receive(Job& job, Window& window, std::chrono::milliseconds at_most);
  void handle(const amqp_frame_t& frame, Job& job, Window& window);
  void give_up_in_time(const Job& job);
  bool pause(const Job& job, std::chrono::milliseconds time);
  Job* next_job();

  const RabbitLink link_;
  const RabbitShape shape_;
  const std::chrono::milliseconds timeout_;
  std::atomic<bool>& available_;
  SocketBreaker breaker_;
  WakeUp wake_;

  std::mutex mutex_;  // guards the jobs, their ends, and:
  std::condition_variable changed_;
  std::deque<Job*> jobs_;
  bool stopping_ = false;

  // The thread's own.
  std::unique_ptr<RabbitConnection> connection_;
  std::uint64_t next_tag_ = 1;  // of the connection's next message
  std::vector<std::string> made_topics_;
  std::optional<std::string> blocked_;  // why the broker takes nothing, while it doesn't
  std::string routing_key_, exchange_;
  std::thread thread_;
};

}  // namespace weir::queue::detail

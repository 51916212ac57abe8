// Producer: what handlers publish with. The journal takes the event at once; a sender thread moves record
// batches from the journal to the queue and frees the journal when the queue has answered.
//
// When the queue is away (a full disk, no broker), the sender tries again with backoff and the journal is the spool.
// Events that an earlier process left in the journal are sent first, with the ids that they had.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "weir/base/offload.h"
#include "weir/base/unique_function.h"
#include "weir/queue/event.h"
#include "weir/queue/journal.h"
#include "weir/queue/queue.h"

namespace weir::queue {

class Producer {
 public:
  struct Options {
    Acks acks = Acks::leader;
    // How long events may gather before they are sent on, when nobody waits for them.
    std::chrono::milliseconds linger{50};
    std::size_t max_records = 16'384;           // of one write to the queue
    std::size_t max_bytes = 4 * 1024 * 1024;    // of one write to the queue
    std::chrono::milliseconds retry_first{20};  // backoff while the queue is away
    std::chrono::milliseconds retry_max{1'000};
    // What must be so before the first event is sent: that its groups are known, say. Tried again until it
    // returns.
    std::function<void(Queue&)> prepare = [](Queue&) {};
  };
  // Callers of publish_acked that may wait at the same time; more are refused as Unavailable.
  static constexpr std::size_t kMaxWaiting = 20'000;

  // The journal and the queue must outlive the producer. Throws std::system_error when the system refuses the
  // sender's thread.
  Producer(Journal& journal, Queue& queue, Options options);
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  // Copies the event into the journal and returns: under a microsecond, no system call, never waits. False
  // when it was dropped (journal full), which is counted. Thread-safe.
  bool publish(const Event& event) noexcept;

  // Publishes and waits as `acks` says: none, the journal has it; leader and all, the queue has committed it.
  // False when the journal is full. Throws Unavailable when the queue can't take it now: the event is in the
  // journal then and will be sent, so that trying again without an event_id may count it twice. Thread-safe.
  // The event's bytes are copied when the coroutine begins: await it in the expression that calls it.
  boost::asio::awaitable<bool> publish_acked(Event event);

  // Waits until everything published before the call is in the queue; false when the time is over first.
  bool flush(std::chrono::milliseconds at_most);

  // Sends what is left as long as the queue takes it, at most this long, then ends the sender. What remains
  // is sent by the next process.
  void stop(std::chrono::milliseconds at_most = std::chrono::seconds(5));

 private:
  using Completion = UniqueFunction<void(Outcome<void>)>;
  struct Waiter {
    Journal::Position position;
    Completion done;
  };

  void run();
  template <class F>
  bool insist(F f);
  void rest();
  bool is_stopping();
  bool is_out_of_time();
  void move_to(Journal::Position position);
  void complete(Journal::Position upto, const std::exception_ptr& error);
  void wait_for(Journal::Position position, Completion done);

  Journal& journal_;
  Queue& queue_;
  const Options options_;

  std::mutex mutex_;               // guards all down to the sender's own
  std::condition_variable wake_;   // the sender
  std::condition_variable moved_;  // those who flush
  std::vector<Waiter> waiters_;
  Journal::Position sent_ = 0;
  bool hurry_ = false;  // somebody waits
  bool stopping_ = false;
  bool ended_ = false;  // nothing will be sent any more
  std::chrono::steady_clock::time_point stop_by_{};

  std::vector<Record> records_;  // the sender's own
  std::thread sender_;
};

}  // namespace weir::queue

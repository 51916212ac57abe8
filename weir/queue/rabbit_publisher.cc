#include "weir/queue/rabbit_publisher.h"

#include <algorithm>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/telemetry/log.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue::detail {
namespace {

using std::chrono::milliseconds;

// How often an idle connection is looked at, and how long a wait for confirms goes without looking at the time.
constexpr milliseconds kPumpEvery{200};
// How much later than its deadline a publish is ended by force, when the thread hangs in the system.
constexpr milliseconds kGrace{500};
// Messages that are sent before confirms are looked for again.
constexpr std::size_t kSendsPerLook = 64;

// The broker has answered, and won't take it: connecting again won't help.
class Refusal : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

SteadyTime now() {
  return Clock::system().steady_now();
}

}  // namespace

struct RabbitPublisher::Job {
  std::span<const Routed> records;
  SteadyTime deadline;
  std::size_t confirmed = 0;             // this many from the first
  std::optional<std::string> refused{};  // why the broker didn't take one of those that it has answered for
  bool done = false;
  std::string error{};  // empty: it went well
};

// What was sent on the present connection and isn't confirmed yet: records `first`, .. of the job.
class RabbitPublisher::Window {
 public:
  Window(std::size_t first, std::uint64_t first_tag) : first_(first), first_tag_(first_tag) {}

  void sent(std::size_t bytes) {
    waiting_.push_back({.bytes = bytes});
    bytes_ += bytes;
  }
  bool full() const { return waiting_.size() >= kWindowMessages || bytes_ >= kWindowBytes; }
  bool empty() const { return waiting_.empty(); }
  // All before it are confirmed.
  std::size_t first() const { return first_; }

  void settle(std::uint64_t tag, bool and_before) {
    if (tag < first_tag_) return;  // of a publish that was given up before
    const auto index = static_cast<std::size_t>(tag - first_tag_);
    for (std::size_t i = and_before ? 0 : index; i <= index && i < waiting_.size(); ++i) {
      bytes_ -= waiting_[i].bytes;
      waiting_[i] = {.settled = true};
    }
    for (; !waiting_.empty() && waiting_.front().settled; ++first_, ++first_tag_) waiting_.pop_front();
  }

 private:
  std::size_t first_;
  std::uint64_t first_tag_;
  struct Waiting {
    std::size_t bytes = 0;
    bool settled = false;
  };
  std::deque<Waiting> waiting_;
  std::size_t bytes_ = 0;
};

RabbitPublisher::RabbitPublisher(RabbitLink link, RabbitShape shape, milliseconds timeout,
                                 std::atomic<bool>& available)
    : link_(std::move(link)), shape_(shape), timeout_(timeout), available_(available), thread_([this] {
        run();
      }) {}

RabbitPublisher::~RabbitPublisher() {
  stop();
}

void RabbitPublisher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (!jobs_.empty()) breaker_.break_now();
  }
  changed_.notify_all();
  wake_.wake();
  if (thread_.joinable()) thread_.join();
}

void RabbitPublisher::publish(std::span<const Routed> records) {
  if (records.empty()) return;
  Job job{.records = records, .deadline = now() + timeout_};
  std::unique_lock lock(mutex_);
  if (stopping_) throw Unavailable("the queue was stopped");
  jobs_.push_back(&job);
  wake_.wake();
  while (!changed_.wait_until(lock, job.deadline + kGrace, [&] { return job.done; })) {
    // The thread has the records: it must let go of them first.
    if (!jobs_.empty() && jobs_.front() == &job) breaker_.break_now();
    changed_.wait_for(lock, kGrace, [&] { return job.done; });
  }
  if (!job.error.empty()) throw Unavailable(job.error);
}

// --- The thread --------------------------------------------------------------------------------------------

void RabbitPublisher::run() {
  for (;;) {
    Job* const job = next_job();
    if (job != nullptr) {
      work(*job);
      const std::lock_guard lock(mutex_);
      jobs_.pop_front();
      job->done = true;
      changed_.notify_all();
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ && jobs_.empty()) break;
    }
    serve_idle();
  }
  if (connection_) connection_->close();
}

RabbitPublisher::Job* RabbitPublisher::next_job() {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() ? nullptr : jobs_.front();
}

// Waits for work, and serves the heartbeats meanwhile.
void RabbitPublisher::serve_idle() {
  wake_.wait(connection_ ? connection_->socket() : -1, kPumpEvery);
  if (!connection_) return;
  try {
    Job nobody{};
    Window nothing(0, next_tag_);
    receive(nobody, nothing, milliseconds(0));
  } catch (const Unavailable& error) {
    log::warn("RabbitMQ: the connection for publishing is lost: {}", error.what());
    connection_.reset();
    available_ = false;
  }
}

// Until all is confirmed, or the job's error says why not.
void RabbitPublisher::work(Job& job) {
  Backoff backoff(RabbitQueue::kRetryFirst, RabbitQueue::kRetryMax);
  for (;;) {
    try {
      if (!connection_) connect();
      make_topics(job);
      transmit(job);
      available_ = true;
      return;
    } catch (const Refusal& refusal) {
      job.error = refusal.what();
      return;
    } catch (const std::exception& error) {
      job.error = job.refused.value_or(error.what());
      connection_.reset();
      available_ = false;
    }
    if (job.refused || !pause(job, backoff.next())) return;
    job.error.clear();
  }
}

// False when there is no time for another try.
bool RabbitPublisher::pause(const Job& job, milliseconds time) {
  const SteadyTime until = now() + time;
  std::unique_lock lock(mutex_);
  return until < job.deadline && !changed_.wait_until(lock, until, [this] { return stopping_; });
}

void RabbitPublisher::connect() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Refusal("the queue was stopped");
  }
  blocked_.reset();
  made_topics_.clear();
  auto fresh = std::make_unique<RabbitConnection>(link_, &breaker_);
  fresh->confirm_publishes();
  next_tag_ = 1;
  connection_ = std::move(fresh);
}

// Once for each connection: a broker that has lost its disk, or was replaced, has none.
void RabbitPublisher::make_topics(const Job& job) {
  for (const Routed& routed : job.records) {
    const std::string_view topic = routed.record->topic;
    if (!made_topics_.empty() && made_topics_.back() == topic) continue;
    const auto known = std::ranges::find(made_topics_, topic);
    if (known != made_topics_.end()) {
      std::swap(*known, made_topics_.back());
      continue;
    }
    std::string name(topic);
    make_topic(*connection_, shape_, name);
    made_topics_.push_back(std::move(name));
  }
}

void RabbitPublisher::transmit(Job& job) {
  Window window(job.confirmed, next_tag_);
  std::size_t next = job.confirmed;
  while (window.first() < job.records.size()) {
    for (std::size_t sends = 0; sends < kSendsPerLook && next < job.records.size(); ++sends) {
      if (blocked_ || job.refused || window.full()) break;
      const Record& record = *job.records[next].record;
      send(job.records[next++]);
      window.sent(record.payload.size() + record.key.size());
    }
    const bool more = next < job.records.size() && !blocked_ && !job.refused && !window.full();
    receive(job, window, more ? milliseconds(0) : kPumpEvery);
    job.confirmed = window.first();
    if (job.refused && window.empty()) throw Refusal(*job.refused);
    give_up_in_time(job);
  }
}

void RabbitPublisher::give_up_in_time(const Job& job) {
  if (now() < job.deadline) return;
  // The connection is kept: on a new one the same messages would be sent again, for the broker to find later.
  if (blocked_) throw Refusal("the broker takes nothing: " + *blocked_);
  throw Unavailable("the broker hasn't confirmed in time");
}

void RabbitPublisher::send(const Routed& routed) {
  const Record& record = *routed.record;
  set_routing_key(routing_key_, shape_.exchange, routed.partition, record.key);
  exchange_ = record.topic;
  const RabbitProperties properties(record);
  connection_->publish(exchange_, routing_key_, true, properties.get(), record.payload);
  ++next_tag_;
}

// Waits for one frame, and takes those that are there with it.
void RabbitPublisher::receive(Job& job, Window& window, milliseconds at_most) {
  amqp_frame_t frame;
  for (; connection_->next_frame(frame, at_most); at_most = milliseconds(0)) handle(frame, job, window);
}

void RabbitPublisher::handle(const amqp_frame_t& frame, Job& job, Window& window) {
  // Headers and bodies are those of returned messages.
  if (frame.frame_type != AMQP_FRAME_METHOD) return;
  const void* const decoded = frame.payload.method.decoded;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto& ack = *static_cast<const amqp_basic_ack_t*>(decoded);
      window.settle(ack.delivery_tag, ack.multiple != 0);
      break;
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto& nack = *static_cast<const amqp_basic_nack_t*>(decoded);
      job.refused = "the broker has refused a message";
      window.settle(nack.delivery_tag, nack.multiple != 0);
      break;
    }
    case AMQP_BASIC_RETURN_METHOD: {
      const auto& returned = *static_cast<const amqp_basic_return_t*>(decoded);
      job.refused = "no group would get it: topic " + std::string(to_view(returned.exchange)) +
                    ", partition " + std::string(to_view(returned.routing_key)) + ": " +
                    std::string(to_view(returned.reply_text));
      break;
    }
    case AMQP_CONNECTION_BLOCKED_METHOD:
      blocked_ = to_view(static_cast<const amqp_connection_blocked_t*>(decoded)->reason);
      log::warn("RabbitMQ takes nothing: {}", *blocked_);
      break;
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      blocked_.reset();
      log::info("RabbitMQ takes messages again");
      break;
    default:
      break;
  }
}

}  // namespace weir::queue::detail

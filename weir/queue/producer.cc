#include "weir/queue/producer.h"

#include <algorithm>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/base/fault.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How often the sender tries to allocate the space that a full disk refused to the journal.
constexpr std::chrono::seconds kGrowEvery{1};

}  // namespace

Producer::Producer(Journal& journal, Queue& queue, Options options)
    : journal_(journal), queue_(queue), options_(std::move(options)), sender_([this] { run(); }) {}

Producer::~Producer() {
  stop();
}

bool Producer::publish(const Event& event) noexcept {
  return journal_.append(event).has_value();
}

boost::asio::awaitable<bool> Producer::publish_acked(Event event) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Unavailable("the producer is stopping");
    if (waiters_.size() >= kMaxWaiting) throw Unavailable("too many events wait for the queue");
  }
  const auto position = journal_.append(event);
  if (!position) co_return false;
  if (options_.acks == Acks::none) co_return true;
  auto begin = [this, position = *position](auto complete) {
    wait_for(position, Completion(std::move(complete)));
  };
  co_await await_completion<void>(std::move(begin));
  co_return true;
}

void Producer::wait_for(Journal::Position position, Completion done) {
  Outcome<void> outcome;
  {
    const std::lock_guard lock(mutex_);
    if (sent_ < position && !ended_) {
      waiters_.push_back({position, std::move(done)});
      hurry_ = true;
      wake_.notify_one();
      return;
    }
    if (sent_ < position) outcome.error = std::make_exception_ptr(Unavailable("the producer has ended"));
  }
  if (!outcome.error) outcome.value.emplace();
  done(std::move(outcome));
}

bool Producer::flush(std::chrono::milliseconds at_most) {
  const Journal::Position target = journal_.end();
  std::unique_lock lock(mutex_);
  hurry_ = true;
  wake_.notify_one();
  moved_.wait_for(lock, at_most, [&] { return sent_ >= target || ended_; });
  return sent_ >= target;
}

void Producer::stop(std::chrono::milliseconds at_most) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) stop_by_ = SteadyClock::now() + at_most;
    stopping_ = true;
  }
  wake_.notify_one();
  if (sender_.joinable()) sender_.join();
}

// --- The sender's thread -----------------------------------------------------------------------------------

void Producer::run() {
  auto next_growth = SteadyClock::now();
  bool prepared = false;
  for (;;) {
    if (journal_.degraded() && SteadyClock::now() >= next_growth) {
      journal_.grow();
      next_growth = SteadyClock::now() + kGrowEvery;
    }
    // Looked at before reading: what was published before stop() is read once more.
    const bool last = is_stopping();
    journal_.read(records_, options_.max_records, options_.max_bytes);
    if (!records_.empty() && !insist([&] {
          if (!prepared) options_.prepare(queue_);
          prepared = true;
          queue_.publish(records_);
        }))
      break;
    journal_.release();
    move_to(journal_.read_position());
    if (last && (records_.empty() || is_out_of_time())) break;
    if (records_.size() < options_.max_records / 2) rest();
  }
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  complete(~Journal::Position{0}, std::make_exception_ptr(Unavailable("the producer has ended")));
  moved_.notify_all();
}

bool Producer::is_stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool Producer::is_out_of_time() {
  const std::lock_guard lock(mutex_);
  return stopping_ && SteadyClock::now() >= stop_by_;
}

// Tries as often as it takes. False when the time to stop comes first.
template <class F>
bool Producer::insist(F f) {
  Backoff backoff(options_.retry_first, options_.retry_max);
  for (;;) {
    try {
      f();
      return true;
    } catch (const std::exception& error) {
      telemetry::swallowed("queue.publish", error);
      // All of them: those whose events aren't in this batch would wait for it first.
      complete(~Journal::Position{0}, std::make_exception_ptr(Unavailable("the queue is away")));
    }
    std::unique_lock lock(mutex_);
    const auto until = SteadyClock::now() + backoff.next();
    wake_.wait_until(lock, until, [this] { return stopping_; });
    if (!stopping_) continue;
    if (SteadyClock::now() >= stop_by_) return false;
    wake_.wait_until(lock, std::min(until, stop_by_), [] { return false; });
  }
}

// Lets events gather, unless somebody waits for them.
void Producer::rest() {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, options_.linger, [this] { return hurry_ || stopping_; });
  hurry_ = false;
}

void Producer::move_to(Journal::Position position) {
  {
    const std::lock_guard lock(mutex_);
    sent_ = position;
  }
  complete(position, nullptr);
  moved_.notify_all();
}

// Tells those who wait for what is before the position, in the order in which they came.
void Producer::complete(Journal::Position upto, const std::exception_ptr& error) {
  std::vector<Waiter> done;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Waiter> later;
    for (auto& waiter : waiters_) (waiter.position > upto ? later : done).push_back(std::move(waiter));
    waiters_ = std::move(later);
  }
  for (auto& waiter : done) {
    Outcome<void> outcome{error, std::nullopt};
    if (!error) outcome.value.emplace();
    waiter.done(std::move(outcome));
  }
}

}  // namespace weir::queue

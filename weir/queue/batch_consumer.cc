#include "weir/queue/batch_consumer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/base/fault.h"
#include "weir/queue/dead_letter.h"
#include "weir/sql/error.h"
#include "weir/telemetry/log.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue {
namespace {

using SteadyClock = std::chrono::steady_clock;

telemetry::Counter consumed(const BatchConsumer::Options& options, const char* outcome) {
  return telemetry::counter("weir_queue_consumed_total", "Messages that a group was given, by how it went",
                            {{"topic", options.topic}, {"group", options.group}, {"outcome", outcome}});
}

// How a call of the handler failed.
struct Failure {
  enum class Kind { away, poison, park } kind;
  std::string reason;
  std::vector<std::size_t> which;  // for park
};

// What the message itself is to blame for; all else is the store's state, and passes. After `unknown` too: whoever
// counts in one transaction with its inbox finds out what was done by trying again.
bool is_poison(const sql::Error& error) {
  using enum sql::ErrorKind;
  return error.kind() == unique_violation || error.kind() == constraint || error.kind() == misuse;
}

std::optional<Failure> call(const BatchConsumer::Handler& handler, std::span<const Message> batch) {
  using enum Failure::Kind;
  try {
    handler(batch);
    return std::nullopt;
  } catch (const Park& error) {
    const bool names_some = !error.which().empty() && std::all_of(error.which().begin(), error.which().end(),
                                                                  [&](auto i) { return i < batch.size(); });
    return Failure{names_some ? park : poison, error.what(), error.which()};
  } catch (const sql::Error& error) {
    return Failure{is_poison(error) ? poison : away, error.what(), {}};
  } catch (const Unavailable& error) {
    return Failure{away, error.what(), {}};
  } catch (const std::exception& error) {
    return Failure{poison, error.what(), {}};
  } catch (...) {
    return Failure{poison, "unknown exception", {}};
  }
}

}  // namespace

// One thread, a member of the group.
class BatchConsumer::Worker {
 public:
  Worker(BatchConsumer& consumer, Queue::Share share)
      : consumer_(consumer),
        queue_(consumer.queue_),
        options_(consumer.options_),
        share_(share),
        away_(options_.retry_first, options_.retry_max),
        ok_(consumed(options_, "ok")),
        retried_(consumed(options_, "retried")),
        dead_(consumed(options_, "dead")) {}

  void run() {
    if (insist("queue.join", [this] { join(); }) != Fate::done) return;
    while (!consumer_.stopping_) {
      messages_.clear();
      if (!take()) break;
      const Fate fate = messages_.empty() ? Fate::done : handle(messages_);
      if (fate == Fate::stopping || (fate == Fate::done && commit() == Fate::stopping)) break;
      if (fate == Fate::lost) subscription_->rewind();
    }
  }

  void interrupt() noexcept {
    const std::lock_guard lock(mutex_);
    if (subscription_) subscription_->interrupt();
  }

 private:
  // What became of what was taken: dealt with, not yet when the consumer stopped, or gone to another member.
  enum class Fate { done, stopping, lost };

  void join() {
    consumer_.make_known();
    auto joined = queue_.join(options_.topic, options_.group, share_);
    const std::lock_guard lock(mutex_);
    subscription_ = std::move(joined);
  }

  // False when the queue or the consumer was stopped.
  bool take() {
    try {
      const bool more = subscription_->take(
          messages_,
          {.messages = options_.max_batch, .bytes = options_.max_bytes, .max_wait = options_.max_wait});
      away_.reset();
      return more;
    } catch (const std::exception& error) {
      telemetry::swallowed("queue.fetch", error);
      messages_.clear();
      return consumer_.pause(away_.next());
    }
  }

  // Until each message is handled or parked.
  Fate handle(std::span<const Message> batch) {
    Backoff backoff(options_.retry_first, options_.retry_max);
    std::vector<Message> rest;
    for (int tries = 1; !batch.empty(); ++tries) {
      const std::optional<Failure> failure = call(consumer_.handler_, batch);
      if (!failure) {
        ok_.add(static_cast<double>(batch.size()));
        return Fate::done;
      }
      if (failure->kind == Failure::Kind::park) {
        const Fate fate = park_some(batch, *failure, rest);
        if (fate != Fate::done) return fate;
        batch = rest;
        continue;
      }
      const bool poison = failure->kind == Failure::Kind::poison;
      if (poison && batch.size() > 1) return halve(batch);
      if (poison && tries >= options_.max_tries) return park(batch.front(), failure->reason);
      telemetry::swallowed("queue.handler", std::runtime_error(options_.group + ": " + failure->reason));
      if (const Fate fate = wait(backoff.next()); fate != Fate::done) return fate;
      retried_.add(static_cast<double>(batch.size()));
    }
    return Fate::done;
  }

  Fate halve(std::span<const Message> batch) {
    retried_.add(static_cast<double>(batch.size()));
    const std::size_t half = batch.size() / 2;
    const Fate fate = handle(batch.first(half));
    return fate == Fate::done ? handle(batch.subspan(half)) : fate;
  }

  // `rest` is what is left after parking.
  Fate park_some(std::span<const Message> batch, const Failure& failure, std::vector<Message>& rest) {
    std::vector<bool> parked(batch.size());
    for (const std::size_t index : failure.which) {
      if (parked[index]) continue;
      if (const Fate fate = park(batch[index], failure.reason); fate != Fate::done) return fate;
      parked[index] = true;
    }
    std::vector<Message> left;
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (!parked[i]) left.push_back(batch[i]);
    rest = std::move(left);
    return Fate::done;
  }

  Fate park(const Message& message, std::string_view reason) {
    const std::string topic = dead_letter_topic(options_.topic, options_.group);
    const std::string payload = encode_dead_letter(message, options_.group, reason);
    Record letter = message;
    letter.topic = topic;
    letter.payload = payload;
    const Fate fate = insist("queue.park", [&] { queue_.publish({&letter, 1}); });
    if (fate != Fate::done) return fate;
    dead_.add();
    log::warn("group {} parked {}/{} offset {} (key {}): {}", options_.group, options_.topic,
              message.partition, message.offset, message.key, reason);
    return fate;
  }

  // Even when nothing was taken: what is damaged is passed by too.
  Fate commit() {
    return insist("queue.commit", [&] { subscription_->commit(); });
  }

  // Tries until it succeeds.
  template <class F>
  Fate insist(const char* what, F f) {
    Backoff backoff(options_.retry_first, options_.retry_max);
    for (;;) {
      try {
        f();
        return Fate::done;
      } catch (const std::exception& error) {
        telemetry::swallowed(what, error);
      }
      if (const Fate fate = wait(backoff.next()); fate != Fate::done) return fate;
    }
  }

  // Pauses, and stays a member of the group meanwhile.
  Fate wait(std::chrono::milliseconds time) {
    const auto until = SteadyClock::now() + time;
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now());
      if (!consumer_.pause(std::min(left, Subscription::kKeepEvery))) return Fate::stopping;
      if (subscription_ && !subscription_->keep()) return Fate::lost;
      if (left <= Subscription::kKeepEvery) return Fate::done;
    }
  }

  BatchConsumer& consumer_;
  Queue& queue_;
  const Options& options_;
  const Queue::Share share_;
  std::mutex mutex_;  // guards that subscription_ is set, once
  std::unique_ptr<Subscription> subscription_;
  Backoff away_;  // while the queue can't be read
  std::vector<Message> messages_;
  telemetry::Counter ok_, retried_, dead_;
};

BatchConsumer::BatchConsumer(Queue& queue, Options options, Handler handler)
    : queue_(queue), options_(std::move(options)), handler_(std::move(handler)) {
  try {
    make_known();
  } catch (const Unavailable& error) {  // start() goes on trying
    telemetry::swallowed("queue.subscribe", error);
  }
}

BatchConsumer::~BatchConsumer() {
  stop();
}

void BatchConsumer::make_known() {
  queue_.subscribe(options_.topic, options_.group, options_.from);
  queue_.subscribe(dead_letter_topic(options_.topic, options_.group), std::string(kParkedGroup));
}

void BatchConsumer::start() {
  const std::uint32_t threads = std::max(1U, options_.threads);
  for (std::uint32_t number = 0; number < threads; ++number)
    workers_.push_back(std::make_unique<Worker>(*this, Queue::Share{.number = number, .of = threads}));
  try {
    for (auto& worker : workers_) threads_.emplace_back([&worker = *worker] { worker.run(); });
  } catch (...) {  // partitions without a thread would never be read: better none than some
    stop();
    throw;
  }
}

void BatchConsumer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  for (auto& worker : workers_) worker->interrupt();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  workers_.clear();
}

bool BatchConsumer::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, time, [this] { return stopping_.load(); });
}

}  // namespace weir::queue

#include "weir/queue/batch_consumer.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/base/fault.h"
#include "weir/queue/dead_letter.h"
#include "weir/queue/record_batch.h"
#include "weir/telemetry/log.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Stored batches that are read ahead of one partition at a time.
constexpr int kFetchBatches = 4;

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

bool is_away(const sql::Error& error) {
  using enum sql::ErrorKind;
  // After `unknown` too: whoever counts in one transaction with its inbox finds out what was done by trying again.
  return error.kind() == busy || error.kind() == full || error.kind() == corrupt || error.kind() == io ||
         error.kind() == lost || error.kind() == unknown;
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
    return Failure{is_away(error) ? away : poison, error.what(), {}};
  } catch (const Unavailable& error) {
    return Failure{away, error.what(), {}};
  } catch (const std::exception& error) {
    return Failure{poison, error.what(), {}};
  } catch (...) {
    return Failure{poison, "unknown exception", {}};
  }
}

}  // namespace

// Where one partition stands.
class BatchConsumer::Source {
 public:
  Source(std::uint32_t partition, std::int64_t next) : partition_(partition), next_(next), committed_(next) {}

  std::uint32_t partition() const { return partition_; }
  // The offset of the next message that take() gives.
  std::int64_t next() const { return next_; }
  std::int64_t committed() const { return committed_; }
  void set_committed() { committed_ = next_; }

  // Appends messages up to the limits and the end of what is there. What they look at is kept alive by
  // `held`.
  void take(EmbeddedQueue& queue, const Options& options, std::int64_t end, std::vector<Message>& messages,
            std::vector<std::shared_ptr<const StoredBatch>>& held, std::size_t& bytes_left) {
    while (messages.size() < options.max_batch) {
      if (!batch_ && (next_ >= end || bytes_left == 0 || !open_next(queue, options))) return;
      held.push_back(batch_);
      bytes_left -= std::min(bytes_left, batch_->records.size());
      const std::int64_t batch_end = batch_->first_offset + batch_->count;
      Message message;
      message.topic = options.topic;
      message.partition = partition_;
      bool more = true;
      while (messages.size() < options.max_batch && (more = reader_->next(message))) {
        message.offset = read_offset_++;
        if (message.offset < next_) continue;
        messages.push_back(message);
        next_ = message.offset + 1;
      }
      if (more && read_offset_ < batch_end) return;
      next_ = batch_end;
      batch_.reset();
    }
  }

 private:
  bool open_next(EmbeddedQueue& queue, const Options& options) {
    for (;;) {
      if (fetched_.empty())
        for (auto& batch : queue.fetch(options.topic, partition_, next_, kFetchBatches))
          fetched_.push_back(std::make_shared<const StoredBatch>(std::move(batch)));
      if (fetched_.empty()) return false;
      batch_ = std::move(fetched_.front());
      fetched_.pop_front();
      if (batch_->first_offset > next_)
        log::warn("group {} missed offsets {} to {} of {}/{}: the retention has taken them", options.group,
                  next_, batch_->first_offset - 1, options.topic, partition_);
      reader_.emplace(std::as_bytes(std::span(batch_->records)));
      read_offset_ = batch_->first_offset;
      if (reader_->whole()) return true;
      telemetry::counter("weir_queue_damaged_total", "Places where stored events were damaged and skipped",
                         {{"where", "queue"}})
          .add();
      log::error("offsets {} to {} of {}/{} are damaged and are skipped", batch_->first_offset,
                 batch_->first_offset + batch_->count - 1, options.topic, partition_);
      next_ = batch_->first_offset + batch_->count;
      batch_.reset();
    }
  }

  std::uint32_t partition_;
  std::int64_t next_, committed_;
  std::deque<std::shared_ptr<const StoredBatch>> fetched_;
  std::shared_ptr<const StoredBatch> batch_;  // the one that is being read, or null
  std::optional<BatchReader> reader_;
  std::int64_t read_offset_ = 0;  // of the record that the reader gives next
};

// One thread with its partitions.
class BatchConsumer::Worker {
 public:
  Worker(BatchConsumer& consumer, std::vector<Source> sources)
      : consumer_(consumer),
        queue_(consumer.queue_),
        options_(consumer.options_),
        sources_(std::move(sources)),
        away_(options_.retry_first, options_.retry_max),
        ok_(consumed(options_, "ok")),
        retried_(consumed(options_, "retried")),
        dead_(consumed(options_, "dead")) {}

  void run() {
    while (!consumer_.stopping_ && !queue_stopped_) {
      if (!gather()) continue;
      const bool fetched = collect();
      if (!messages_.empty() && !handle(messages_)) return;
      if (!commit()) return;
      if (fetched)
        away_.reset();
      else if (!consumer_.pause(away_.next()))
        return;
    }
  }

 private:
  std::size_t available() {
    const auto ends = queue_.ends(options_.topic);
    std::int64_t sum = 0;
    for (const Source& source : sources_)
      sum += std::max<std::int64_t>(0, ends[source.partition()] - source.next());
    return static_cast<std::size_t>(sum);
  }

  // Waits until there is a batch's worth, or something and the time is over. False when there is nothing.
  bool gather() {
    std::uint64_t news = queue_.news();
    std::size_t there = available();
    if (there == 0) {
      queue_stopped_ = !queue_.wait_for_news(news, SteadyClock::now() + EmbeddedQueue::kForeignLook);
      return false;
    }
    const auto until = SteadyClock::now() + options_.max_wait;
    while (there < options_.max_batch && SteadyClock::now() < until && !consumer_.stopping_) {
      queue_stopped_ = !queue_.wait_for_news(news, until);
      if (queue_stopped_) return false;
      news = queue_.news();
      there = available();
    }
    return true;
  }

  // Takes the partitions in turn; who was first is last the next time, so that none starves the others. False
  // when the queue could not be read; what was taken before that is as good as any batch.
  bool collect() {
    messages_.clear();
    held_.clear();
    std::size_t bytes_left = options_.max_bytes;
    const auto ends = queue_.ends(options_.topic);
    try {
      for (Source& source : sources_)
        source.take(queue_, options_, ends[source.partition()], messages_, held_, bytes_left);
    } catch (const std::exception& error) {
      telemetry::swallowed("queue.fetch", error);
      return false;
    }
    std::rotate(sources_.begin(), sources_.begin() + 1, sources_.end());
    return true;
  }

  // Until each message is handled or parked; false when the consumer stops first.
  bool handle(std::span<const Message> batch) {
    Backoff backoff(options_.retry_first, options_.retry_max);
    std::vector<Message> rest;
    for (int tries = 1; !batch.empty(); ++tries) {
      const std::optional<Failure> failure = call(consumer_.handler_, batch);
      if (!failure) {
        ok_.add(static_cast<double>(batch.size()));
        return true;
      }
      if (failure->kind == Failure::Kind::park) {
        rest = park_some(batch, *failure);
        if (rest.size() == batch.size()) return false;
        batch = rest;
        continue;
      }
      const bool poison = failure->kind == Failure::Kind::poison;
      if (poison && batch.size() > 1) {
        retried_.add(static_cast<double>(batch.size()));
        const std::size_t half = batch.size() / 2;
        return handle(batch.first(half)) && handle(batch.subspan(half));
      }
      if (poison && tries >= options_.max_tries) return park(batch.front(), failure->reason);
      telemetry::swallowed("queue.handler", std::runtime_error(options_.group + ": " + failure->reason));
      if (!consumer_.pause(backoff.next())) return false;
      retried_.add(static_cast<double>(batch.size()));
    }
    return true;
  }

  // What is left after parking; all of it when the consumer stops first.
  std::vector<Message> park_some(std::span<const Message> batch, const Failure& failure) {
    std::vector<bool> parked(batch.size());
    for (const std::size_t index : failure.which) {
      if (!parked[index] && !park(batch[index], failure.reason)) return {batch.begin(), batch.end()};
      parked[index] = true;
    }
    std::vector<Message> rest;
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (!parked[i]) rest.push_back(batch[i]);
    return rest;
  }

  bool park(const Message& message, std::string_view reason) {
    const std::string topic = dead_letter_topic(options_.topic, options_.group);
    const std::string payload = encode_dead_letter(message, options_.group, reason);
    Record letter = message;
    letter.topic = topic;
    letter.payload = payload;
    if (!insist("queue.park", [&] { queue_.publish({&letter, 1}); })) return false;
    dead_.add();
    log::warn("group {} parked {}/{} offset {} (key {}): {}", options_.group, options_.topic,
              message.partition, message.offset, message.key, reason);
    return true;
  }

  bool commit() {
    std::vector<EmbeddedQueue::Offset> offsets;
    for (const Source& source : sources_)
      if (source.next() != source.committed()) offsets.push_back({source.partition(), source.next()});
    if (!insist("queue.commit", [&] { queue_.commit(options_.topic, options_.group, offsets); }))
      return false;
    for (Source& source : sources_) source.set_committed();
    return true;
  }

  // Tries until it succeeds; false when the consumer stops first.
  template <class F>
  bool insist(const char* what, F f) {
    Backoff backoff(options_.retry_first, options_.retry_max);
    for (;;) {
      try {
        f();
        return true;
      } catch (const std::exception& error) {
        telemetry::swallowed(what, error);
      }
      if (!consumer_.pause(backoff.next())) return false;
    }
  }

  BatchConsumer& consumer_;
  EmbeddedQueue& queue_;
  const Options& options_;
  std::vector<Source> sources_;
  Backoff away_;  // while the queue can't be read
  bool queue_stopped_ = false;
  std::vector<Message> messages_;
  std::vector<std::shared_ptr<const StoredBatch>> held_;
  telemetry::Counter ok_, retried_, dead_;
};

BatchConsumer::BatchConsumer(EmbeddedQueue& queue, Options options, Handler handler)
    : queue_(queue), options_(std::move(options)), handler_(std::move(handler)) {
  queue_.subscribe(options_.topic, options_.group, options_.from);
}

BatchConsumer::~BatchConsumer() {
  stop();
}

void BatchConsumer::start() {
  const auto offsets = queue_.committed(options_.topic, options_.group);
  const std::size_t threads =
      std::clamp<std::size_t>(options_.threads, 1, std::max<std::size_t>(1, offsets.size()));
  for (std::size_t number = 0; number < threads; ++number) {
    std::vector<Source> sources;
    for (std::size_t partition = number; partition < offsets.size(); partition += threads)
      sources.emplace_back(static_cast<std::uint32_t>(partition), offsets[partition]);
    workers_.push_back(std::make_unique<Worker>(*this, std::move(sources)));
  }
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
  queue_.wake();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

bool BatchConsumer::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, time, [this] { return stopping_.load(); });
}

}  // namespace weir::queue

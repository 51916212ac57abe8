#include "weir/queue/embedded_subscription.h"

#include <algorithm>
#include <span>
#include <utility>

#include "weir/telemetry/log.h"
#include "weir/telemetry/metrics.h"

namespace weir::queue::detail {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Stored batches that are read ahead of one partition at a time.
constexpr int kFetchBatches = 4;

}  // namespace

// Where one partition stands.
class EmbeddedSubscription::Source {
 public:
  explicit Source(Place place)
      : partition_(place.partition), next_(place.committed), committed_(place.committed) {}

  std::uint32_t partition() const { return partition_; }
  // The offset of the next message that take() gives.
  std::int64_t next() const { return next_; }
  std::int64_t committed() const { return committed_; }
  void set_committed() { committed_ = next_; }

  // Appends messages up to the limits and the end of what is there.
  void take(EmbeddedSubscription& of, std::int64_t end, Room& room) {
    while (!room.full()) {
      if (!batch_ && (next_ >= end || room.bytes_left == 0 || !open_next(of))) return;
      room.held.push_back(batch_);
      room.bytes_left -= std::min(room.bytes_left, batch_->records.size());
      const std::int64_t batch_end = batch_->first_offset + batch_->count;
      Message message;
      message.topic = of.topic_;
      message.partition = partition_;
      bool more = true;
      while (!room.full() && (more = reader_->next(message))) {
        message.offset = read_offset_++;
        if (message.offset < next_) continue;
        room.messages.push_back(message);
        next_ = message.offset + 1;
      }
      if (more && read_offset_ < batch_end) return;
      next_ = batch_end;
      batch_.reset();
    }
  }

 private:
  bool open_next(EmbeddedSubscription& of) {
    for (;;) {
      if (fetched_.empty())
        for (auto& batch : of.queue_.fetch(of.topic_, partition_, next_, kFetchBatches))
          fetched_.push_back(std::make_shared<const StoredBatch>(std::move(batch)));
      if (fetched_.empty()) return false;
      batch_ = std::move(fetched_.front());
      fetched_.pop_front();
      if (batch_->first_offset > next_)
        log::warn("group {} missed offsets {} to {} of {}/{}: the retention has taken them", of.group_, next_,
                  batch_->first_offset - 1, of.topic_, partition_);
      reader_.emplace(std::as_bytes(std::span(batch_->records)));
      read_offset_ = batch_->first_offset;
      if (reader_->whole()) return true;
      telemetry::counter("weir_queue_damaged_total", "Places where stored events were damaged and skipped",
                         {{"where", "queue"}})
          .add();
      log::error("offsets {} to {} of {}/{} are damaged and are skipped", batch_->first_offset,
                 batch_->first_offset + batch_->count - 1, of.topic_, partition_);
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

EmbeddedSubscription::EmbeddedSubscription(EmbeddedQueue& queue, std::string topic, std::string group,
                                           Queue::Share share)
    : queue_(queue), topic_(std::move(topic)), group_(std::move(group)) {
  const auto committed = queue_.committed(topic_, group_);
  std::vector<Place> places;
  for (std::size_t partition = share.number; partition < committed.size(); partition += share.of)
    places.push_back({static_cast<std::uint32_t>(partition), committed[partition]});
  open(places);
}

EmbeddedSubscription::~EmbeddedSubscription() = default;

void EmbeddedSubscription::open(const std::vector<Place>& places) {
  sources_.clear();
  for (const Place& place : places) sources_.emplace_back(place);
}

bool EmbeddedSubscription::take(std::vector<Message>& messages, const Limits& limits) {
  held_.clear();
  if (gather(limits)) collect(messages, limits);
  return !queue_stopped_;
}

std::size_t EmbeddedSubscription::waiting() {
  const auto ends = queue_.ends(topic_);
  std::int64_t sum = 0;
  for (const Source& source : sources_)
    sum += std::max<std::int64_t>(0, ends[source.partition()] - source.next());
  return static_cast<std::size_t>(sum);
}

// Waits until there is a batch's worth, or something and the time is over. False when there is nothing.
bool EmbeddedSubscription::gather(const Limits& limits) {
  std::uint64_t news = queue_.news();
  std::size_t there = waiting();
  if (interrupted_) return false;
  if (there == 0) {
    queue_stopped_ = !queue_.wait_for_news(news, SteadyClock::now() + EmbeddedQueue::kForeignLook);
    return false;
  }
  const auto until = SteadyClock::now() + limits.max_wait;
  while (there < limits.messages && SteadyClock::now() < until) {
    queue_stopped_ = !queue_.wait_for_news(news, until);
    news = queue_.news();
    if (queue_stopped_ || interrupted_) return false;
    there = waiting();
  }
  return true;
}

// Takes the partitions in turn; who was first is last the next time, so that none starves the others. When a
// partition can't be read, what was taken before it is as good as any batch.
void EmbeddedSubscription::collect(std::vector<Message>& messages, const Limits& limits) {
  const std::size_t before = messages.size();
  Room room{messages, limits.messages, limits.bytes, held_};
  const auto ends = queue_.ends(topic_);
  try {
    for (Source& source : sources_) source.take(*this, ends[source.partition()], room);
  } catch (const std::exception& error) {
    if (messages.size() == before) throw;
    telemetry::swallowed("queue.fetch", error);
  }
  if (!sources_.empty()) std::rotate(sources_.begin(), sources_.begin() + 1, sources_.end());
}

void EmbeddedSubscription::commit() {
  std::vector<EmbeddedQueue::Offset> offsets;
  for (const Source& source : sources_)
    if (source.next() != source.committed()) offsets.push_back({source.partition(), source.next()});
  if (offsets.empty()) return;
  queue_.commit(topic_, group_, offsets);
  for (Source& source : sources_) source.set_committed();
}

void EmbeddedSubscription::rewind() {
  std::vector<Place> places;
  places.reserve(sources_.size());
  for (const Source& source : sources_) places.push_back({source.partition(), source.committed()});
  open(places);
}

void EmbeddedSubscription::interrupt() noexcept {
  interrupted_ = true;
  queue_.wake();
}

}  // namespace weir::queue::detail

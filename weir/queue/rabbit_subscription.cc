#include "weir/queue/rabbit_subscription.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/telemetry/log.h"

namespace weir::queue::detail {
namespace {

using std::chrono::milliseconds;

// How often the thread looks at the time, whatever happens: for the heartbeats.
constexpr milliseconds kPumpEvery{200};
// How long take() waits for a message before it returns without one.
constexpr milliseconds kPatience{1'000};

SteadyTime now() {
  return Clock::system().steady_now();
}

}  // namespace

// Puts the frames of deliveries together.
class RabbitSubscription::Reader {
 public:
  Reader(RabbitSubscription& of, RabbitConnection& connection) : of_(of), connection_(connection) {}

  // Takes the frames that are there; each may be the last of a message.
  void read() {
    amqp_frame_t frame;
    while (connection_.next_frame(frame, milliseconds(0))) handle(frame);
  }

 private:
  void handle(const amqp_frame_t& frame) {
    if (frame.frame_type == AMQP_FRAME_METHOD && frame.payload.method.id == AMQP_BASIC_DELIVER_METHOD) {
      begin(*static_cast<const amqp_basic_deliver_t*>(frame.payload.method.decoded));
    } else if (frame.frame_type == AMQP_FRAME_HEADER && delivery_) {
      const auto& header = frame.payload.properties;
      fault_ = delivery_->begin(*static_cast<const amqp_basic_properties_t*>(header.decoded),
                                header.body_size, routing_key_);
      left_ = header.body_size;
      end_if_whole();
    } else if (frame.frame_type == AMQP_FRAME_BODY && delivery_) {
      const std::string_view part = to_view(frame.payload.body_fragment);
      if (!fault_) delivery_->add(part);
      left_ -= std::min<std::uint64_t>(left_, part.size());
      end_if_whole();
    }
  }

  void begin(const amqp_basic_deliver_t& deliver) {
    delivery_ = std::make_unique<RabbitMessage>();
    delivery_->tag = deliver.delivery_tag;
    routing_key_ = to_view(deliver.routing_key);
    const std::string_view consumer = to_view(deliver.consumer_tag);
    partition_ = 0;
    std::from_chars(consumer.data(), consumer.data() + consumer.size(), partition_);
  }

  void end_if_whole() {
    if (left_ > 0) return;
    if (!fault_) {
      of_.deliver(std::move(delivery_), partition_);
    } else {
      log::error("a message of {}/{} is discarded: {}", of_.settings_.topic, partition_, *fault_);
      of_.damaged_.add();
      connection_.reject(delivery_->tag);
    }
    delivery_.reset();
  }

  RabbitSubscription& of_;
  RabbitConnection& connection_;
  Delivery delivery_;  // the one whose frames are coming, or null
  std::string routing_key_;
  std::uint32_t partition_ = 0;
  std::optional<std::string> fault_;
  std::uint64_t left_ = 0;  // bytes of its body
};

RabbitSubscription::RabbitSubscription(Settings settings)
    : settings_(std::move(settings)),
      damaged_(telemetry::counter("weir_queue_damaged_total",
                                  "Places where stored events were damaged and skipped",
                                  {{"where", "rabbitmq"}})),
      uncommitted_(settings_.partitions),
      thread_([this] { run(); }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return connected_ || failure_; });
}

RabbitSubscription::~RabbitSubscription() {
  settings_.left(*this);
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  wake_.wake();
  thread_.join();
}

// --- The member's side -------------------------------------------------------------------------------------

bool RabbitSubscription::take(std::vector<Message>& messages, const Limits& limits) {
  std::unique_lock lock(mutex_);
  forget_void();
  const auto ended = [this] { return interrupted_ || stopped_; };
  changed_.wait_for(lock, kPatience, [&] { return ended() || !ready_.empty() || failure_; });
  if (ended()) return !stopped_;
  if (ready_.empty()) {
    if (failure_) throw Unavailable(*failure_);
    return true;
  }
  const std::uint64_t session = session_;
  gathering_ = &limits;
  changed_.wait_for(lock, limits.max_wait,
                    [&] { return ended() || has_enough(limits) || session_ != session || !connected_; });
  gathering_ = nullptr;
  if (ended()) return !stopped_;
  forget_void();
  taken_session_ = session_;
  std::size_t bytes = 0;
  for (std::size_t count = 0; count < limits.messages && bytes < limits.bytes && !ready_.empty(); ++count) {
    taken_.push_back(std::move(ready_.front()));
    ready_.pop_front();
    messages.push_back(taken_.back()->message());
    bytes += taken_.back()->bytes();
  }
  ready_bytes_ -= bytes;
  return true;
}

// A partition whose window is full gets no more before a commit: waiting for more is in vain.
bool RabbitSubscription::has_enough(const Limits& limits) const {
  return ready_.size() >= limits.messages || ready_bytes_ >= limits.bytes ||
         std::ranges::any_of(uncommitted_,
                             [this](std::int64_t count) { return count >= settings_.prefetch; });
}

void RabbitSubscription::forget_void() {
  if (is_void()) taken_.clear();
}

void RabbitSubscription::commit() {
  const std::lock_guard lock(mutex_);
  forget_void();
  if (taken_.empty()) return;
  acknowledged_ = taken_.back()->tag;
  for (const auto& delivery : taken_) --uncommitted_[delivery->message().partition];
  taken_.clear();
  wake_.wake();
}

bool RabbitSubscription::keep() noexcept {
  const std::lock_guard lock(mutex_);
  return taken_.empty() || !is_void();
}

// What is still ours is kept here, and given again.
void RabbitSubscription::rewind() {
  const std::lock_guard lock(mutex_);
  forget_void();
  for (const auto& delivery : taken_) ready_bytes_ += delivery->bytes();
  ready_.insert(ready_.begin(), std::move_iterator(taken_.begin()), std::move_iterator(taken_.end()));
  taken_.clear();
}

void RabbitSubscription::interrupt() noexcept {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

void RabbitSubscription::stop() noexcept {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

std::int64_t RabbitSubscription::uncommitted(std::uint32_t partition) const {
  const std::lock_guard lock(mutex_);
  return partition < uncommitted_.size() ? uncommitted_[partition] : 0;
}

// --- The thread's side -------------------------------------------------------------------------------------

void RabbitSubscription::run() {
  Backoff backoff(RabbitQueue::kRetryFirst, RabbitQueue::kRetryMax);
  while (!is_closing()) {
    try {
      RabbitConnection connection(settings_.link);
      make_topic(connection, settings_.shape, settings_.topic);
      make_group(connection, settings_.shape, settings_.topic, settings_.group, settings_.partitions);
      connection.prefetch(settings_.prefetch);
      consume(connection, true);
      begin_session();
      backoff.reset();
      serve(connection);
      connection.close();
    } catch (const std::exception& error) {
      end_session(error.what());
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, backoff.next(), [this] { return closing_; });
  }
}

// The partitions that the member was dealt, or the others.
void RabbitSubscription::consume(RabbitConnection& connection, bool own) {
  for (std::uint32_t partition = 0; partition < settings_.partitions; ++partition)
    if ((partition % settings_.share.of == settings_.share.number) == own)
      connection.consume(queue_name(settings_.topic, settings_.group, partition), std::to_string(partition));
}

// Until the member leaves, or the connection is lost.
void RabbitSubscription::serve(RabbitConnection& connection) {
  Reader reader(*this, connection);
  const SteadyTime stand_by_at = now() + kStandByAfter;
  bool stands_by = settings_.share.of <= 1;
  for (;;) {
    const bool last = is_closing();
    reader.read();
    if (const auto tag = tag_to_acknowledge()) connection.acknowledge(*tag, true);
    if (last) return;
    if (!stands_by && now() >= stand_by_at) {
      stands_by = true;
      consume(connection, false);
      continue;  // what came with the answers is in the connection already
    }
    wake_.wait(connection.socket(), kPumpEvery);
  }
}

void RabbitSubscription::begin_session() {
  const std::lock_guard lock(mutex_);
  ++session_;
  connected_ = true;
  failure_.reset();
  *settings_.available = true;
  changed_.notify_all();
}

void RabbitSubscription::end_session(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (connected_) log::warn("group {} has lost its connection: {}", settings_.group, why);
  ++session_;
  connected_ = false;
  failure_ = why;
  *settings_.available = false;
  ready_.clear();
  ready_bytes_ = 0;
  acknowledged_ = 0;
  std::ranges::fill(uncommitted_, 0);
  changed_.notify_all();
}

std::optional<std::uint64_t> RabbitSubscription::tag_to_acknowledge() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t tag = std::exchange(acknowledged_, 0);
  return tag == 0 ? std::nullopt : std::optional(tag);
}

void RabbitSubscription::deliver(Delivery delivery, std::uint32_t partition) {
  const std::lock_guard lock(mutex_);
  const WallTime time = settings_.clock->now();
  last_foreign_ = std::max(last_foreign_ + 1, static_cast<std::uint64_t>(to_micros(time)));
  delivery->finish(settings_.topic, partition, next_offset_++, last_foreign_, time);
  ready_bytes_ += delivery->bytes();
  ready_.push_back(std::move(delivery));
  const bool full = ++uncommitted_[partition] >= settings_.prefetch;
  // Whoever gathers sleeps on until it was worth it.
  if (gathering_ == nullptr || full || ready_.size() >= gathering_->messages ||
      ready_bytes_ >= gathering_->bytes)
    changed_.notify_all();
}

bool RabbitSubscription::is_closing() const {
  const std::lock_guard lock(mutex_);
  return closing_;
}

}  // namespace weir::queue::detail

#include "weir/queue/kafka_sender.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <list>
#include <map>
#include <thread>

#include "weir/base/fault.h"
#include "weir/queue/kafka_record.h"
#include "weir/queue/partition.h"

namespace weir::queue::detail {
namespace {

using SteadyClock = std::chrono::steady_clock;

// How long the thread that serves the reports sleeps at most: it looks then whether it is to end.
constexpr std::chrono::milliseconds kPoll{100};
// How long a caller waits before he looks again whether librdkafka has room.
constexpr std::chrono::milliseconds kLookForRoom{1};
// What it holds besides the records' number, in KiB: some of Producer's largest batches.
constexpr std::int64_t kMaxWaitingKbytes = 64 * 1024;

telemetry::Counter deliveries(const char* outcome) {
  return telemetry::counter("weir_queue_deliveries_total",
                            "Records that were sent to the broker, by what became of them",
                            {{"outcome", outcome}});
}

bool is_time_out(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__PURGE_QUEUE || error == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ||
         error == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT || error == RD_KAFKA_RESP_ERR__TIMED_OUT;
}

// One call of publish(), as the reports of its records see it.
struct Delivery {
  std::atomic<std::size_t> reported{0};
  std::atomic<std::size_t> expected{std::numeric_limits<std::size_t>::max()};  // until all are sent
  std::atomic<std::size_t> failed{0};                                          // of those that were reported
  std::atomic<std::size_t> refused{0};  // for another reason than the time, reported or not even sent
  std::atomic<rd_kafka_resp_err_t> why{RD_KAFKA_RESP_ERR_NO_ERROR};  // the first failed

  bool complete() const { return reported == expected; }
  void fail(rd_kafka_resp_err_t error) {
    if (!is_time_out(error)) ++refused;
    auto none = RD_KAFKA_RESP_ERR_NO_ERROR;
    why.compare_exchange_strong(none, error);
  }
};

std::int32_t choose_partition(const rd_kafka_topic_t*, const void* key, std::size_t size, std::int32_t count,
                              void*, void*) {
  return static_cast<std::int32_t>(
      partition_of({static_cast<const char*>(key), size}, static_cast<std::uint32_t>(count)));
}

rd_kafka_vu_t field(rd_kafka_vtype_t type) {
  rd_kafka_vu_t made{};
  made.vtype = type;
  return made;
}

// What librdkafka is told of one record. Made once, filled for each: a record costs no allocation of ours.
class Fields {
 public:
  Fields(const Record& record, rd_kafka_topic_t* topic, Delivery* delivery)
      : identity_(encode_identity(record)) {
    at(kTopic, RD_KAFKA_VTYPE_RKT).rkt = topic;
    at(kFlags, RD_KAFKA_VTYPE_MSGFLAGS).i = RD_KAFKA_MSG_F_COPY;
    at(kOpaque, RD_KAFKA_VTYPE_OPAQUE).ptr = delivery;
    at(kKey, RD_KAFKA_VTYPE_KEY).mem = bytes(record.key);
    at(kValue, RD_KAFKA_VTYPE_VALUE).mem = bytes(record.payload);
    at(kTime, RD_KAFKA_VTYPE_TIMESTAMP).i64 =
        std::max<std::int64_t>(1, to_micros(record.appended_at) / 1'000);
    at(kIdentity, RD_KAFKA_VTYPE_HEADER).header = {kIdentityHeader, identity_.data(),
                                                   static_cast<ssize_t>(identity_.size())};
    if (record.event_id.empty()) return;
    at(kEventId, RD_KAFKA_VTYPE_HEADER).header = {kEventIdHeader, record.event_id.data(),
                                                  static_cast<ssize_t>(record.event_id.size())};
    count_ = kFields;
  }
  const rd_kafka_vu_t* data() const { return all_.data(); }
  std::size_t size() const { return count_; }

 private:
  enum { kTopic, kFlags, kOpaque, kKey, kValue, kTime, kIdentity, kEventId, kFields };

  decltype(rd_kafka_vu_t::u)& at(std::size_t index, rd_kafka_vtype_t type) {
    all_[index] = field(type);
    return all_[index].u;
  }
  // Never null: a null key or value would be another message than an empty one.
  static decltype(rd_kafka_vu_t::u.mem) bytes(std::string_view text) {
    return {const_cast<char*>(text.data() == nullptr ? "" : text.data()), text.size()};
  }

  std::array<char, kIdentityBytes> identity_;
  std::array<rd_kafka_vu_t, kFields> all_;
  std::size_t count_ = kEventId;
};

}  // namespace

// A client and the thread that serves its reports.
class KafkaSender::Connection {
 public:
  explicit Connection(const Options& options) {
    KafkaConfig config(options.bootstrap, options.client_id);
    const bool all = options.acks == Acks::all;
    config.set("acks", all ? -1 : options.acks == Acks::leader ? 1 : 0);
    config.set("enable.idempotence", all ? "true" : "false");
    config.set("enable.gapless.guarantee", all ? "true" : "false");
    // More would let a request overtake one that is repeated.
    config.set("max.in.flight.requests.per.connection", all ? 5 : 1);
    // Records are given up by publish(), all at once, never one by one.
    config.set("message.timeout.ms", 0);
    config.set("queue.buffering.max.messages", static_cast<std::int64_t>(options.max_waiting));
    config.set("queue.buffering.max.kbytes", kMaxWaitingKbytes);
    config.set("linger.ms", options.linger.count());
    config.set("compression.codec", "lz4");
    config.set("allow.auto.create.topics", "false");
    rd_kafka_conf_set_opaque(config.raw(), this);
    rd_kafka_conf_set_dr_msg_cb(config.raw(), [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
      static_cast<Connection*>(self)->report(*message);
    });
    rd_kafka_conf_set_error_cb(config.raw(), [](rd_kafka_t*, int error, const char*, void* self) {
      if (error == RD_KAFKA_RESP_ERR__FATAL) static_cast<Connection*>(self)->spent_ = true;
    });
    client_ = config.make(RD_KAFKA_PRODUCER);
    server_ = std::thread([this] {
      while (!ending_) rd_kafka_poll(client_.get(), to_millis(kPoll));
    });
  }

  ~Connection() {
    give_up();
    ending_ = true;
    server_.join();
    topics_.clear();
  }

  bool spent() const { return spent_; }

  // Fails all that isn't confirmed; nothing is sent after it.
  void give_up() {
    spent_ = true;
    {
      // Whoever sends sees `spent_` and ends. Were a record sent after the purge, it could arrive without those
      // before it.
      const std::lock_guard lock(sending_);
      rd_kafka_purge(client_.get(),
                     RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
    }
    const std::lock_guard lock(mutex_);
    reported_.notify_all();
  }

  // Until all are reported, or the time is over; gives up then. The delivery is the caller's to look at until close().
  std::list<Delivery>::iterator publish(std::span<const Record> records, SteadyClock::time_point until) {
    const auto delivery = open();
    const std::size_t sent = send(records, *delivery, until);
    const bool complete = wait(*delivery, sent, until, Unless::spent);
    if (!complete || delivery->why != RD_KAFKA_RESP_ERR_NO_ERROR) {
      give_up();
      wait(*delivery, sent, SteadyClock::now() + kGiveUp, Unless::never);
    }
    return delivery;
  }

  // A delivery that isn't complete stays until the client is gone, which may report to it.
  void close(std::list<Delivery>::iterator delivery) {
    const std::lock_guard lock(mutex_);
    if (delivery->complete()) deliveries_.erase(delivery);
  }

 private:
  std::list<Delivery>::iterator open() {
    const std::lock_guard lock(mutex_);
    return deliveries_.emplace(deliveries_.end());
  }

  // How many were sent; one that is refused fails the delivery and ends it.
  std::size_t send(std::span<const Record> records, Delivery& delivery, SteadyClock::time_point until) {
    const std::lock_guard lock(sending_);
    std::size_t sent = 0;
    while (sent < records.size() && send(records[sent], delivery, until)) ++sent;
    return sent;
  }

  bool send(const Record& record, Delivery& delivery, SteadyClock::time_point until) {
    const Fields fields(record, topic(record.topic), &delivery);
    while (!spent_) {
      const KafkaError error(rd_kafka_produceva(client_.get(), fields.data(), fields.size()));
      if (!error) return true;
      const auto code = rd_kafka_error_code(error.get());
      if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        delivery.fail(code);
        return false;
      }
      if (SteadyClock::now() >= until) break;
      std::this_thread::sleep_for(kLookForRoom);
    }
    delivery.fail(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
    return false;
  }

  rd_kafka_topic_t* topic(std::string_view name) {
    if (last_ != topics_.end() && last_->first == name) return last_->second.get();
    last_ = topics_.find(name);
    if (last_ == topics_.end()) {
      rd_kafka_topic_conf_t* config = rd_kafka_topic_conf_new();
      rd_kafka_topic_conf_set_partitioner_cb(config, choose_partition);
      const std::string text(name);
      last_ = topics_.emplace(text, rd_kafka_topic_new(client_.get(), text.c_str(), config)).first;
    }
    return last_->second.get();
  }

  enum class Unless { never, spent };
  // True when all that was sent is reported.
  bool wait(Delivery& delivery, std::size_t sent, SteadyClock::time_point until, Unless unless) {
    std::unique_lock lock(mutex_);
    delivery.expected = sent;
    reported_.wait_until(lock, until,
                         [&] { return delivery.complete() || (unless == Unless::spent && spent_); });
    return delivery.complete();
  }

  // By the thread that serves the reports.
  void report(const rd_kafka_message_t& message) {
    Delivery& delivery = *static_cast<Delivery*>(message._private);
    if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      ++delivery.failed;
      delivery.fail(message.err);
    }
    const std::size_t reported = ++delivery.reported;
    // Who sets `expected` looks at `reported` after it: one of the two sees that it is complete.
    if (reported != delivery.expected) return;
    const std::lock_guard lock(mutex_);
    reported_.notify_all();
  }

  std::atomic<bool> spent_{false}, ending_{false};
  std::mutex mutex_;  // guards the deliveries
  std::condition_variable reported_;
  std::list<Delivery> deliveries_;
  KafkaHandle client_;
  std::mutex sending_;  // guards the order of what is sent, and the topics
  std::map<std::string, KafkaTopic, std::less<>> topics_;
  std::map<std::string, KafkaTopic, std::less<>>::iterator last_ = topics_.end();
  std::thread server_;
};

KafkaSender::KafkaSender(Options options)
    : options_(std::move(options)),
      delivered_(deliveries("delivered")),
      timed_out_(deliveries("timed_out")),
      refused_(deliveries("refused")) {}

KafkaSender::~KafkaSender() {
  stop();
}

std::shared_ptr<KafkaSender::Connection> KafkaSender::connection() {
  const std::lock_guard lock(mutex_);
  if (stopped_) throw Unavailable("the queue was stopped");
  if (!connection_ || connection_->spent()) connection_ = std::make_shared<Connection>(options_);
  return connection_;
}

KafkaSender::Outcome KafkaSender::publish(std::span<const Record> records) {
  const auto until = SteadyClock::now() + options_.timeout;
  const auto through = connection();
  const auto delivery = through->publish(records, until);
  const std::size_t confirmed = delivery->reported - delivery->failed, refused = delivery->refused;
  const Outcome outcome{records.size() - confirmed, delivery->why};
  through->close(delivery);
  delivered_.add(static_cast<double>(confirmed));
  refused_.add(static_cast<double>(refused));
  timed_out_.add(static_cast<double>(outcome.failed - std::min(refused, outcome.failed)));
  return outcome;
}

void KafkaSender::stop() {
  std::shared_ptr<Connection> last;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    last = std::move(connection_);
  }
  if (last) last->give_up();
}

}  // namespace weir::queue::detail

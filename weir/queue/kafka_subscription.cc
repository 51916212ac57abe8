#include "weir/queue/kafka_subscription.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "weir/base/fault.h"
#include "weir/queue/kafka_record.h"
#include "weir/telemetry/log.h"

namespace weir::queue::detail {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kHeartbeat{2'000};
// What a member reads ahead of take(): enough for a few of its largest batches.
constexpr int kReadAheadMessages = 50'000, kReadAheadKbytes = 16 * 1024;
// What comes without waiting is looked at for the time only now and then.
constexpr std::size_t kMessagesPerLook = 64;
// interrupt() wakes who waits; this is in case that it came between two waits.
constexpr std::chrono::milliseconds kLookForInterrupt{250};

// Refused because the partition is, or will be, another's.
bool is_lost(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION || error == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
         error == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS || error == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID ||
         error == RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST || error == RD_KAFKA_RESP_ERR__NO_OFFSET;
}

}  // namespace

void KafkaMembers::add(KafkaSubscription& member) {
  const std::lock_guard lock(mutex_);
  members_.insert(&member);
  if (stopped_) member.stop();
}

void KafkaMembers::remove(KafkaSubscription& member) {
  const std::lock_guard lock(mutex_);
  members_.erase(&member);
}

void KafkaMembers::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (KafkaSubscription* member : members_) member->stop();
}

KafkaHandle KafkaSubscription::make_client(const Options& options, Link& link) {
  KafkaConfig config(options.bootstrap, options.client_id);
  config.set("group.id", options.group);
  config.set("partition.assignment.strategy", "cooperative-sticky");
  config.set("session.timeout.ms", kSession.count());
  config.set("heartbeat.interval.ms", kHeartbeat.count());
  config.set("max.poll.interval.ms", options.max_poll.count());
  config.set("enable.auto.commit", "false");
  config.set("enable.auto.offset.store", "false");
  // A group that is known has committed where it began; what it has no offset for is a partition made later, or was
  // taken by the retention.
  config.set("auto.offset.reset", "earliest");
  config.set("isolation.level", "read_committed");
  config.set("queued.min.messages", kReadAheadMessages);
  config.set("queued.max.messages.kbytes", kReadAheadKbytes);
  config.set("fetch.error.backoff.ms", 100);
  rd_kafka_conf_set_opaque(config.raw(), &link);
  rd_kafka_conf_set_rebalance_cb(config.raw(), on_rebalance);
  // For on_log: the steps of joining can't be seen otherwise.
  config.set("debug", "cgrp");
  rd_kafka_conf_set_log_cb(config.raw(), on_log);
  // What is worth knowing is in the log already.
  rd_kafka_conf_set_error_cb(config.raw(), [](rd_kafka_t*, int, const char*, void*) {});
  KafkaHandle client = config.make(RD_KAFKA_CONSUMER);
  rd_kafka_poll_set_consumer(client.get());
  return client;
}

KafkaSubscription::KafkaSubscription(Options options, KafkaMembers& members)
    : options_(std::move(options)),
      members_(members),
      damaged_(telemetry::counter("weir_queue_damaged_total",
                                  "Places where stored events were damaged and skipped",
                                  {{"where", "kafka"}})),
      link_(std::make_unique<Link>(this)),
      client_(make_client(options_, *link_)),
      events_(rd_kafka_queue_get_consumer(client_.get())) {
  const KafkaPartitions topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), options_.topic.c_str(), RD_KAFKA_PARTITION_UA);
  throw_unless_done("join group " + options_.group, rd_kafka_subscribe(client_.get(), topics.get()));
  members_.add(*this);
}

KafkaSubscription::~KafkaSubscription() {
  members_.remove(*this);
  held_.clear();
  ahead_.clear();
  serve_while([this] { return link_->fragile.load(); });
  const KafkaError error(rd_kafka_consumer_close_queue(client_.get(), events_.get()));
  serve_while([&] { return !error && rd_kafka_consumer_closed(client_.get()) == 0; });
  events_.reset();
  if (link_->fragile) {
    log::warn("group {}: a client that was just joining is left as it is", options_.group);
    [[maybe_unused]] const Link* link = link_.release();
    [[maybe_unused]] const rd_kafka_t* client = client_.release();
    return;
  }
  // The handle's own destructor would wait for the broker without a limit.
  rd_kafka_destroy_flags(client_.release(), RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

// For kLeave at most.
void KafkaSubscription::serve_while(auto condition) {
  const auto until = SteadyClock::now() + kLeave;
  while (condition() && SteadyClock::now() < until) Received(rd_kafka_consumer_poll(client_.get(), 20));
}

// Up to 2.2 librdkafka aborts the process when a member is destroyed that has joined its group and never got an
// assignment (its issue 4312); nothing but these lines tells when that is. From its own threads.
void KafkaSubscription::on_log(const rd_kafka_t* client, int level, const char* facility, const char* text) {
  constexpr int kDebug = 7;
  if (level < kDebug) return log_kafka(level, facility, text);
  if (std::string_view(facility) != "CGRPJOINSTATE") return;
  // "Group "g" changed join state wait-join -> wait-sync (state up)"
  const std::string_view line(text);
  const auto changed = [&](const char* step) { return line.find(step) != std::string_view::npos; };
  auto& link = *static_cast<Link*>(rd_kafka_opaque(client));
  if (link.assigned) return;
  if (changed(" wait-join -> ") && !changed(" -> init ")) link.fragile = true;
  if (changed(" wait-sync -> ") && !changed(" -> init ")) {
    link.assigned = true;
    link.fragile = false;
  }
}

void KafkaSubscription::interrupt() noexcept {
  interrupted_ = true;
  rd_kafka_queue_yield(events_.get());
}

void KafkaSubscription::stop() noexcept {
  stopped_ = true;
  interrupt();
}

// --- Partitions that come and go ----------------------------------------------------------------------------

void KafkaSubscription::on_rebalance(rd_kafka_t* client, rd_kafka_resp_err_t what,
                                     rd_kafka_topic_partition_list_t* partitions, void* link) {
  auto& self = *static_cast<Link*>(link)->self;
  const bool assigned = what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
  if (!assigned) self.revoke(partitions);
  const KafkaError error(assigned ? rd_kafka_incremental_assign(client, partitions)
                                  : rd_kafka_incremental_unassign(client, partitions));
  if (error)
    log::error("group {}: the partitions of {} couldn't be changed: {}", self.options_.group,
               self.options_.topic, rd_kafka_error_string(error.get()));
  else if (assigned)
    self.assign(partitions);
}

void KafkaSubscription::assign(rd_kafka_topic_partition_list_t* partitions) {
  for (int i = 0; i < partitions->cnt; ++i) parts_[partitions->elems[i].partition] = {};
  if (paused_) rd_kafka_pause_partitions(client_.get(), partitions);
}

// Forgets all of them, what was fetched of them included: another member gives it out from now on.
void KafkaSubscription::revoke(rd_kafka_topic_partition_list_t* partitions) {
  if (!rd_kafka_assignment_lost(client_.get())) commit_done(partitions);
  const auto is_revoked = [&](std::int32_t number) {
    return rd_kafka_topic_partition_list_find(partitions, options_.topic.c_str(), number) != nullptr;
  };
  if (taking_ != nullptr)
    std::erase_if(*taking_, [&](const Message& message) {
      return message.topic.data() == options_.topic.data() &&
             is_revoked(static_cast<std::int32_t>(message.partition));
    });
  std::erase_if(ahead_, [&](const Received& one) { return is_revoked(one->partition); });
  std::erase_if(parts_, [&](const auto& entry) {
    const auto& [number, part] = entry;
    if (!is_revoked(number)) return false;
    // What this very take() has gathered isn't anybody's yet.
    if (taking_ == nullptr && part.next > part.done) lost_ = true;
    return true;
  });
}

// What commit() was called for and Kafka refused for the moment, while the partition is still ours.
void KafkaSubscription::commit_done(const rd_kafka_topic_partition_list_t* partitions) {
  Parts owed;
  for (int i = 0; i < partitions->cnt; ++i) {
    const auto found = parts_.find(partitions->elems[i].partition);
    if (found != parts_.end() && found->second.done > found->second.committed) owed.insert(*found);
  }
  if (owed.empty()) return;
  const auto offsets = list_of(owed);
  const auto error = commit_to_kafka(offsets.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    log::warn("group {}: what was done of {} couldn't be committed before it went to another member: {}",
              options_.group, options_.topic, rd_kafka_err2str(error));
}

KafkaPartitions KafkaSubscription::list_of(const Parts& parts) const {
  KafkaPartitions list(rd_kafka_topic_partition_list_new(static_cast<int>(parts.size())));
  for (const auto& [number, part] : parts)
    rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(), number)->offset = part.done;
  return list;
}

void KafkaSubscription::set_paused(bool paused) {
  if (paused_ == paused) return;
  const auto all = list_of(parts_);
  const auto error = paused ? rd_kafka_pause_partitions(client_.get(), all.get())
                            : rd_kafka_resume_partitions(client_.get(), all.get());
  throw_unless_done("change what is read of topic " + options_.topic, error);
  paused_ = paused;
}

// --- Taking -------------------------------------------------------------------------------------------------

bool KafkaSubscription::take(std::vector<Message>& messages, const Limits& limits) {
  held_.clear();
  if (interrupted_) return !stopped_;
  seek();
  set_paused(false);
  trouble_.clear();
  const std::size_t before = messages.size();
  taking_ = &messages;
  gather(messages, limits);
  taking_ = nullptr;
  if (messages.size() == before && !trouble_.empty()) throw_away("read topic " + options_.topic, trouble_);
  return !stopped_;
}

void KafkaSubscription::gather(std::vector<Message>& messages, const Limits& limits) {
  auto until = SteadyClock::now() + kIdle;
  std::size_t bytes_left = limits.bytes;
  bool first = true;
  for (std::size_t tries = 0; messages.size() < limits.messages && bytes_left > 0; ++tries) {
    if (interrupted_ || !trouble_.empty()) return;
    if (tries % kMessagesPerLook == 0 && SteadyClock::now() >= until) return;
    Received received = receive(std::chrono::milliseconds(0));
    if (!received) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now());
      if (left.count() <= 0) return;
      received = receive(std::min(left, kLookForInterrupt));
    }
    if (!received) continue;
    const std::size_t bytes = received->len + received->key_len;
    if (!accept(std::move(received), messages)) continue;
    bytes_left -= std::min(bytes_left, bytes);
    if (first) until = SteadyClock::now() + limits.max_wait;
    first = false;
  }
}

// A message, or nothing within the time; serves what else has come meanwhile.
KafkaSubscription::Received KafkaSubscription::receive(std::chrono::milliseconds at_most) {
  if (!ahead_.empty()) {
    Received first = std::move(ahead_.front());
    ahead_.pop_front();
    return first;
  }
  Received received(rd_kafka_consumer_poll(client_.get(), to_millis(at_most)));
  if (!received || received->err == RD_KAFKA_RESP_ERR_NO_ERROR) return received;
  const std::string why = rd_kafka_message_errstr(received.get());
  log::warn("group {}: topic {}: {}", options_.group, options_.topic, why);
  // The partitions go and come again by themselves.
  if (received->err != RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED) trouble_ = why;
  return nullptr;
}

// False for what isn't to be given out: of a partition that isn't ours, or from before a rewind.
bool KafkaSubscription::accept(Received received, std::vector<Message>& messages) {
  const auto found = parts_.find(received->partition);
  if (found == parts_.end()) return false;
  Part& part = found->second;
  if (received->offset < part.next) return false;
  if (part.next == kUnknown) part.committed = part.done = received->offset;
  part.next = received->offset + 1;
  messages.push_back(message_of(*received));
  held_.push_back(std::move(received));
  return true;
}

Message KafkaSubscription::message_of(rd_kafka_message_t& received) {
  Message message;
  message.topic = options_.topic;
  message.partition = static_cast<std::uint32_t>(received.partition);
  message.offset = received.offset;
  message.key = {static_cast<const char*>(received.key), received.key_len};
  message.payload = {static_cast<const char*>(received.payload), received.len};
  read_headers(received, message);
  if (message.producer != kNoProducer) return message;
  message.key = message.key.substr(0, kMaxForeignKeyBytes);
  message.payload = message.payload.substr(0, kMaxForeignPayloadBytes);
  rd_kafka_timestamp_type_t type;
  const std::int64_t millis = rd_kafka_message_timestamp(&received, &type);
  message.appended_at = millis >= 0 ? from_micros(millis * 1'000) : Clock::system().now();
  return message;
}

// Of a name that is there more than once the last counts, as for Kafka's own clients.
void KafkaSubscription::read_headers(rd_kafka_message_t& received, Message& message) {
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&received, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const auto last = [&](const char* name) -> std::optional<std::string_view> {
    const void* value = nullptr;
    std::size_t size = 0;
    if (rd_kafka_header_get_last(headers, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
      return std::nullopt;
    return std::string_view(static_cast<const char*>(value), value == nullptr ? 0 : size);
  };
  const auto identity = last(kIdentityHeader);
  if (identity && !decode_identity(*identity, message)) {
    damaged_.add();
    log::warn("topic {}, partition {}, offset {}: its identity can't be read", options_.topic,
              received.partition, received.offset);
  }
  message.event_id = last(kEventIdHeader).value_or(std::string_view());
}

// --- Committing ---------------------------------------------------------------------------------------------

void KafkaSubscription::commit() {
  Parts owed;
  for (auto& [number, part] : parts_) {
    part.done = part.next;
    if (part.done > part.committed) owed.emplace(number, part);
  }
  if (owed.empty()) return;
  const auto offsets = list_of(owed);
  throw_unless_done("commit for group " + options_.group, commit_to_kafka(offsets.get()));
}

// Nothing is wrong with what was refused because the partition goes to another member.
rd_kafka_resp_err_t KafkaSubscription::commit_to_kafka(rd_kafka_topic_partition_list_t* offsets) {
  // Without a limit of ours: what librdkafka still had to commit would undo a later commit. It gives up by itself,
  // after the time of a session or of a request.
  const auto error = rd_kafka_commit(client_.get(), offsets, 0);
  auto first = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (int i = 0; i < offsets->cnt; ++i) {
    const auto& one = offsets->elems[i];
    const auto outcome = one.err != RD_KAFKA_RESP_ERR_NO_ERROR ? one.err : error;
    if (outcome == RD_KAFKA_RESP_ERR_NO_ERROR)
      parts_[one.partition].committed = one.offset;
    else if (!is_lost(outcome) && first == RD_KAFKA_RESP_ERR_NO_ERROR)
      first = outcome;
  }
  return first;
}

bool KafkaSubscription::keep() noexcept {
  try {
    set_paused(true);
    while (Received received{rd_kafka_consumer_poll(client_.get(), 0)})
      if (received->err == RD_KAFKA_RESP_ERR_NO_ERROR) ahead_.push_back(std::move(received));
  } catch (const std::exception& error) {
    telemetry::swallowed("queue.keep", error);
  }
  return !lost_;
}

void KafkaSubscription::rewind() {
  held_.clear();
  lost_ = false;
  for (auto& [number, part] : parts_) {
    if (part.next == part.done) continue;
    part.next = part.done;
    part.seek = true;
    const std::int32_t mine = number;
    std::erase_if(ahead_, [mine](const Received& one) { return one->partition == mine; });
  }
}

// What rewind() has asked for: it can fail, and is tried again with the next take() then.
void KafkaSubscription::seek() {
  Parts back;
  for (const auto& [number, part] : parts_)
    if (part.seek) back.emplace(number, part);
  if (back.empty()) return;
  const auto offsets = list_of(back);
  const KafkaError error(rd_kafka_seek_partitions(client_.get(), offsets.get(), to_millis(kKafkaAnswer)));
  if (error) throw_away("go back in topic " + options_.topic, rd_kafka_error_string(error.get()));
  for (int i = 0; i < offsets->cnt; ++i) {
    throw_unless_done("go back in topic " + options_.topic, offsets->elems[i].err);
    parts_[offsets->elems[i].partition].seek = false;
  }
}

}  // namespace weir::queue::detail

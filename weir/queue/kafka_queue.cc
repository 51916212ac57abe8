#include "weir/queue/kafka_queue.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "weir/base/fault.h"
#include "weir/queue/kafka_admin.h"
#include "weir/queue/kafka_sender.h"
#include "weir/queue/kafka_subscription.h"
#include "weir/queue/kafka_url.h"
#include "weir/queue/topic_metrics.h"
#include "weir/telemetry/log.h"

namespace weir::queue {
namespace {

using detail::KafkaAdmin;

constexpr std::size_t kMaxKafkaTopic = 249;
// Kafka deletes whole segments: what is past the retention stays for one segment's time more.
constexpr int kSegmentsInRetention = 4;

struct Topic {
  explicit Topic(const std::string& name)
      : published(topic_metrics::published(name)), dropped(topic_metrics::dropped(name)) {}
  std::atomic<std::uint32_t> partitions{0};
  telemetry::Counter published;
  telemetry::Counter dropped;  // made here so that it is there at 0
};

KafkaAdmin::NewTopic new_topic(const KafkaQueue::Options& options) {
  const auto retention = std::chrono::duration_cast<std::chrono::milliseconds>(options.retention).count();
  KafkaAdmin::NewTopic as{
      options.partitions,
      options.replication,
      {{"retention.ms", std::to_string(retention)},
       {"segment.ms", std::to_string(std::max<std::int64_t>(1, retention / kSegmentsInRetention))}}};
  // The retention counts from when an event arrives, also for one that has waited in the journal for days, and no clock
  // of a node that is wrong makes Kafka delete or refuse it.
  as.settings.emplace_back("message.timestamp.type", "LogAppendTime");
  if (options.acks == Acks::all)
    as.settings.emplace_back("min.insync.replicas", std::to_string(std::min(2U, options.replication)));
  return as;
}

std::string why_not(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
      return "it didn't confirm them in time";
    default:
      return rd_kafka_err2str(error);
  }
}

}  // namespace

void check_kafka_topic(std::string_view name) {
  const bool good = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  if (!good || name.empty() || name.size() > kMaxKafkaTopic || name == "." || name == "..")
    throw Unusable("not the name of a Kafka topic (1 to 249 of a-z A-Z 0-9 . _ -): " +
                   std::string(name.substr(0, kMaxKafkaTopic)));
}

struct KafkaQueue::State {
  using GroupId = std::pair<std::string, std::string>;  // topic, group

  explicit State(Options given)
      : options(std::move(given)),
        bootstrap(KafkaAddress::parse(options.url).bootstrap()),
        admin(bootstrap, options.client_id),
        sender({.bootstrap = bootstrap,
                .client_id = options.client_id,
                .acks = options.acks,
                .timeout = options.publish_timeout,
                .linger = options.linger,
                .max_waiting = options.max_waiting}),
        looker([this] { look(); }) {}

  std::shared_ptr<Topic> topic(std::string_view name);
  std::shared_ptr<Topic> make_topic(const std::string& name);
  void forget(std::span<const Record> records);
  std::vector<Lag> ask_lag();
  void look();

  const Options options;
  const std::string bootstrap;
  KafkaAdmin admin;
  detail::KafkaMembers members;
  detail::KafkaSender sender;

  std::mutex mutex;  // guards all down to the thread
  std::condition_variable ending;
  bool stopping = false;
  std::map<std::string, std::shared_ptr<Topic>, std::less<>> topics;
  std::map<GroupId, std::vector<telemetry::Gauge>> groups;
  std::thread looker;
};

KafkaQueue::KafkaQueue(Options options) : state_(std::make_unique<State>(std::move(options))) {}

KafkaQueue::~KafkaQueue() {
  stop();
}

void KafkaQueue::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->ending.notify_all();
  state_->members.stop();
  state_->sender.stop();
  if (state_->looker.joinable()) state_->looker.join();
}

bool KafkaQueue::available() const noexcept {
  return state_->admin.reached();
}

// --- Topics -------------------------------------------------------------------------------------------------

std::shared_ptr<Topic> KafkaQueue::State::topic(std::string_view name) {
  {
    const std::lock_guard lock(mutex);
    const auto found = topics.find(name);
    if (found != topics.end()) return found->second;
  }
  return make_topic(std::string(name));
}

std::shared_ptr<Topic> KafkaQueue::State::make_topic(const std::string& name) {
  check_kafka_topic(name);
  auto fresh = std::make_shared<Topic>(name);
  auto there = admin.partitions(name);
  if (!there) {
    admin.create(name, new_topic(options));
    there = admin.partitions(name);
  }
  if (there && *there > 0 && *there < options.partitions) {
    admin.grow(name, options.partitions);
    there = options.partitions;
  }
  if (!there || *there == 0) throw Unavailable("Kafka doesn't know topic " + name + " yet");
  fresh->partitions = *there;
  const std::lock_guard lock(mutex);
  return topics.emplace(name, std::move(fresh)).first->second;
}

void KafkaQueue::create_topic(const std::string& name) {
  state_->topic(name);
}

std::vector<std::string> KafkaQueue::topics() {
  return state_->admin.topics();
}

std::uint32_t KafkaQueue::partitions(const std::string& name) {
  return state_->topic(name)->partitions;
}

// One of their topics may have been deleted, which Kafka's client doesn't tell from one that it just can't write to:
// they are looked for anew.
void KafkaQueue::State::forget(std::span<const Record> records) {
  const std::lock_guard lock(mutex);
  for (const Record& record : records) {
    const auto found = topics.find(record.topic);
    if (found != topics.end()) topics.erase(found);
  }
}

// --- Publishing ---------------------------------------------------------------------------------------------

void KafkaQueue::publish(std::span<const Record> records) {
  struct Some {
    std::string_view name;
    std::shared_ptr<Topic> topic;
    std::size_t count = 0;
  };
  std::vector<Some> counts;
  Some* of = nullptr;
  for (const Record& record : records) {
    if (of == nullptr || of->name != record.topic) {
      const auto found = std::ranges::find(counts, record.topic, &Some::name);
      of = found != counts.end() ? &*found
                                 : &counts.emplace_back(Some{record.topic, state_->topic(record.topic)});
    }
    ++of->count;
  }
  const auto outcome = state_->sender.publish(records);
  if (outcome.failed == 0) {
    for (const Some& some : counts) some.topic->published.add(static_cast<double>(some.count));
    return;
  }
  state_->forget(records);
  throw Unavailable("Kafka didn't take " + std::to_string(outcome.failed) + " of " +
                    std::to_string(records.size()) + " events: " + why_not(outcome.why));
}

// --- Groups -------------------------------------------------------------------------------------------------

void KafkaQueue::subscribe(const std::string& name, const std::string& group, From from) {
  const auto of = state_->topic(name);
  const auto committed = state_->admin.committed(name, group, of->partitions);
  const bool known = std::ranges::any_of(committed, [](std::int64_t offset) { return offset >= 0; });
  if (!known) {
    const auto begin = state_->admin.offsets(
        name, of->partitions, from == From::earliest ? KafkaAdmin::Edge::first : KafkaAdmin::Edge::end);
    std::vector<KafkaAdmin::Offset> offsets;
    for (std::uint32_t number = 0; number < of->partitions; ++number)
      offsets.push_back({number, begin[number]});
    // A group that has members but no offsets began elsewhere at this moment.
    if (!state_->admin.commit(name, group, offsets))
      log::info("group {} of topic {} is known to Kafka already", group, name);
  }
  const std::lock_guard lock(state_->mutex);
  auto& gauges = state_->groups[{name, group}];
  while (gauges.size() < of->partitions)
    gauges.push_back(topic_metrics::lag(name, group, static_cast<std::uint32_t>(gauges.size())));
}

std::unique_ptr<Subscription> KafkaQueue::join(const std::string& name, const std::string& group, Share) {
  detail::KafkaSubscription::Options options;
  options.bootstrap = state_->bootstrap;
  options.client_id = state_->options.client_id;
  options.topic = name;
  options.group = group;
  options.max_poll = state_->options.max_poll;
  return std::make_unique<detail::KafkaSubscription>(std::move(options), state_->members);
}

// --- Lag ----------------------------------------------------------------------------------------------------

std::vector<Lag> KafkaQueue::lag() {
  return state_->ask_lag();
}

// The metric is set by the way.
std::vector<Lag> KafkaQueue::State::ask_lag() {
  std::vector<GroupId> ids;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [id, gauges] : groups) ids.push_back(id);
  }
  std::vector<Lag> all;
  std::vector<std::int64_t> first, end;  // of the topic before: groups are in the order of their topics
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& [name, group] = ids[i];
    const bool new_topic = i == 0 || ids[i - 1].first != name;
    // Others may have made more of them.
    if (new_topic) topic(name)->partitions = admin.partitions(name).value_or(0);
    const std::uint32_t count = topic(name)->partitions;
    const auto committed = admin.committed(name, group, count);
    if (new_topic) {
      first = admin.offsets(name, count, KafkaAdmin::Edge::first);
      end = admin.offsets(name, count, KafkaAdmin::Edge::end);
    }
    const std::lock_guard lock(mutex);
    auto& gauges = groups[ids[i]];
    for (std::uint32_t number = 0; number < count; ++number) {
      // What the retention has taken nobody will read.
      const std::int64_t lag =
          std::max<std::int64_t>(0, end[number] - std::max(committed[number], first[number]));
      all.push_back({name, group, number, lag});
      if (number >= gauges.size()) gauges.push_back(topic_metrics::lag(name, group, number));
      gauges[number].set(static_cast<double>(lag));
    }
  }
  return all;
}

void KafkaQueue::State::look() {
  const auto pause = [this] {
    std::unique_lock lock(mutex);
    return !ending.wait_for(lock, kLookEvery, [this] { return stopping; });
  };
  while (pause()) {
    try {
      admin.look();
      ask_lag();
    } catch (const std::exception& error) {
      telemetry::swallowed("queue.look", error);
    }
  }
}

}  // namespace weir::queue

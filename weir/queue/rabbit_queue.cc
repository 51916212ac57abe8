#include "weir/queue/rabbit_queue.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "weir/queue/partition.h"
#include "weir/queue/rabbit_catalog.h"
#include "weir/queue/rabbit_publisher.h"
#include "weir/queue/rabbit_subscription.h"
#include "weir/queue/topic_metrics.h"
#include "weir/telemetry/log.h"

namespace weir::queue {
namespace {

// The broker keeps times in timers of 32 bits of milliseconds.
constexpr std::chrono::hours kMaxRetention{49 * 24};
constexpr std::uint32_t kMaxPartitions = 1'024, kMaxReplication = 15;

void check(const RabbitQueue::Options& options) {
  const auto must = [](bool holds, const char* what) {
    if (!holds) throw Unusable(std::string("RabbitQueue: ") + what);
  };
  must(options.partitions >= 1 && options.partitions <= kMaxPartitions, "partitions must be 1 to 1024");
  must(options.retention > std::chrono::seconds(0) && options.retention <= kMaxRetention,
       "the retention must be above 0 and at most 49 days");
  must(options.replication >= 1 && options.replication <= kMaxReplication, "the replication must be 1 to 15");
  must(options.prefetch > 0, "the prefetch must be above 0");
  must(options.connect_timeout.count() > 0 && options.publish_timeout.count() > 0,
       "the time-outs must be above 0");
  must(options.heartbeat.count() >= 1 && options.heartbeat.count() <= 3'600,
       "the heartbeat must be one second to an hour");
}

}  // namespace

struct RabbitQueue::Topic {
  explicit Topic(std::string topic_name)
      : name(std::move(topic_name)),
        published(topic_metrics::published(name)),
        dropped(topic_metrics::dropped(name)) {}

  const std::string name;
  std::uint32_t partitions = 0;  // guarded by State::mutex
  telemetry::Counter published;
  telemetry::Counter dropped;                                 // made here so that it is there at 0
  std::map<std::string, std::vector<telemetry::Gauge>> lags;  // by group; guarded by State::mutex
};

struct RabbitQueue::State {
  explicit State(Options given)
      : options(std::move(given)),
        link{RabbitAddress::parse(options.url), options.connect_timeout, options.heartbeat},
        shape{options.retention, options.exchange, options.replication},
        publisher(link, shape, options.publish_timeout, available) {
    options.url.clear();  // the password is in one place only
  }

  // Runs it on the connection for questions, once more if that one was lost meanwhile: f must be able to.
  template <class F>
  auto ask(F f) {
    const std::lock_guard lock(asking);
    for (bool again = connection != nullptr;; again = false) {
      try {
        if (stopped) throw Unavailable("the queue was stopped");
        if (!connection) connection = std::make_unique<detail::RabbitConnection>(link, &breaker);
        if constexpr (std::is_void_v<decltype(f(*connection))>) {
          f(*connection);
          available = true;
          return;
        } else {
          auto answer = f(*connection);
          available = true;
          return answer;
        }
      } catch (const detail::RabbitConnection::Refused&) {
        throw;
      } catch (const Unavailable&) {
        connection.reset();
        available = false;
        if (!again || stopped) throw;
      }
    }
  }

  Options options;
  const detail::RabbitLink link;
  const detail::RabbitShape shape;
  std::atomic<bool> available{false}, stopped{false};

  std::mutex asking;  // is taken before `mutex`
  detail::SocketBreaker breaker;
  std::unique_ptr<detail::RabbitConnection> connection;  // guarded by `asking`

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Topic>, std::less<>> topics;
  std::set<detail::RabbitSubscription*> members;

  detail::RabbitPublisher publisher;
};

RabbitQueue::RabbitQueue(Options options)
    : state_((check(options), std::make_unique<State>(std::move(options)))),
      housekeeper_([this] { keep_house(); }) {}

RabbitQueue::~RabbitQueue() {
  stop();
}

void RabbitQueue::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
    for (auto* member : state_->members) member->stop();
  }
  state_->changed.notify_all();
  state_->breaker.break_now();
  state_->publisher.stop();
  if (housekeeper_.joinable()) housekeeper_.join();
}

bool RabbitQueue::available() const noexcept {
  return state_->available;
}

// --- Topics and groups -------------------------------------------------------------------------------------

void RabbitQueue::create_topic(const std::string& name) {
  topic(name);
}

std::vector<std::string> RabbitQueue::topics() {
  const auto catalog = state_->ask([](detail::RabbitConnection& connection) {
    return detail::RabbitCatalog::visit(connection, [](detail::RabbitCatalog&) { return false; });
  });
  std::vector<std::string> names;
  for (const auto& [name, topic] : catalog.topics()) names.push_back(name);
  return names;
}

std::uint32_t RabbitQueue::partitions(const std::string& name) {
  const auto of = topic(name);
  const std::lock_guard lock(state_->mutex);
  return of->partitions;
}

std::shared_ptr<RabbitQueue::Topic> RabbitQueue::topic(std::string_view name) {
  {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->topics.find(name);
    if (found != state_->topics.end()) return found->second;
  }
  detail::check_topic_name(name);
  return make(std::string(name), {});
}

// Makes the topic and, unless its name is empty, the group; and what the topic's other groups lack.
std::shared_ptr<RabbitQueue::Topic> RabbitQueue::make(const std::string& name, const std::string& group) {
  detail::RabbitCatalog::Topic wanted{state_->options.partitions, {}};
  if (!group.empty()) wanted.groups.insert(group);
  const auto catalog = state_->ask([&](detail::RabbitConnection& connection) {
    return detail::RabbitCatalog::visit(connection, [&](detail::RabbitCatalog& known) {
      const detail::RabbitCatalog before = known;
      const auto& now = known.add(name, wanted);
      make_topic(connection, state_->shape, name);
      const auto old = before.topics().find(name);
      const bool grown = old != before.topics().end() && old->second.partitions < now.partitions;
      for (const auto& some : now.groups)
        if (grown || some == group) make_group(connection, state_->shape, name, some, now.partitions);
      return known != before;
    });
  });
  const std::lock_guard lock(state_->mutex);
  auto& topic = state_->topics[name];
  if (!topic) topic = std::make_shared<Topic>(name);
  topic->partitions = catalog.topics().at(name).partitions;
  return topic;
}

void RabbitQueue::subscribe(const std::string& name, const std::string& group, From) {
  detail::check_group_name(name, group);
  const auto of = make(name, group);
  const std::lock_guard lock(state_->mutex);
  auto& gauges = of->lags[group];
  while (gauges.size() < of->partitions)
    gauges.push_back(topic_metrics::lag(name, group, static_cast<std::uint32_t>(gauges.size())));
}

std::unique_ptr<Subscription> RabbitQueue::join(const std::string& name, const std::string& group,
                                                Share share) {
  detail::check_group_name(name, group);
  auto member = std::make_unique<detail::RabbitSubscription>(detail::RabbitSubscription::Settings{
      .link = state_->link,
      .shape = state_->shape,
      .topic = name,
      .group = group,
      .partitions = partitions(name),
      .share = share,
      .prefetch = state_->options.prefetch,
      .clock = state_->options.clock,
      .available = &state_->available,
      .left = [state = state_.get()](detail::RabbitSubscription& leaving) {
        const std::lock_guard lock(state->mutex);
        state->members.erase(&leaving);
      }});
  const std::lock_guard lock(state_->mutex);
  state_->members.insert(member.get());
  if (state_->stopped) member->stop();
  return member;
}

// --- Publishing --------------------------------------------------------------------------------------------

void RabbitQueue::publish(std::span<const Record> records) {
  std::vector<detail::RabbitPublisher::Routed> routed;
  routed.reserve(records.size());
  std::map<std::string_view, std::pair<std::shared_ptr<Topic>, std::size_t>> counts;
  std::shared_ptr<Topic> of;
  std::uint32_t partitions = 0;
  for (const Record& record : records) {
    if (!of || of->name != record.topic) {
      of = topic(record.topic);
      counts.try_emplace(of->name, of, 0);
      const std::lock_guard lock(state_->mutex);
      partitions = of->partitions;
    }
    routed.push_back({&record, partition_of(record.key, partitions)});
    ++counts[of->name].second;
  }
  state_->publisher.publish(routed);
  for (const auto& [name, count] : counts) count.first->published.add(static_cast<double>(count.second));
}

// --- Lag and housekeeping ----------------------------------------------------------------------------------

std::vector<Lag> RabbitQueue::lag() {
  std::vector<Lag> lags;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [name, topic] : state_->topics)
      for (const auto& [group, gauges] : topic->lags)
        for (std::uint32_t partition = 0; partition < gauges.size(); ++partition)
          lags.push_back({name, group, partition, 0});
  }
  state_->ask([&](detail::RabbitConnection& connection) {
    for (Lag& lag : lags)
      lag.lag = connection.depth(detail::queue_name(lag.topic, lag.group, lag.partition)).value_or(0);
  });
  const std::lock_guard lock(state_->mutex);
  for (Lag& lag : lags) {
    for (const auto* member : state_->members)
      if (member->is_of(lag.topic, lag.group)) lag.lag += member->uncommitted(lag.partition);
    state_->topics.at(lag.topic)->lags.at(lag.group)[lag.partition].set(static_cast<double>(lag.lag));
  }
  return lags;
}

// Also serves the heartbeats of the connection for questions, by asking.
void RabbitQueue::keep_house() {
  const std::chrono::milliseconds heartbeat = state_->options.heartbeat;
  const auto every = std::min(kLagEvery, heartbeat / 2);
  std::unique_lock lock(state_->mutex);
  while (!state_->stopped) {
    lock.unlock();
    try {
      if (lag().empty())
        state_->ask([](detail::RabbitConnection& connection) {
          amqp_frame_t frame;
          while (connection.next_frame(frame, std::chrono::milliseconds(0))) continue;
        });
    } catch (const std::exception& error) {
      if (!state_->stopped) telemetry::swallowed("queue.lag", error);
    }
    lock.lock();
    state_->changed.wait_for(lock, every, [this] { return state_->stopped.load(); });
  }
}

}  // namespace weir::queue

#include "weir/queue/rabbit_catalog.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/base/clock.h"
#include "weir/queue/wire.h"

namespace weir::queue::detail {
namespace {

constexpr std::uint64_t kVersion = 1;
const std::string kQueue = "weir.catalog";
const std::string kLock = "weir.catalog.lock";

// How long to wait for others that hold the lock.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kRetryFirst{10}, kRetryMax{200};
// How long the message of a holder that died may take to come back after its lock has gone.
constexpr std::chrono::milliseconds kComeBack{200};
constexpr std::uint8_t kPersistent = 2;

// Holds the lock until it is released, or the connection is gone.
class Lock {
 public:
  explicit Lock(RabbitConnection& connection) : connection_(connection) {
    const SteadyTime give_up = Clock::system().steady_now() + kPatience;
    Backoff backoff(kRetryFirst, kRetryMax);
    for (;;) {
      try {
        connection_.declare_exclusive_queue(kLock);
        return;
      } catch (const RabbitConnection::Refused& refused) {
        if (refused.code() != RabbitConnection::kLocked || Clock::system().steady_now() > give_up) throw;
      }
      std::this_thread::sleep_for(backoff.next());
    }
  }
  // Else nobody else could look while the connection lives.
  ~Lock() {
    try {
      connection_.delete_queue(kLock);
    } catch (const Unavailable&) {  // it goes with the connection
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  RabbitConnection& connection_;
};

// Takes all messages; the tag of the last one, 0 if there is none.
std::uint64_t take_all(RabbitConnection& connection, RabbitCatalog& catalog) {
  std::uint64_t last = 0;
  while (const auto got = connection.get(kQueue)) {
    last = got->tag;
    const auto part = RabbitCatalog::decode(got->body);
    if (!part) throw Unavailable("the queue weir.catalog holds a message that can't be read");
    catalog.merge(*part);
  }
  return last;
}

RabbitCatalog read(RabbitConnection& connection) {
  RabbitCatalog catalog;
  connection.begin();
  std::uint64_t last = take_all(connection, catalog);
  if (last == 0) {
    std::this_thread::sleep_for(kComeBack);
    last = take_all(connection, catalog);
  }
  if (last != 0) connection.give_back(last, true);
  connection.commit();
  // Answered after the queue has got it back, so that whoever comes next finds it.
  (void)connection.depth(kQueue);
  return catalog;
}

void write(RabbitConnection& connection, RabbitCatalog catalog) {
  connection.begin();
  const std::uint64_t last = take_all(connection, catalog);
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
  properties.delivery_mode = kPersistent;
  connection.publish("", kQueue, true, properties, catalog.encode());
  if (last != 0) connection.acknowledge(last, true);
  connection.commit();
}

}  // namespace

const RabbitCatalog::Topic& RabbitCatalog::add(const std::string& name, const Topic& topic) {
  Topic& known = topics_[name];
  known.partitions = std::max(known.partitions, topic.partitions);
  known.groups.insert(topic.groups.begin(), topic.groups.end());
  return known;
}

void RabbitCatalog::merge(const RabbitCatalog& other) {
  for (const auto& [name, topic] : other.topics_) add(name, topic);
}

std::string RabbitCatalog::encode() const {
  std::string out;
  put_varint(out, kVersion);
  put_varint(out, topics_.size());
  for (const auto& [name, topic] : topics_) {
    put_text(out, name);
    put_varint(out, topic.partitions);
    put_varint(out, topic.groups.size());
    for (const auto& group : topic.groups) put_text(out, group);
  }
  return out;
}

std::optional<RabbitCatalog> RabbitCatalog::decode(std::string_view bytes) {
  WireReader in(bytes);
  RabbitCatalog catalog;
  if (in.varint() != kVersion) return std::nullopt;
  for (std::uint64_t left = in.varint(); left > 0 && in.good(); --left) {
    const std::string name(in.text());
    Topic topic{static_cast<std::uint32_t>(in.varint()), {}};
    for (std::uint64_t groups = in.varint(); groups > 0 && in.good(); --groups)
      topic.groups.emplace(in.text());
    catalog.add(name, topic);
  }
  if (!in.good() || !in.at_end()) return std::nullopt;
  return catalog;
}

RabbitCatalog RabbitCatalog::visit(RabbitConnection& connection,
                                   const std::function<bool(RabbitCatalog&)>& change) {
  connection.declare_queue(kQueue, {});
  const Lock lock(connection);
  RabbitCatalog catalog = read(connection);
  if (change(catalog)) write(connection, catalog);
  return catalog;
}

}  // namespace weir::queue::detail

#include "weir/redis/cluster_map.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/base/random.h"
#include "weir/redis/call.h"
#include "weir/redis/handshake.h"

namespace weir::redis {

namespace asio = boost::asio;

namespace {

// How many nodes one look asks at most, and how long each may take.
constexpr std::size_t kMaxAsked = 8;
constexpr std::chrono::milliseconds kLookTimeout{500};
// How often it is seen whether a node is away, which is a reason for a look.
constexpr std::chrono::milliseconds kPatrol{1000};

telemetry::Counter looks(const std::string& client, const char* outcome) {
  return telemetry::counter("weir_redis_cluster_looks_total", "Looks at who has which slots of the cluster",
                            {{"client", client}, {"outcome", outcome}});
}

template <class T>
void shuffle(std::vector<T>& all) {
  Random& random = thread_random();
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
}

}  // namespace

ClusterMap::ClusterMap(const asio::any_io_executor& executor, Options options)
    : options_(std::move(options)),
      executor_(executor),
      strand_(asio::make_strand(executor)),
      timer_(strand_),
      looks_ok_(looks(options_.name, "ok")),
      looks_failed_(looks(options_.name, "error")),
      known_nodes_(telemetry::gauge("weir_redis_cluster_primaries", "Nodes of the cluster that have slots",
                                    {{"client", options_.name}})) {
  owner_.fill(SlotMap::kNobody);
}

void ClusterMap::start() {
  asio::co_spawn(strand_, keep(shared_from_this()), asio::detached);
}

void ClusterMap::stop() {
  std::vector<Known> known;
  NodePtr asked;
  {
    const Lock lock(mutex_);
    if (stopped_.exchange(true)) return;
    known = std::exchange(primaries_, {});
    owner_.fill(SlotMap::kNobody);
    asked = asked_;
    last_failure_ = "the client was stopped";
  }
  for (const auto& one : known)
    if (one.node) one.node->core()->stop();
  if (asked) asked->core()->stop();
  known_nodes_.set(0);
  asio::post(strand_, [self = shared_from_this()] { self->timer_.cancel(); });
}

NodePtr ClusterMap::connect(const Address& address) const {
  Options options = options_;
  options.address = address;
  options.seeds.clear();
  options.name += "/" + address.endpoint();
  options.fail_fast = true;  // whether to wait is decided where another node can be chosen
  return std::make_shared<Node>(executor_, std::move(options));
}

NodePtr ClusterMap::connected_to(Known& known) const {
  if (!known.node) known.node = connect(known.address);
  return known.node;
}

std::optional<std::size_t> ClusterMap::index_of(const Address& node) const {
  const auto at =
      std::ranges::find_if(primaries_, [&](const Known& one) { return same_node(one.address, node); });
  if (at == primaries_.end()) return std::nullopt;
  return static_cast<std::size_t>(at - primaries_.begin());
}

NodePtr ClusterMap::node_of(Slot slot) {
  const Lock lock(mutex_);
  const std::size_t owner = owner_[slot];
  return owner < primaries_.size() ? connected_to(primaries_[owner]) : nullptr;
}

NodePtr ClusterMap::any_node() {
  const Lock lock(mutex_);
  std::vector<Known*> connected, unknown;
  for (auto& one : primaries_) {
    if (one.node && one.node->core()->connected()) connected.push_back(&one);
    if (!one.node || !one.node->core()->down()) unknown.push_back(&one);
  }
  const auto& among = connected.empty() ? unknown : connected;
  return among.empty() ? nullptr : connected_to(*among[thread_random().below(among.size())]);
}

NodePtr ClusterMap::node_at(const Address& address) {
  const Lock lock(mutex_);
  if (stopped_) return nullptr;
  if (const auto index = index_of(address)) return connected_to(primaries_[*index]);
  if (primaries_.size() >= SlotMap::kMaxNodes) return nullptr;
  primaries_.push_back({address});
  return connected_to(primaries_.back());
}

void ClusterMap::learn(Slot slot, const Address& address) {
  const Lock lock(mutex_);
  if (stopped_) return;
  auto index = index_of(address);
  if (!index && primaries_.size() < SlotMap::kMaxNodes) {
    index = primaries_.size();
    primaries_.push_back({address});
  }
  if (index) owner_[slot] = static_cast<std::uint16_t>(*index);
}

void ClusterMap::refresh_soon() {
  if (wanted_.exchange(true)) return;
  asio::post(strand_, [self = shared_from_this()] { self->timer_.cancel(); });
}

asio::awaitable<void> ClusterMap::keep(std::shared_ptr<ClusterMap> self) {
  const auto gap = std::max(self->options_.refresh_gap, Options::Millis(1));
  Backoff backoff(gap, std::max(self->options_.backoff_max, gap));
  while (!self->stopped_) {
    self->wanted_ = false;
    const bool good = co_await self->look();
    if (good) backoff.reset();
    // All clients notice at the same moment that a node is away.
    const auto jitter = Options::Millis(thread_random().below(static_cast<std::uint64_t>(gap.count()) + 1));
    co_await self->pause(gap + jitter + (good ? Options::Millis(0) : backoff.next()));
    if (!good) continue;
    // Nobody may ask for a node that is away; it is replaced all the same.
    do {
      self->timer_.expires_after(kPatrol);
      if (!self->wanted_) co_await self->timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    } while (!self->wanted_ && !self->stopped_ && self->connected());
  }
}

// A wish for a look doesn't shorten it.
asio::awaitable<void> ClusterMap::pause(std::chrono::milliseconds time) {
  const auto end = Clock::system().steady_now() + time;
  while (!stopped_ && Clock::system().steady_now() < end) {
    timer_.expires_at(end);
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

// Who is connected answers at once; the others may be what is wrong.
auto ClusterMap::whom_to_ask() const -> std::vector<Known> {
  std::vector<Known> all;
  std::vector<Address> strangers;
  {
    const Lock lock(mutex_);
    for (const auto& one : primaries_) {
      if (one.node && one.node->core()->connected()) all.push_back(one);
      strangers.push_back(one.address);
    }
    strangers.insert(strangers.end(), replicas_.begin(), replicas_.end());
  }
  shuffle(all);
  shuffle(strangers);
  std::vector<Address> seeds = options_.seeds;
  shuffle(seeds);
  // In front of most of them: if the whole cluster has moved, only the seeds' names lead there.
  strangers.insert(
      strangers.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(strangers.size(), 2)),
      seeds.begin(), seeds.end());
  for (const auto& one : strangers) {
    if (all.size() >= kMaxAsked) break;
    if (std::ranges::none_of(all, [&](const Known& known) { return same_node(known.address, one); }))
      all.push_back({one});
  }
  return all;
}

asio::awaitable<bool> ClusterMap::look() {
  std::optional<SlotMap> best;
  auto asked = whom_to_ask();
  for (auto& one : asked) {
    if (stopped_) co_return false;
    auto map = co_await ask(connected_to(one));
    if (map && map->covered() > (best ? best->covered() : 0)) best = std::move(map);
    if (best && best->covered() == kSlots) break;
  }
  if (best) install(*best, asked);
  std::string why;
  {
    const Lock lock(mutex_);
    failed_ = !best;
    why = last_failure_;
  }
  if (stopped_) co_return false;
  (best ? looks_ok_ : looks_failed_).add();
  if (!best) telemetry::swallowed("redis " + options_.name, NotDone("no node tells of the cluster: " + why));
  co_return best.has_value();
}

asio::awaitable<std::optional<SlotMap>> ClusterMap::ask(const NodePtr& node) {
  {
    const Lock lock(mutex_);
    asked_ = node;
  }
  if (stopped_) node->core()->stop();  // `stop` may have come before it could see this one
  std::optional<SlotMap> map;
  std::string why;
  try {
    const auto now = Clock::system().steady_now();
    const Reply reply =
        co_await node->core()->run(make_call(Command::read("CLUSTER", "SLOTS"), now, now + kLookTimeout));
    reply.throw_if_error("CLUSTER SLOTS of " + node->address().endpoint());
    map = SlotMap::read(reply, node->address());
    if (map->covered() == 0) why = node->address().endpoint() + " knows of no slots";
  } catch (const std::exception& error) {
    why = Handshake::reason_of(error);
  }
  const Lock lock(mutex_);
  asked_ = nullptr;
  if (!why.empty() && !stopped_) last_failure_ = std::move(why);
  co_return map;
}

void ClusterMap::install(const SlotMap& map, const std::vector<Known>& asked) {
  std::vector<Known> known;  // what was known ends with it, outside of the lock
  for (const auto& address : map.primaries) known.push_back({address});
  const Lock lock(mutex_);
  if (stopped_) return;
  for (auto& one : known) {
    if (const auto index = index_of(one.address)) one.node = primaries_[*index].node;
    for (const auto& other : asked)
      if (!one.node && same_node(other.address, one.address)) one.node = other.node;
  }
  primaries_.swap(known);
  replicas_ = map.replicas;
  owner_ = map.owner;
  told_ = true;
  known_nodes_.set(static_cast<double>(primaries_.size()));
}

bool ClusterMap::unreachable() const {
  const Lock lock(mutex_);
  return !told_ && failed_;
}
std::string ClusterMap::last_failure() const {
  const Lock lock(mutex_);
  return last_failure_;
}

bool ClusterMap::connected() const {
  const Lock lock(mutex_);
  return told_ && std::ranges::none_of(owner_, [](auto one) { return one == SlotMap::kNobody; }) &&
         std::ranges::none_of(primaries_,
                              [](const Known& one) { return one.node && one.node->core()->down(); });
}

std::size_t ClusterMap::waiting() const {
  const Lock lock(mutex_);
  std::size_t all = 0;
  for (const auto& one : primaries_) all += one.node ? one.node->core()->waiting() : 0;
  return all;
}

std::vector<Address> ClusterMap::nodes() const {
  const Lock lock(mutex_);
  std::vector<Address> all;
  for (const auto& one : primaries_) all.push_back(one.address);
  all.insert(all.end(), replicas_.begin(), replicas_.end());
  return all.empty() ? options_.seeds : all;
}

}  // namespace weir::redis

// A stampede: a hot key expires, and everybody loads it at once. First on one node, then on three that share a
// remote cache, with each of the ways in which they can agree on who loads.
#include <array>
#include <boost/asio/detached.hpp>
#include <deque>
#include <memory>
#include <string>

#include "site/lab/accidents.h"
#include "site/lab/caches.h"
#include "site/lab/loop.h"
#include "site/lab/tired_store.h"
#include "weir/cache/memory_remote.h"
#include "weir/cache/pause.h"

namespace weir::site {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;

constexpr Id kHot = 1;
constexpr std::uint64_t kReaders = 100;
constexpr std::size_t kNodes = 3;
constexpr auto kLoadTakes = 50ms;
constexpr auto kWireTakes = 1ms;  // to the remote cache and back
constexpr auto kTryAgain = 10ms;  // of who doesn't get the lock
constexpr auto kSoon = 10min;     // by when all must have been answered

struct Seen {
  std::uint64_t answered = 0, loads = 0, at_once = 0, round_trips = 0;
};

// What all sides stand on. Nobody has the key: it has expired everywhere.
struct World {
  World() { level->set_trouble({.latency = kWireTakes}); }
  cache::SimulatedTime time;
  boost::asio::io_context io;
  TiredStore store{time, kLoadTakes, kReaders};
  std::shared_ptr<cache::MemoryRemote> level =
      std::make_shared<cache::MemoryRemote>(cache::MemoryRemoteOptions{
          .name = "lab_level", .lease_ttl = kGiveUp, .clock = &time, .pause = time.pause()});
};

template <class Cache>
awaitable<void> read(Cache& cache, std::uint64_t& answered) {
  if (co_await cache.get(kHot)) ++answered;
}

// The readers come in turn to the nodes, all at the same moment.
template <class Cache>
Seen crowd(World& world, std::deque<Cache>& nodes) {
  Seen seen;
  for (std::uint64_t reader = 0; reader < kReaders; ++reader)
    boost::asio::co_spawn(world.io, read(nodes[reader % nodes.size()], seen.answered), boost::asio::detached);
  pass(world.io, world.time, kSoon);
  seen.loads = world.store.loads();
  seen.at_once = world.store.most_at_once();
  seen.round_trips = world.level->calls();
  return seen;
}

// --- As it is often written --------------------------------------------------------------------------------

// Look, load, set: in the node's own cache, and in the one that nodes share if there are several.
class PlainNode {
 public:
  PlainNode(World& world, bool shares) : world_(world), shares_(shares), local_({.clock = &world.time}) {}

  awaitable<std::optional<std::string>> get(Id key) {
    if (const auto hit = local_.find(key)) co_return *hit;
    const std::string name = std::to_string(key);
    if (shares_)
      if (const auto hit = co_await world_.level->get(name)) co_return keep(key, *hit->value);
    const auto row = co_await world_.store.load(key);
    if (shares_) co_await world_.level->fill(name, co_await world_.level->take_over(name), *row);
    co_return keep(key, *row);
  }

 protected:
  std::string keep(Id key, const std::string& row) {
    local_.put(key, std::make_shared<const std::string>(row));
    return row;
  }

  World& world_;

 private:
  const bool shares_;
  cache::LocalCache<Id, std::string> local_;
};

// A lock in the shared cache around each load: take it or try again later, look once more, load, set, give it back.
class LockingNode : private PlainNode {
 public:
  explicit LockingNode(World& world) : PlainNode(world, true) {}

  awaitable<std::optional<std::string>> get(Id key) {
    const std::string name = std::to_string(key), lock = "lock:" + name;
    if (const auto hit = co_await world_.level->get(name)) co_return keep(key, *hit->value);
    std::optional<cache::RemoteLevel::Lease> held;
    while (!(held = co_await world_.level->lease(lock))) co_await world_.time.pause()(kTryAgain);
    auto row = co_await PlainNode::get(key);
    co_await world_.level->release(lock, *held);
    co_return row;
  }
};

// --- The library's own -------------------------------------------------------------------------------------

enum class Agree { within_the_node, by_lease };

std::deque<GuardedCache> guarded_nodes(World& world, std::size_t count, Agree agree) {
  std::deque<GuardedCache> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    cache::ReadThroughOptions<Id, std::string> options{
        .name = "lab", .load_timeout = kGiveUp, .clock = &world.time, .pause = world.time.pause()};
    if (count > 1)
      options.remote = {
          .level = world.level, .codec = cache::text_codec<Id>(), .lease = agree == Agree::by_lease};
    nodes.emplace_back(
        std::move(options), [&world](Id key) { return world.store.load(key); }, world.io.get_executor());
  }
  return nodes;
}

Seen guarded(std::size_t count, Agree agree) {
  World world;
  auto nodes = guarded_nodes(world, count, agree);
  return crowd(world, nodes);
}

Seen plain(std::size_t count) {
  World world;
  std::deque<PlainNode> nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.emplace_back(world, count > 1);
  return crowd(world, nodes);
}

Seen locking() {
  World world;
  std::deque<LockingNode> nodes;
  for (std::size_t i = 0; i < kNodes; ++i) nodes.emplace_back(world);
  return crowd(world, nodes);
}

Outcome run() {
  const Seen bad = plain(1), good = guarded(1, Agree::within_the_node);
  const Seen bad3 = plain(kNodes), flight = guarded(kNodes, Agree::within_the_node), lock = locking(),
             lease = guarded(kNodes, Agree::by_lease);
  bool all_answered = true;
  for (const Seen* seen : {&good, &flight, &lock, &lease}) all_answered &= seen->answered == kReaders;
  Outcome outcome{.held = all_answered && bad.loads == kReaders && good.loads == 1 &&
                          flight.loads == kNodes && lock.loads == 1 && lease.loads == 1 &&
                          lease.round_trips < lock.round_trips / 10,
                  .figures = {{"readers", "readers at the same moment", kReaders, kReaders},
                              {"answered", "readers who got the value", bad.answered, good.answered},
                              {"loads", "loads that the store saw", bad.loads, good.loads},
                              {"loads_at_once", "of them at the same time", bad.at_once, good.at_once}}};
  const auto add = [&](const std::string& key, const std::string& label, const Seen& side) {
    outcome.figures.push_back({key + "_loads", "3 nodes, " + label + ": loads", bad3.loads, side.loads});
    outcome.figures.push_back({key + "_round_trips",
                               "3 nodes, " + label + ": round trips to the shared cache", bad3.round_trips,
                               side.round_trips});
  };
  add("single_flight", "single flight alone", flight);
  add("lock", "a lock for each read", lock);
  add("lease", "the lease", lease);
  return outcome;
}

}  // namespace

Accident stampede() {
  return {
      .name = "stampede",
      .title = "a hot key expires and everybody loads it",
      .before =
          "A hot key has just expired; 100 readers ask for it at once, and a load takes the store 50 ms. "
          "Then "
          "the same on three nodes, which share a remote cache 1 ms away (the time is simulated).",
      .without = "plain cache-aside: look, load, set",
      .with = "ReadThrough: one flight in a node; between nodes nothing, a lock, or the lease",
      .after =
          "Every reader found the cache empty, so each went to the store; with single flight only the "
          "first of a node did, and all got its value. On three nodes that is three loads. A distributed "
          "lock "
          "around each read makes it one, and pays with round trips: who waits asks again and again, and "
          "then "
          "everybody takes the lock to find that the value is there. The lease is taken by whoever leads a "
          "node's flight, in the same round trip as the look: one load, and few questions.",
      .header = "weir/cache/single_flight.h and weir/cache/remote_level.h",
      .run = run};
}

}  // namespace weir::site

// ReadThrough: the guarded read. A cache in front of a store which the store survives.
//
//     local cache -> membership filter -> single flight [ remote level -> its lease -> load -> fill remote ]
//                 -> fill local
//
// Promises:
//  - Three outcomes that never share a type: a value, "certainly absent" (a Found without value), and failure
//    (an exception). A failure is never cached, least of all as an absence.
//  - At most one load of a key at a time, however many ask; with a remote level, one among all nodes. It belongs
//    to nobody's request: who cancels, cancels only its own wait, and everyone else gets the value or the same
//    error, within `load_timeout`.
//  - A fill can't overwrite a newer write, at either level: a load takes a lease, a write cancels it, a cancelled
//    lease's fill is refused. Those who joined before the write still get the load's value; later readers start a
//    new load.
//  - TTLs are jittered; an absence has a short TTL of its own. Past the soft TTL (or shortly before the end, see
//    `early_refresh`) the first reader starts a refresh in the background, everyone is served at once.
//  - A remote level that fails, hangs or answers nonsense fails no read by itself: see OnRemoteError.
//
// What a write on one node means for a reader: on that node, who comes after `Write::invalidate` has ended never
// gets anything older. On another one, nothing older comes in from the remote level or by a load under its lease,
// as long as the level answers. What that node had cached stays for its local TTL, and so does what it loaded
// without the level's lease meanwhile (the level was away, or the patience with another's load had ended), unless
// it is told: by a feed (ReadThroughOptions::feed), or by `invalidate` there.
//
// All of it is thread-safe. `find` is synchronous, allocates nothing and costs about as much as the local
// cache alone.
//
//     ReadThrough<Id, Article> articles({.name = "article", .ttl = 10min, .weigher = bytes_of},
//                                       load_article, executor);
//     if (auto hit = articles.find(id)) return answer(*hit);     // the hot path: no coroutine
//     auto found = co_await articles.get(id);                    // throws when the store fails
//
// A write, in an order that no other write can break:
//     auto write = co_await articles.begin_write(id);            // before the store is touched
//     co_await store.write(article);
//     co_await write.invalidate();                               // both levels; cancels all other leases
//     co_await write.publish(value);                             // publish ahead; refused if another write
//                                                                // came between
// Without a remote level the same without awaiting: lease, the store's write, invalidate(id, lease), fill.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weir/cache/explanation.h"
#include "weir/cache/key_hash.h"
#include "weir/cache/lease_table.h"
#include "weir/cache/read_through_bulk.h"
#include "weir/cache/read_through_core.h"
#include "weir/cache/read_through_explain.h"
#include "weir/cache/read_through_options.h"
#include "weir/cache/read_through_write.h"

namespace weir::cache {

template <class K, class V, class Hash = KeyHash<K>>
class ReadThrough {
  using Core = detail::ReadThroughCore<K, V, Hash>;
  using Flights = typename Core::Flights;

 public:
  using Millis = std::chrono::milliseconds;
  using Value = std::shared_ptr<const V>;
  using Found = cache::Found<V>;
  using Lease = typename LeaseTable<K, Hash>::Lease;
  // Reads the key from the store: nothing when it is absent; throws when that can't be told.
  using Load = std::function<boost::asio::awaitable<std::optional<V>>(K)>;
  using Options = ReadThroughOptions<K, V>;
  using BulkLoad = typename Options::BulkLoad;
  using Write = CacheWrite<K, V, Hash>;

  // Loads run detached on `loads`, whose context must end before what `load` refers to. Throws
  // std::invalid_argument for a remote level without a codec, or whose lease is shorter than load_timeout, and for a
  // feed without what writes and reads its keys.
  ReadThrough(Options options, Load load, boost::asio::any_io_executor loads)
      : core_(std::make_shared<Core>(std::move(options), std::move(load), std::move(loads))) {}
  ~ReadThrough() { stop(); }
  ReadThrough(const ReadThrough&) = delete;
  ReadThrough& operator=(const ReadThrough&) = delete;

  // The local answer: nothing when it isn't known here. (A miss is counted by `get`, which follows.)
  std::optional<Found> find(const K& key) { return core_->find(key); }

  // The whole pipeline. `ttl`: of the entry, if this call starts its load (a preload for one minute, say); from when
  // the value was loaded, though another node has done that.
  // Throws what the load throws, TimedOut, Unavailable; boost::system::system_error(operation_aborted) when
  // the waiter is cancelled. Here and below: what a call returns needs neither the cache nor the arguments any more; begun
  // when the cache has gone, it is as after `stop`.
  boost::asio::awaitable<Found> get(K key, std::optional<Millis> ttl = {}) {
    return get_from(core_, std::move(key), ttl);
  }

  // The answers in the keys' order. All that miss are loaded by one call of the bulk loader (per max_bulk);
  // without one, side by side. The membership filter isn't asked: one statement answers for all; so where there is
  // a filter, the absences that are found aren't kept, as it can't vouch for them. Throws if a load fails.
  boost::asio::awaitable<std::vector<Found>> get_all(std::span<const K> keys,
                                                     std::optional<Millis> ttl = {}) {
    return get_all_from(core_, std::vector<K>(keys.begin(), keys.end()), ttl);
  }

  // A write at both levels, to be begun before the store is touched; see read_through_write.h. It fails for
  // nothing that the remote level does.
  boost::asio::awaitable<Write> begin_write(K key) { return Write::begin(core_, std::move(key)); }
  // After the store's commit, for who doesn't publish ahead: one round trip, and no begin_write before. True when
  // both levels have dropped them, as Write::invalidate.
  boost::asio::awaitable<bool> invalidate_all(std::vector<K> keys) {
    return detail::invalidate_both(core_, std::move(keys));
  }

  // What the next read of the key would do, and why. It changes nothing: no counter of the cache, no lease, not
  // what stays. It asks the membership filter and the remote level, as a read would; what they throw is told.
  boost::asio::awaitable<Explanation> explain(K key) { return detail::explain(core_, std::move(key)); }

  // From here on this node alone: what a cache without a remote level needs, and what a node does when it is told
  // of another's write.

  // After the store's commit: forgets the key (an absence too), cancels its leases, and lets later readers
  // start a new load.
  void invalidate(const K& key) { core_->invalidate(key); }
  // The same but for the caller's own lease, which stays good if it still was.
  void invalidate(const K& key, Lease& own) { core_->invalidate(key, own); }
  // All keys. O(entries).
  void clear() { core_->forget_all(); }

  // A permission to fill that any invalidation or update of the key ends.
  Lease lease(const K& key) { return core_->leases.take(key); }

  // Caches the value under the lease; a null value is an absence. False when the lease was cancelled, or the
  // value is too heavy.
  bool fill(const K& key, Lease lease, Value value, std::optional<Millis> ttl = {}) {
    return core_->fill(key, lease, std::move(value), {.ttl = ttl});
  }
  // The same, refused when a cached value is there and newer(cached, offered) isn't true. `newer` runs under
  // a lock.
  template <class Newer>
  bool fill_if_newer(const K& key, Lease lease, Value value, Newer newer, std::optional<Millis> ttl = {});

  // Writes through: atomically replaces a cached value by change(const V& current) -> Value, null to keep it;
  // its TTL goes on. Forgets an absence. In any case loads under way can't fill any more: what they read may
  // be older. False when nothing was replaced. `change` runs under a lock.
  template <class Change>
  bool update(const K& key, Change change);

  // Ends every wait with Unavailable and refuses new loads; cached values are still served. To be called
  // before the waiters' executors go.
  void stop() {
    core_->flights.stop();
    core_->bulkhead.stop();
    if (core_->feed) core_->feed->end();
  }

  std::size_t size() const { return core_->local.size(); }      // entries
  std::size_t weight() const { return core_->local.weight(); }  // bytes

 private:
  static boost::asio::awaitable<Found> get_from(std::shared_ptr<Core> core, K key, std::optional<Millis> ttl);
  static boost::asio::awaitable<std::vector<Found>> get_all_from(std::shared_ptr<Core> core,
                                                                 std::vector<K> keys,
                                                                 std::optional<Millis> ttl);

  std::shared_ptr<Core> core_;
};

template <class K, class V, class Hash>
auto ReadThrough<K, V, Hash>::get_from(std::shared_ptr<Core> core, K key, std::optional<Millis> ttl)
    -> boost::asio::awaitable<Found> {
  if (auto found = core->find(key)) co_return std::move(*found);
  core->metrics.local_miss.add();
  typename Core::Plan plan{.ttl = ttl};
  if (core->options.membership) {
    const Membership answer = co_await Core::ask(core, key);
    if (answer == Membership::absent) {
      core->metrics.filtered.add();
      co_return Found{};
    }
    plan.keep_absence = answer == Membership::unknown;
  }
  const auto ticket = core->flights.enter(key);
  if (ticket.leader) {
    core->launch_missed({ticket.flight, plan});
  } else {
    core->metrics.coalesced.add();
  }
  co_return Found{co_await core->flights.wait(ticket.flight)};
}

template <class K, class V, class Hash>
auto ReadThrough<K, V, Hash>::get_all_from(std::shared_ptr<Core> core, std::vector<K> keys,
                                           std::optional<Millis> ttl)
    -> boost::asio::awaitable<std::vector<Found>> {
  std::vector<Found> answers(keys.size());
  struct Wait {
    std::size_t at;
    typename Flights::FlightPtr flight;
  };
  std::vector<Wait> waits;
  std::vector<typename Core::Item> fresh;
  std::exception_ptr refused;
  try {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (auto found = core->find(keys[i])) {
        answers[i] = std::move(*found);
        continue;
      }
      core->metrics.local_miss.add();
      // So that no flight is lost because it can't be noted down.
      if (waits.capacity() == 0) waits.reserve(keys.size() - i);
      if (fresh.capacity() == 0) fresh.reserve(keys.size() - i);
      auto ticket = core->flights.enter(keys[i]);
      waits.push_back({i, ticket.flight});
      if (!ticket.leader) {
        core->metrics.coalesced.add();
        continue;
      }
      fresh.push_back({std::move(ticket.flight), {.ttl = ttl, .keep_absence = !core->options.membership}});
    }
  } catch (...) {
    refused = std::current_exception();
  }
  // Also when a key was refused: others may have joined the flights that are open already.
  core->launch_many(fresh);
  if (refused) std::rethrow_exception(refused);
  for (auto& wait : waits) answers[wait.at] = Found{co_await core->flights.wait(wait.flight)};
  co_return answers;
}

template <class K, class V, class Hash>
template <class Newer>
bool ReadThrough<K, V, Hash>::fill_if_newer(const K& key, Lease lease, Value value, Newer newer,
                                            std::optional<Millis> ttl) {
  const bool filled = core_->leases.use(key, lease, [&] {
    const auto cached = core_->local.peek(key);
    if (cached.value && value && !newer(*cached.value, *value)) return false;
    return core_->put(key, std::move(value), {.ttl = ttl});
  });
  if (!filled) core_->metrics.refused_fills.add();
  return filled;
}

template <class K, class V, class Hash>
template <class Change>
bool ReadThrough<K, V, Hash>::update(const K& key, Change change) {
  Core& core = *core_;
  bool replaced = false;
  core.leases.cancel(key, [&] {
    replaced =
        core.local.update(key, std::move(change), [&](const V& value) { return core.weigh(key, value); });
    if (replaced) return;
    if (const auto hit = core.local.peek(key); hit.known && !hit.value) core.local.erase(key);
  });
  core.flights.forget(key);
  return replaced;
}

}  // namespace weir::cache

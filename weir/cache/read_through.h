// ReadThrough: the guarded read. A cache in front of a store which the store survives.
//
//     local cache -> membership filter -> single flight [ load ] -> fill local
//
// Promises:
//  - Three outcomes that never share a type: a value, "certainly absent" (a Found without value), and failure
//  (an
//    exception). A failure is never cached, least of all as an absence.
//  - At most one load of a key at a time, however many ask; it belongs to nobody's request: who cancels,
//  cancels
//    only its own wait, and everyone else gets the value or the same error, within `load_timeout`.
//  - A fill can't overwrite a newer write: a load takes a lease, `invalidate` cancels it, a cancelled lease's
//  fill is
//    refused. Those who joined before the invalidation still get the load's value; later readers start a new
//    load.
//  - TTLs are jittered; an absence has a short TTL of its own. Past the soft TTL the first reader starts a
//  refresh in the background, everyone is
//    served at once.
//
// All of it is thread-safe. `find` is synchronous, allocates nothing and costs about as much as the local
// cache alone.
//
//     ReadThrough<Id, Article> articles({.name = "article", .ttl = 10min, .weigher = bytes_of}, load_article,
//     executor); if (auto hit = articles.find(id)) return answer(*hit);         // the hot path: no coroutine
//     auto found = co_await articles.get(id);                        // throws when the store fails
//
// A write, in an order that no other write can break (the lease is taken before the store is touched):
//     auto lease = articles.lease(id);
//     co_await store.write(article);
//     articles.invalidate(id, lease);                                // drops the entry, cancels all other
//     leases articles.fill(id, std::move(lease), article, ttl);             // publish ahead; refused if
//     another write came between
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/cache/key_hash.h"
#include "weir/cache/lease_table.h"
#include "weir/cache/membership.h"

namespace weir::cache {

// A value, or nothing: then there certainly is none.
template <class V>
struct Found {
  std::shared_ptr<const V> value;
  explicit operator bool() const { return value != nullptr; }
  const V& operator*() const { return *value; }
  const V* operator->() const { return value.get(); }
};

template <class K, class V, class Hash = KeyHash<K>>
class ReadThrough {
 public:
  using Millis = std::chrono::milliseconds;
  using Value = std::shared_ptr<const V>;
  using Found = cache::Found<V>;
  using Lease = typename LeaseTable<K, Hash>::Lease;
  // Reads the key from the store: nothing when it is absent; throws when that can't be told.
  using Load = std::function<boost::asio::awaitable<std::optional<V>>(K)>;
  // Reads many keys at once; those that it leaves out are absent.
  using BulkLoad = std::function<boost::asio::awaitable<std::vector<std::pair<K, V>>>(std::vector<K>)>;

  struct Options {
    std::string name;                              // the label `cache` of the metrics
    std::size_t capacity = std::size_t{16} << 20;  // bytes of the local cache
    Millis ttl{std::chrono::minutes(10)};
    double jitter = 0.1;                                  // part of the TTL, both ways; 0: none
    Millis negative_ttl{std::chrono::seconds(5)};         // of an absence; at least a millisecond
    Millis soft_ttl{0};                                   // when to refresh in the background; 0: never
    Millis load_timeout{std::chrono::seconds(5)};         // the longest that anybody waits for a load
    std::size_t max_entry_weight = std::size_t{1} << 20;  // heavier values are served, not cached
    std::size_t max_bulk = 500;                           // keys in one call of the bulk loader
    std::function<std::size_t(const K&, const V&)>
        weigher{};  // bytes of a value, sizeof(V) included; without: sizeof(V)
    std::function<boost::asio::awaitable<Membership>(const K&)>
        membership{};  // asked before a load; see membership.h
    BulkLoad bulk_load{};
    const Clock* clock = &Clock::system();
  };

  // Loads run detached on `loads`, whose context must end before what `load` refers to.
  ReadThrough(Options options, Load load, boost::asio::any_io_executor loads);
  ~ReadThrough();
  ReadThrough(const ReadThrough&) = delete;
  ReadThrough& operator=(const ReadThrough&) = delete;

  // The local answer: nothing when it isn't known here. (A miss is counted by `get`, which follows.)
  std::optional<Found> find(const K& key);
  // The whole pipeline. `ttl`: of the entry if this call starts its load (a preload for one minute, say).
  // Throws what the load throws, TimedOut, Unavailable; boost::system::system_error(operation_aborted) when
  // the waiter is cancelled.
  boost::asio::awaitable<Found> get(K key, std::optional<Millis> ttl = {});
  // The answers in the keys' order. All that miss are loaded by one call of the bulk loader (per max_bulk);
  // without one, side by side. The membership filter isn't asked: one statement answers for all. Throws if
  // any load fails.
  boost::asio::awaitable<std::vector<Found>> get_all(std::span<const K> keys, std::optional<Millis> ttl = {});

  // After the store's commit: forgets the key (an absence too), cancels its leases, and lets later readers
  // start a new load.
  void invalidate(const K& key);
  // The same but for the caller's own lease, which stays good if it still was.
  void invalidate(const K& key, Lease& own);
  // All keys.
  void clear();

  // A permission to fill that any invalidation or update of the key ends.
  Lease lease(const K& key);
  // Caches the value under the lease; a null value is an absence. False when the lease was cancelled, or the
  // value is too heavy.
  bool fill(const K& key, Lease lease, Value value, std::optional<Millis> ttl = {});
  // The same, refused when a cached value is there and newer(cached, offered) isn't true. `newer` runs under
  // a lock.
  bool fill_if_newer(const K& key, Lease lease, Value value,
                     const std::function<bool(const V&, const V&)>& newer, std::optional<Millis> ttl = {});
  // Writes through: atomically replaces a cached value by change(current), null to keep it; its TTL goes on.
  // In any case loads under way can't fill any more: what they read may be older. False when nothing was
  // replaced. `change` runs under a lock.
  bool update(const K& key, const std::function<Value(const V&)>& change);

  // Ends every wait with Unavailable and refuses new loads; cached values are still served. Before the
  // waiters' executors go.
  void stop();

  std::size_t size() const;    // entries
  std::size_t weight() const;  // bytes
};

}  // namespace weir::cache

// ReadThrough: the guarded read. A cache in front of a store which the store survives.
//
//     local cache -> membership filter -> single flight [ load ] -> fill local
//
// Promises:
//  - Three outcomes that never share a type: a value, "certainly absent" (a Found without value), and failure
//    (an exception). A failure is never cached, least of all as an absence.
//  - At most one load of a key at a time, however many ask; it belongs to nobody's request: who cancels,
//    cancels only its own wait, and everyone else gets the value or the same error, within `load_timeout`.
//  - A fill can't overwrite a newer write: a load takes a lease, `invalidate` cancels it, a cancelled lease's
//    fill is refused. Those who joined before the invalidation still get the load's value; later readers
//    start a new load.
//  - TTLs are jittered; an absence has a short TTL of its own. Past the soft TTL the first reader starts a
//    refresh in the background, everyone is served at once.
//
// All of it is thread-safe. `find` is synchronous, allocates nothing and costs about as much as the local
// cache alone.
//
//     ReadThrough<Id, Article> articles({.name = "article", .ttl = 10min, .weigher = bytes_of},
//                                       load_article, executor);
//     if (auto hit = articles.find(id)) return answer(*hit);     // the hot path: no coroutine
//     auto found = co_await articles.get(id);                    // throws when the store fails
//
// A write, in an order that no other write can break (the lease is taken before the store is touched):
//     auto lease = articles.lease(id);
//     co_await store.write(article);
//     articles.invalidate(id, lease);                            // drops the entry, cancels all other leases
//     articles.fill(id, std::move(lease), article, ttl);         // publish ahead; refused if another write
//                                                                // came between
#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/cache/cache_metrics.h"
#include "weir/cache/key_hash.h"
#include "weir/cache/lease_table.h"
#include "weir/cache/local_cache.h"
#include "weir/cache/membership.h"
#include "weir/cache/single_flight.h"
#include "weir/cache/ttl.h"
#include "weir/telemetry/metrics.h"

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
    std::size_t max_loads = 100'000;                      // at once; more are refused with Unavailable
    // Bytes of a value, sizeof(V) included; without it, sizeof(V).
    std::function<std::size_t(const K&, const V&)> weigher{};
    // Asked before a load; see membership.h.
    std::function<boost::asio::awaitable<Membership>(const K&)> membership{};
    BulkLoad bulk_load{};
    const Clock* clock = &Clock::system();
  };

  // Loads run detached on `loads`, whose context must end before what `load` refers to.
  ReadThrough(Options options, Load load, boost::asio::any_io_executor loads)
      : core_(std::make_shared<Core>(std::move(options), std::move(load), std::move(loads))) {}
  ~ReadThrough() { stop(); }
  ReadThrough(const ReadThrough&) = delete;
  ReadThrough& operator=(const ReadThrough&) = delete;

  // The local answer: nothing when it isn't known here. (A miss is counted by `get`, which follows.)
  std::optional<Found> find(const K& key) { return core_->find(key); }

  // The whole pipeline. `ttl`: of the entry, if this call starts its load (a preload for one minute, say).
  // Throws what the load throws, TimedOut, Unavailable; boost::system::system_error(operation_aborted) when
  // the waiter is cancelled.
  boost::asio::awaitable<Found> get(K key, std::optional<Millis> ttl = {});

  // The answers in the keys' order. All that miss are loaded by one call of the bulk loader (per max_bulk);
  // without one, side by side. The membership filter isn't asked: one statement answers for all. Throws if a
  // load fails.
  boost::asio::awaitable<std::vector<Found>> get_all(std::span<const K> keys, std::optional<Millis> ttl = {});

  // After the store's commit: forgets the key (an absence too), cancels its leases, and lets later readers
  // start a new load.
  void invalidate(const K& key) {
    core_->leases.cancel(key, [&] { core_->local.erase(key); });
    core_->flights.forget(key);
  }
  // The same but for the caller's own lease, which stays good if it still was.
  void invalidate(const K& key, Lease& own) {
    core_->leases.cancel_others(key, own, [&] { core_->local.erase(key); });
    core_->flights.forget(key);
  }
  // All keys. O(entries).
  void clear() {
    core_->leases.cancel_all([&] { core_->local.clear(); });
    core_->flights.forget_all();
  }

  // A permission to fill that any invalidation or update of the key ends.
  Lease lease(const K& key) { return core_->leases.take(key); }

  // Caches the value under the lease; a null value is an absence. False when the lease was cancelled, or the
  // value is too heavy.
  bool fill(const K& key, Lease lease, Value value, std::optional<Millis> ttl = {}) {
    return core_->fill(key, lease, std::move(value), ttl);
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
  void stop() { core_->flights.stop(); }

  std::size_t size() const { return core_->local.size(); }      // entries
  std::size_t weight() const { return core_->local.weight(); }  // bytes

 private:
  using Flights = SingleFlight<K, Value, Hash>;
  // How a load's result is kept.
  struct Plan {
    std::optional<Millis> ttl{};
    bool keep_absence = true;
    bool refresh = false;  // load although it is cached
  };
  struct Core;
  std::shared_ptr<Core> core_;
};

// What loads share with the cache; they may outlive it.
template <class K, class V, class Hash>
struct ReadThrough<K, V, Hash>::Core : std::enable_shared_from_this<Core> {
  Core(Options given, Load loader, boost::asio::any_io_executor loads)
      : options(std::move(given)),
        load(std::move(loader)),
        metrics(options.name),
        publisher(metrics),
        local({.capacity = options.capacity, .clock = options.clock}),
        leases(secure_random64()),
        flights(std::move(loads),
                {.limit = options.load_timeout,
                 .max_flights = options.max_loads,
                 // The counters outlive everything: they are the process's.
                 .on_timeout =
                     [timeouts = metrics.load_timeout, errors = metrics.store_error]() mutable {
                       timeouts.add();
                       errors.add();
                     }}),
        hook(telemetry::on_scrape([this] { publish(); })) {}
  ~Core() { publish(); }

  std::optional<Found> find(const K& key) {
    auto hit = local.look(key, options.load_timeout);
    if (!hit.known) return std::nullopt;
    if (hit.refresh) refresh(key);
    return Found{std::move(hit.value)};
  }

  void publish() { publisher.publish(local.stats(), local.size(), local.weight()); }

  // Never fails the reader who happened to be the first to come late.
  void refresh(const K& key) {
    try {
      const auto ticket = flights.enter(key);
      if (ticket.leader) launch(ticket.flight, {.refresh = true});
    } catch (const std::exception& error) {
      telemetry::swallowed("refresh of " + options.name, error);
    }
  }

  void launch(const typename Flights::FlightPtr& flight, Plan plan);
  void launch_bulk(std::vector<typename Flights::FlightPtr> fresh, std::vector<K> keys, Plan plan);
  static boost::asio::awaitable<std::vector<Value>> load_one(std::shared_ptr<Core> self, K key, Plan plan);
  static boost::asio::awaitable<std::vector<Value>> load_bulk(std::shared_ptr<Core> self, std::vector<K> keys,
                                                              Plan plan);
  boost::asio::awaitable<Membership> ask(const K& key);

  std::size_t weigh(const K& key, const V& value) const {
    return options.weigher ? options.weigher(key, value) : sizeof(V);
  }

  // Under the key's lease.
  bool put(const K& key, Value value, std::optional<Millis> ttl) {
    auto& random = thread_random();
    if (!value) return local.put(key, nullptr, 0, jittered(options.negative_ttl, options.jitter, random));
    const std::size_t weight = weigh(key, *value);
    if (weight > options.max_entry_weight) {
      local.erase(key);
      return false;
    }
    const Duration soft =
        options.soft_ttl > Millis::zero() ? jittered(options.soft_ttl, options.jitter, random) : kNever;
    return local.put(key, std::move(value), weight,
                     jittered(ttl.value_or(options.ttl), options.jitter, random), soft);
  }

  bool fill(const K& key, const Lease& lease, Value value, std::optional<Millis> ttl) {
    const bool filled = leases.use(key, lease, [&] { return put(key, std::move(value), ttl); });
    if (!filled) metrics.refused_fills.add();
    return filled;
  }

  void count(const Value& value) {
    (value ? metrics.store_hit : metrics.store_miss).add();
    (value ? metrics.load_ok : metrics.load_absent).add();
  }
  void count_error(const std::exception_ptr& error, Plan plan) {
    metrics.store_error.add();
    metrics.load_error.add();
    if (!plan.refresh) return;
    try {
      std::rethrow_exception(error);  // a refresh has nobody who waits to tell
    } catch (const std::exception& e) {
      telemetry::swallowed("refresh of " + options.name, e);
    } catch (...) {
      telemetry::swallowed("refresh of " + options.name, std::runtime_error("not an exception"));
    }
  }

  const Options options;
  const Load load;
  CacheMetrics metrics;
  StatsPublisher publisher;
  LocalCache<K, V, Hash> local;
  LeaseTable<K, Hash> leases;
  Flights flights;
  telemetry::ScrapeHook hook;  // the last to come and the first to go: it refers to the others
};

template <class K, class V, class Hash>
boost::asio::awaitable<Membership> ReadThrough<K, V, Hash>::Core::ask(const K& key) {
  try {
    co_return co_await options.membership(key);
  } catch (...) {
    metrics.filter_error.add();
    throw;  // nobody knows: a failure, not an answer
  }
}

template <class K, class V, class Hash>
auto ReadThrough<K, V, Hash>::get(K key, std::optional<Millis> ttl) -> boost::asio::awaitable<Found> {
  const auto core = core_;
  if (auto found = core->find(key)) co_return std::move(*found);
  core->metrics.local_miss.add();
  Plan plan{.ttl = ttl};
  if (core->options.membership) {
    const Membership answer = co_await core->ask(key);
    if (answer == Membership::absent) {
      core->metrics.filtered.add();
      co_return Found{};
    }
    plan.keep_absence = answer == Membership::unknown;
  }
  const auto ticket = core->flights.enter(key);
  // A remote cache and the cluster's lease belong into the flight, before its load.
  if (ticket.leader) {
    core->launch(ticket.flight, plan);
  } else {
    core->metrics.coalesced.add();
  }
  co_return Found{co_await Flights::wait(ticket.flight)};
}

template <class K, class V, class Hash>
auto ReadThrough<K, V, Hash>::get_all(std::span<const K> keys, std::optional<Millis> ttl)
    -> boost::asio::awaitable<std::vector<Found>> {
  const auto core = core_;
  std::vector<Found> answers(keys.size());
  struct Wait {
    std::size_t at;
    typename Flights::FlightPtr flight;
  };
  std::vector<Wait> waits;
  std::vector<typename Flights::FlightPtr> fresh;
  std::vector<K> to_load;
  std::exception_ptr refused;
  try {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (auto found = core->find(keys[i])) {
        answers[i] = std::move(*found);
        continue;
      }
      core->metrics.local_miss.add();
      auto ticket = core->flights.enter(keys[i]);
      waits.push_back({i, ticket.flight});
      if (!ticket.leader) {
        core->metrics.coalesced.add();
        continue;
      }
      to_load.push_back(keys[i]);
      fresh.push_back(std::move(ticket.flight));
    }
  } catch (...) {
    refused = std::current_exception();
  }
  // Also when a key was refused: others may have joined the flights that are open already.
  core->launch_bulk(std::move(fresh), std::move(to_load), {.ttl = ttl});
  if (refused) std::rethrow_exception(refused);
  for (auto& wait : waits) answers[wait.at] = Found{co_await Flights::wait(wait.flight)};
  co_return answers;
}

template <class K, class V, class Hash>
template <class Newer>
bool ReadThrough<K, V, Hash>::fill_if_newer(const K& key, Lease lease, Value value, Newer newer,
                                            std::optional<Millis> ttl) {
  const bool filled = core_->leases.use(key, lease, [&] {
    const auto cached = core_->local.peek(key);
    if (cached.value && value && !newer(*cached.value, *value)) return false;
    return core_->put(key, std::move(value), ttl);
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

template <class K, class V, class Hash>
void ReadThrough<K, V, Hash>::Core::launch(const typename Flights::FlightPtr& flight, Plan plan) {
  flights.launch({flight}, [self = this->shared_from_this(), key = Flights::key_of(flight), plan] {
    return load_one(self, key, plan);
  });
}

template <class K, class V, class Hash>
void ReadThrough<K, V, Hash>::Core::launch_bulk(std::vector<typename Flights::FlightPtr> fresh,
                                                std::vector<K> keys, Plan plan) {
  if (!options.bulk_load) {
    for (const auto& flight : fresh) launch(flight, plan);
    return;
  }
  const std::size_t most = std::max<std::size_t>(1, options.max_bulk);
  for (std::size_t from = 0; from < keys.size(); from += most) {
    const auto first = static_cast<std::ptrdiff_t>(from);
    const auto last = static_cast<std::ptrdiff_t>(std::min(keys.size(), from + most));
    flights.launch(
        {fresh.begin() + first, fresh.begin() + last},
        [self = this->shared_from_this(), part = std::vector<K>(keys.begin() + first, keys.begin() + last),
         plan] { return load_bulk(self, part, plan); });
  }
}

template <class K, class V, class Hash>
auto ReadThrough<K, V, Hash>::Core::load_one(std::shared_ptr<Core> self, K key, Plan plan)
    -> boost::asio::awaitable<std::vector<Value>> {
  std::vector<Value> answer(1);
  if (!plan.refresh) {
    // The flight before this one may have filled between our caller's look and this flight's start.
    if (auto hit = self->local.peek(key); hit.known) {
      answer[0] = std::move(hit.value);
      co_return answer;
    }
  }
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  const Lease lease = self->leases.take(key);  // before the store is read
  std::exception_ptr error;
  try {
    if (std::optional<V> loaded = co_await self->load(key))
      answer[0] = std::make_shared<const V>(std::move(*loaded));
  } catch (...) {
    error = std::current_exception();
  }
  const bool in_time =
      state.cancelled() == boost::asio::cancellation_type::none;  // else it is counted already
  if (error) {
    if (in_time) self->count_error(error, plan);
    std::rethrow_exception(error);
  }
  if (in_time) self->count(answer[0]);
  if (answer[0] || plan.keep_absence) self->fill(key, lease, answer[0], plan.ttl);
  co_return answer;
}

template <class K, class V, class Hash>
auto ReadThrough<K, V, Hash>::Core::load_bulk(std::shared_ptr<Core> self, std::vector<K> keys, Plan plan)
    -> boost::asio::awaitable<std::vector<Value>> {
  std::vector<Value> answers(keys.size());
  std::vector<std::size_t> missing;  // what no flight before this one has filled
  std::vector<K> to_load;
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (auto hit = self->local.peek(keys[i]); hit.known) {
      answers[i] = std::move(hit.value);
      continue;
    }
    missing.push_back(i);
    to_load.push_back(keys[i]);
    leases.push_back(self->leases.take(keys[i]));
  }
  if (missing.empty()) co_return answers;
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  std::unordered_map<K, Value, SeededHash<K, Hash>> loaded(0, SeededHash<K, Hash>{secure_random64()});
  std::exception_ptr error;
  try {
    auto rows = co_await self->options.bulk_load(std::move(to_load));
    for (auto& [key, value] : rows)
      loaded.emplace(std::move(key), std::make_shared<const V>(std::move(value)));
  } catch (...) {
    error = std::current_exception();
  }
  const bool in_time = state.cancelled() == boost::asio::cancellation_type::none;
  if (error) {
    if (in_time) self->count_error(error, plan);
    std::rethrow_exception(error);
  }
  if (in_time) (loaded.empty() ? self->metrics.load_absent : self->metrics.load_ok).add();
  for (std::size_t m = 0; m < missing.size(); ++m) {
    Value& answer = answers[missing[m]];
    if (const auto at = loaded.find(keys[missing[m]]); at != loaded.end()) answer = at->second;
    if (in_time) (answer ? self->metrics.store_hit : self->metrics.store_miss).add();
    self->fill(keys[missing[m]], leases[m], answer, plan.ttl);
  }
  co_return answers;
}

}  // namespace weir::cache

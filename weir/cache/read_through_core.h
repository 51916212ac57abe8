// The inside of a ReadThrough: what its loads share with it, and how a load goes. Use read_through.h.
#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/cache/bulkhead.h"
#include "weir/cache/cache_metrics.h"
#include "weir/cache/filter_question.h"
#include "weir/cache/key_hash.h"
#include "weir/cache/lease_table.h"
#include "weir/cache/load_batcher.h"
#include "weir/cache/local_cache.h"
#include "weir/cache/read_through_feed.h"
#include "weir/cache/read_through_options.h"
#include "weir/cache/remote_step.h"
#include "weir/cache/single_flight.h"
#include "weir/cache/ttl.h"
#include "weir/telemetry/metrics.h"

namespace weir::cache::detail {

// Loads hold it by a shared_ptr: they may outlive the ReadThrough.
template <class K, class V, class Hash>
struct ReadThroughCore : std::enable_shared_from_this<ReadThroughCore<K, V, Hash>> {
  using Millis = std::chrono::milliseconds;
  using Options = ReadThroughOptions<K, V>;
  using Value = std::shared_ptr<const V>;
  using Found = cache::Found<V>;
  using Lease = typename LeaseTable<K, Hash>::Lease;
  using Load = std::function<boost::asio::awaitable<std::optional<V>>(K)>;
  using Flights = SingleFlight<K, Value, Hash>;
  using FlightPtr = typename Flights::FlightPtr;
  using Remote = RemoteStep<K, V>;
  using Turn = typename Remote::Turn;
  using Self = std::shared_ptr<ReadThroughCore>;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  // How a load's result is kept.
  struct Plan {
    std::optional<Millis> ttl{};
    bool keep_absence = true;
    bool refresh = false;  // load although it is cached
  };
  struct Item {
    FlightPtr flight;
    Plan plan;
  };
  // For how long: `most` at most; `age`: since it was loaded, which took `took`.
  struct Keep {
    std::optional<Millis> ttl{};
    Duration most = kNever;
    Duration age{0};
    Duration took{0};
  };
  // How a load may go on once the remote level was asked.
  struct Course {
    std::optional<Value> known{};                  // no load is needed
    std::optional<RemoteLevel::Lease> to_share{};  // what is loaded is everybody's
    Bulkhead::Place place{};
  };
  // One key of a bulk load.
  struct Row {
    Item item;
    Lease lease;
    std::optional<RemoteLevel::Lease> to_share{};
    Value value{};
    bool keep = true;  // what was read
    const K& key() const { return Flights::key_of(item.flight); }
  };

  ReadThroughCore(Options given, Load loader, boost::asio::any_io_executor where);
  ~ReadThroughCore() { publish(); }

  // The hot path: nothing here but the local look-up.
  std::optional<Found> find(const K& key) {
    auto hit = local.look(key, as_duration(options.load_timeout));
    if (!hit.known) return std::nullopt;
    if (hit.refresh) refresh(key);
    return Found{std::move(hit.value)};
  }

  void publish() {
    publisher.publish(local.stats(), local.size(), local.weight());
    metrics.bulkhead_loads.set(static_cast<double>(bulkhead.inside()));
    metrics.bulkhead_waiting.set(static_cast<double>(bulkhead.waiting()));
    metrics.owed_drops.set(remote ? static_cast<double>(remote->owed()) : 0);
    metrics.remote_away.set(remote && remote->is_away() ? 1 : 0);
  }

  // Never fails the reader who happened to be the first to come late.
  void refresh(const K& key) {
    try {
      const auto ticket = flights.enter(key);
      if (ticket.leader) launch({ticket.flight, {.refresh = true}});
    } catch (...) {
      swallowed("refresh of " + options.name, std::current_exception());
    }
  }

  // Starts the load of a key that was missed: together with others', if there is a bulk loader. What can't be
  // launched (a key's copy throws, memory is short) lands with that error, here and below: others may have joined it.
  void launch_missed(const Item& item) {
    if (!options.bulk_load) return launch(item);
    try {
      batcher.add(item, [self = this->shared_from_this()](std::vector<Item> items, bool abandoned) {
        if (abandoned)
          return self->abandon(items, std::make_exception_ptr(Unavailable("a load was abandoned")));
        if (items.size() == 1) return self->launch(items.front());
        self->launch_many(items);
      });
    } catch (...) {
      flights.land(item.flight, std::current_exception());
    }
  }
  void abandon(const std::vector<Item>& items, const std::exception_ptr& error) {
    for (const Item& item : items) flights.land(item.flight, error);
  }
  void launch(const Item& item) {
    try {
      flights.launch({item.flight}, [self = this->shared_from_this(), key = Flights::key_of(item.flight),
                                     plan = item.plan] { return load_one(self, key, plan); });
    } catch (...) {
      flights.land(item.flight, std::current_exception());
    }
  }
  // By calls of the bulk loader; each on its own where there is none.
  void launch_many(const std::vector<Item>& items) {
    if (!options.bulk_load) {
      for (const Item& item : items) launch(item);
      return;
    }
    const std::size_t most = std::max<std::size_t>(1, options.max_bulk);
    try {
      for (std::size_t from = 0; from < items.size(); from += most) {
        const auto first = items.begin() + static_cast<std::ptrdiff_t>(from);
        launch_bulk({first, first + static_cast<std::ptrdiff_t>(std::min(items.size() - from, most))});
      }
    } catch (...) {
      abandon(items, std::current_exception());
    }
  }
  void launch_bulk(std::vector<Item> items) {
    std::vector<FlightPtr> all;
    all.reserve(items.size());
    for (const Item& item : items) all.push_back(item.flight);
    flights.launch(std::move(all), [self = this->shared_from_this(), items = std::move(items)] {
      return load_bulk(self, items);
    });
  }

  // The local part of a write's end.
  void invalidate(const K& key) {
    leases.cancel(key, [&] { local.erase(key); });
    flights.forget(key);
  }
  void invalidate(const K& key, Lease& own) {
    leases.cancel_others(key, own, [&] { local.erase(key); });
    flights.forget(key);
  }

  void forget_all() {
    leases.cancel_all([&] { local.clear(); });
    flights.forget_all();
  }

  static Awaitable<Membership> ask(Self self, K key);
  static Awaitable<Membership> ask_filter(Self self, K key);

  // The steps of a load; those of many keys are in read_through_bulk.h.
  static Awaitable<std::vector<Value>> load_one(Self self, K key, Plan plan);
  static Awaitable<Course> find_course(Self self, K key, Plan plan, const Lease& lease);
  static Awaitable<Bulkhead::Place> fall_back(Self self);
  std::optional<Course> refresh_makes_way(const K& key, Turn turn);
  static Awaitable<std::vector<Value>> load_bulk(Self self, std::vector<Item> items);
  static Awaitable<Bulkhead::Place> find_courses(Self self, std::vector<Row>& rows,
                                                 std::vector<FlightPtr>& elsewhere);
  static Awaitable<void> load_rows(Self self, std::vector<Row> rows, Bulkhead::Place place);
  static Awaitable<void> load_rows_from_store(Self self, std::vector<Row>& rows, Duration& took);
  static Awaitable<void> share_rows(Self self, std::vector<Row>& rows, Duration took);
  static Awaitable<void> give_back(Self self, std::vector<Row>& rows);

  std::size_t weigh(const K& key, const V& value) const {
    return options.weigher ? options.weigher(key, value) : own_bytes(value);
  }
  // What the reader has asked for; an absence isn't kept longer for that.
  std::optional<Millis> ttl_for(const Plan& plan, const Value& value) const {
    if (value || !plan.ttl) return plan.ttl;
    return std::min(*plan.ttl, options.negative_ttl);
  }
  bool put(const K& key, Value value, const Keep& keep);
  bool fill(const K& key, const Lease& lease, Value value, const Keep& keep) {
    const bool filled = leases.use(key, lease, [&] { return put(key, std::move(value), keep); });
    if (!filled) metrics.refused_fills.add();
    return filled;
  }
  // What the remote level knows goes on here for as long as it has left there, and not past the TTL that it would
  // have had if it had been loaded here: its age counts. Less than a millisecond isn't worth an entry.
  void adopt(const K& key, const Lease& lease, const typename Remote::Answer& known, const Plan& plan) {
    if (!known.value && !plan.keep_absence) return;
    const std::optional<Millis> asked = ttl_for(plan, known.value);
    const Duration ttl = as_duration(asked.value_or(known.value ? options.ttl : options.negative_ttl));
    const Duration most = std::min(as_duration(known.left), ttl == kNever ? kNever : ttl - known.age);
    if (most < Millis(1)) return;
    fill(key, lease, known.value, {.ttl = asked, .most = most, .age = known.age, .took = known.took});
  }

  void count(const Value& value, bool refreshed) {
    (value ? metrics.store_hit : metrics.store_miss).add();
    (value ? metrics.load_ok : metrics.load_absent).add();
    if (refreshed) metrics.refresh_ok.add();
  }
  void count_error(const std::exception_ptr& error, bool refreshed);
  // Older than this is too old for a refresh to take over from another node.
  Duration fresh_for() const {
    return options.soft_ttl > Millis::zero() ? options.soft_ttl : options.ttl / 2;
  }

  const Options options;
  const Load load;
  const boost::asio::any_io_executor loads;
  CacheMetrics metrics;
  StatsPublisher publisher;
  LocalCache<K, V, Hash> local;
  LeaseTable<K, Hash> leases;
  Flights flights;
  LoadBatcher<Item> batcher;
  Bulkhead bulkhead;
  std::optional<Remote> remote;
  std::optional<FeedStep<K>> feed;  // its listener refers to what is above
  telemetry::ScrapeHook hook;       // the last to come and the first to go: it refers to the others
};

template <class K, class V, class Hash>
ReadThroughCore<K, V, Hash>::ReadThroughCore(Options given, Load loader, boost::asio::any_io_executor where)
    : options(std::move(given)),
      load(std::move(loader)),
      loads(std::move(where)),
      metrics(options.name),
      publisher(metrics),
      local({.capacity = options.capacity, .clock = options.clock}),
      leases(secure_random64()),
      flights(loads, {.limit = options.load_timeout,
                      .max_flights = options.max_loads,
                      // The counters outlive everything: they are the process's.
                      .on_timeout =
                          [timeouts = metrics.load_timeout, errors = metrics.store_error]() mutable {
                            timeouts.add();
                            errors.add();
                          }}),
      batcher(loads),
      bulkhead({.places = options.remote.bulkhead_loads,
                .max_waiting = options.remote.bulkhead_waiting,
                .patience = options.remote.bulkhead_wait,
                .pause = options.pause}) {
  if (options.remote.level) remote.emplace(options, metrics);
  if (options.feed.feed)
    feed.emplace(options.name, options.feed, metrics,
                 typename FeedStep<K>::Local{.forget = [this](const K& key) { invalidate(key); },
                                             .forget_all = [this] { forget_all(); }});
  hook = telemetry::on_scrape([this] { publish(); });
}

template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::ask(Self self, K key) -> Awaitable<Membership> {
  try {
    co_return co_await ask_filter(self, std::move(key));
  } catch (...) {
    self->metrics.filter_error.add();
    throw;  // nobody knows: a failure, not an answer
  }
}

// The filter is asked beside the reader, so that one which hangs, deaf to its cancellation perhaps, holds up nobody for
// longer than a load may take.
template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::ask_filter(Self self, K key) -> Awaitable<Membership> {
  if (self->options.membership_at_once) {
    if (const auto known = self->options.membership_at_once(key)) co_return *known;
  }
  const auto question = std::make_shared<FilterQuestion>(co_await boost::asio::this_coro::executor);
  question->ask([](Self core, K asked) -> Awaitable<Membership> {
    co_return co_await core->options.membership(asked);
  }(self, std::move(key)));
  co_return co_await FilterQuestion::answer(question, self->options.load_timeout);
}

// Under the key's lease.
template <class K, class V, class Hash>
bool ReadThroughCore<K, V, Hash>::put(const K& key, Value value, const Keep& keep) {
  constexpr Duration kLeast = std::chrono::milliseconds(1);
  auto& random = thread_random();
  if (!value)
    return local.put(key, nullptr, 0,
                     std::min(keep.most, jittered(as_duration(keep.ttl.value_or(options.negative_ttl)),
                                                  options.jitter, random)));
  const std::size_t weight = weigh(key, *value);
  if (weight > options.max_entry_weight) {
    local.erase(key);
    return false;
  }
  const Duration ttl =
      std::min(keep.most, jittered(as_duration(keep.ttl.value_or(options.ttl)), options.jitter, random));
  Duration refresh_after = early_refresh(ttl, keep.took, options.early_refresh, random);
  if (options.soft_ttl > Millis::zero())
    refresh_after = std::min(
        refresh_after,
        std::max(kLeast, jittered(as_duration(options.soft_ttl), options.jitter, random) - keep.age));
  return local.put(key, std::move(value), weight, ttl, refresh_after);
}

template <class K, class V, class Hash>
void ReadThroughCore<K, V, Hash>::count_error(const std::exception_ptr& error, bool refreshed) {
  metrics.store_error.add();
  metrics.load_error.add();
  if (!refreshed) return;
  metrics.refresh_error.add();
  swallowed("refresh of " + options.name, error);  // a refresh has nobody who waits to tell
}

// What to do without the remote level: throws, or gives a place, which may be an empty one.
template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::fall_back(Self self) -> Awaitable<Bulkhead::Place> {
  switch (self->options.remote.on_error) {
    case OnRemoteError::availability:
      self->metrics.fallback_availability.add();
      co_return Bulkhead::Place{};
    case OnRemoteError::protect:
      self->metrics.fallback_protect.add();
      throw Unavailable("the remote cache doesn't answer, and the store is protected");
    case OnRemoteError::bulkhead:
      break;
  }
  self->metrics.fallback_bulkhead.add();
  try {
    co_return co_await self->bulkhead.enter();
  } catch (const Unavailable&) {
    self->metrics.bulkhead_refused.add();
    throw;
  }
}

// A refresh has no claim to the store that readers are short of, nor to a load that another node does: as long as
// there is something to serve, it leaves it at that, and the next one comes.
template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::refresh_makes_way(const K& key, Turn turn) -> std::optional<Course> {
  auto hit = local.peek(key);
  if (!hit.known) return std::nullopt;
  if (turn == Turn::away && options.remote.on_error == OnRemoteError::availability) return Course{};
  if (turn == Turn::away && options.remote.on_error == OnRemoteError::bulkhead) {
    if (auto place = bulkhead.try_enter()) return Course{.place = std::move(*place)};
  }
  metrics.refresh_skipped.add();
  return Course{.known = std::move(hit.value)};
}

template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::find_course(Self self, K key, Plan plan, const Lease& lease)
    -> Awaitable<Course> {
  auto asked = plan.refresh ? co_await self->remote->ask_refresh(key, self->fresh_for())
                            : co_await self->remote->ask(key);
  if (plan.refresh && (asked.turn == Turn::held || asked.turn == Turn::away)) {
    if (auto course = self->refresh_makes_way(key, asked.turn)) co_return std::move(*course);
    // The entry has ended meanwhile, and readers may have joined this flight: it is an ordinary read now.
    if (asked.turn == Turn::held) asked = co_await self->remote->ask(key);
  }
  switch (asked.turn) {
    case Turn::known:
      if (plan.refresh) self->metrics.refresh_adopted.add();
      self->adopt(key, lease, asked, plan);
      co_return Course{.known = std::move(asked.value)};
    case Turn::ours:
      co_return Course{.to_share = std::move(asked.lease)};
    case Turn::held:
      self->metrics.unleased_loads.add();
      break;
    case Turn::unusable:
      break;
    case Turn::away:
      co_return Course{.place = co_await fall_back(self)};
  }
  co_return Course{};
}

template <class K, class V, class Hash>
auto ReadThroughCore<K, V, Hash>::load_one(Self self, K key, Plan plan) -> Awaitable<std::vector<Value>> {
  std::vector<Value> answer(1);
  if (!plan.refresh) {
    // The flight before this one may have filled between our caller's look and this flight's start.
    if (auto hit = self->local.peek(key); hit.known) {
      answer[0] = std::move(hit.value);
      co_return answer;
    }
  }
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  const Lease lease = self->leases.take(key);  // before anything is read
  Course course;
  if (self->remote) course = co_await find_course(self, key, plan, lease);
  if (course.known) {
    answer[0] = std::move(*course.known);
    co_return answer;
  }
  const SteadyTime began = self->options.clock->steady_now();
  std::exception_ptr error;
  try {
    if (std::optional<V> loaded = co_await self->load(key))
      answer[0] = std::make_shared<const V>(std::move(*loaded));
  } catch (...) {
    error = std::current_exception();
  }
  const Duration took = self->options.clock->steady_now() - began;
  course.place = {};
  const bool in_time =
      state.cancelled() == boost::asio::cancellation_type::none;  // else it is counted already
  // Even a load that is too late gives its lease back, or shares what it has.
  if (course.to_share)
    co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
  if (in_time && error) self->count_error(error, plan.refresh);
  if (in_time && !error) self->count(answer[0], plan.refresh);
  const bool keep = !error && (answer[0] || plan.keep_absence);
  if (!keep && course.to_share) co_await self->remote->give_back(key, std::move(*course.to_share));
  if (error) std::rethrow_exception(error);
  if (!keep) co_return answer;
  if (course.to_share) {
    std::vector<typename Remote::Offer> offers;
    offers.push_back({key, std::move(*course.to_share), answer[0], self->ttl_for(plan, answer[0])});
    const auto ends = co_await self->remote->share(std::move(offers), took);
    if (ends.front() == Remote::Shared::refused) {
      self->metrics.refused_fills.add();  // a write came between, on another node perhaps: nor here
      co_return answer;
    }
  }
  self->fill(key, lease, answer[0], {.ttl = self->ttl_for(plan, answer[0]), .took = took});
  co_return answer;
}

}  // namespace weir::cache::detail

// SingleFlight: many ask for the same thing at the same time; it is done once, for all of them.
//
// Promises:
//  - Who enters while a flight of the key is under way joins it and gets its value or its error; else a new
//    one starts. Values are shared: R should be cheap to copy, a shared_ptr say.
//  - A flight belongs to nobody's request. It runs detached on the executor given for loads; a waiter's
//    cancellation ends its own wait alone.
//  - Every flight lands: with what the load gives or throws, with TimedOut `limit` after it was entered first (the
//    load is then told to stop by terminal cancellation, or isn't started any more), with Unavailable when its
//    executor goes away.
//  - Every wait ends, also while the loads' executor is blocked or isn't run: each has a deadline of its own on the
//    waiter's executor, a sixteenth of `limit` later, so that as a rule the landing tells first. It ends that wait
//    alone, with TimedOut.
//  - A key leaves the table when its flight lands, or when it is forgotten: then later ones start a new
//    flight, and those who had joined still get theirs.
//  - Waiters resume on their own executors, whichever threads these have.
//
// Thread-safe. A flight's coroutine runs on a strand of its own, so the executor may have many threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weir/base/fault.h"
#include "weir/base/random.h"
#include "weir/cache/gate.h"
#include "weir/cache/key_hash.h"

namespace weir::cache {

struct SingleFlightOptions {
  std::chrono::milliseconds limit{5'000};  // of a flight, and so of a wait; a year at most
  std::size_t max_flights = 100'000;       // more at once are refused with Unavailable
  // Called when a load reached the limit; once for a flight, though its waiters may have found out before it.
  std::function<void()> on_timeout{};
};

template <class K, class R, class Hash = KeyHash<K>>
class SingleFlight {
 public:
  class Flight;
  using FlightPtr = std::shared_ptr<Flight>;
  // A place in the key's flight. The leader has made it and must launch (or abandon) it.
  struct Ticket {
    FlightPtr flight;
    bool leader;
  };

  explicit SingleFlight(boost::asio::any_io_executor loads, SingleFlightOptions options = {})
      : core_(std::make_shared<Core>(std::move(loads), std::move(options))) {}
  ~SingleFlight() { stop(); }
  SingleFlight(const SingleFlight&) = delete;
  SingleFlight& operator=(const SingleFlight&) = delete;

  // The value of the key's flight; load() -> awaitable<R> is called if there is none yet. Throws the load's
  // error, TimedOut, Unavailable, and system_error(operation_aborted) when the waiter is cancelled.
  template <class Load>
  boost::asio::awaitable<R> run(K key, Load load) {
    return run_in(core_, std::move(key), std::move(load));
  }

  // The same in its steps, for one load that serves many keys.
  Ticket enter(const K& key);
  // load() -> awaitable<std::vector<R>>: the results in the flights' order.
  template <class Load>
  void launch(std::vector<FlightPtr> flights, Load load) {
    launch_in(core_, std::move(flights), std::move(load));
  }
  void abandon(const std::vector<FlightPtr>& flights, const std::exception_ptr& error) {
    for (const auto& flight : flights) core_->land(flight, error, {});
  }
  // Ends one of a load of many before the others: what that load answers for it later is dropped. False when it
  // had ended.
  bool land(const FlightPtr& flight, R value) { return core_->land(flight, nullptr, std::move(value)); }
  bool land(const FlightPtr& flight, const std::exception_ptr& error) {
    return core_->land(flight, error, {});
  }
  static const K& key_of(const FlightPtr& flight) { return flight->key; }
  // May outlive this. The time starts now.
  boost::asio::awaitable<R> wait(FlightPtr flight) { return wait_in(core_, std::move(flight)); }

  // Whether there is a flight of the key to join.
  bool open(const K& key) const { return core_->is_open(key); }

  // From now on the key's flight takes nobody new.
  void forget(const K& key) { core_->forget(key); }
  void forget_all() { core_->forget_all(); }

  // Lands all flights with Unavailable and takes no new ones. Loads that run are not interrupted; nobody
  // hears of them.
  void stop() { core_->stop(); }

  // Flights under way, forgotten ones too.
  std::size_t size() const { return core_->flights.load(std::memory_order_relaxed); }

 private:
  template <class Load>
  struct One;
  struct Core;
  struct Crew;
  using SteadyClock = std::chrono::steady_clock;

  // Static, here and below: a coroutine that isn't begun yet may outlive this too.
  template <class Load>
  static boost::asio::awaitable<R> run_in(std::shared_ptr<Core> core, K key, Load load) {
    const Ticket ticket = core->enter(key);
    if (ticket.leader) launch_in(core, {ticket.flight}, One<Load>{std::move(load)});
    co_return co_await wait_in(core, ticket.flight);
  }
  template <class Load>
  static void launch_in(const std::shared_ptr<Core>& core, std::vector<FlightPtr> flights, Load load);
  static boost::asio::awaitable<R> wait_in(const std::shared_ptr<Core>& core, FlightPtr flight) {
    return wait_until(core, std::move(flight), SteadyClock::now() + core->limit + core->limit / 16);
  }
  static boost::asio::awaitable<R> wait_until(std::shared_ptr<Core> core, FlightPtr flight,
                                              SteadyClock::time_point deadline) {
    if (!co_await flight->gate->wait_until(deadline)) {
      core->count_timeout(*flight);
      throw TimedOut("a load took too long");
    }
    if (flight->error) std::rethrow_exception(flight->error);
    co_return *flight->value;
  }

  std::shared_ptr<Core> core_;
};

template <class K, class R, class Hash>
class SingleFlight<K, R, Hash>::Flight {
 public:
  Flight(K k, std::chrono::steady_clock::time_point end) : key(std::move(k)), deadline(end) {}

 private:
  friend class SingleFlight;
  const K key;
  const std::chrono::steady_clock::time_point deadline;
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::atomic<bool> timeout_counted{false};
  bool landed = false;       // under the lock of the key's stripe
  std::exception_ptr error;  // one of the two, before the gate opens
  std::optional<R> value;
};

// A load of one value in the shape of a load of many. A named type, so that the load lives as long as the
// coroutine.
template <class K, class R, class Hash>
template <class Load>
struct SingleFlight<K, R, Hash>::One {
  Load load;
  boost::asio::awaitable<std::vector<R>> operator()() {
    std::vector<R> values;
    values.push_back(co_await load());
    co_return values;
  }
};

// The table; loads that outlive the SingleFlight share it.
template <class K, class R, class Hash>
struct SingleFlight<K, R, Hash>::Core {
  static constexpr std::size_t kStripes = 16;
  struct Stripe {
    std::mutex mutex;
    std::unordered_map<K, FlightPtr, SeededHash<K, Hash>> open;  // for all to join
    std::unordered_set<FlightPtr> forgotten;
  };

  // A limit is added to a steady clock's time, which must not overflow.
  static constexpr std::chrono::milliseconds kLongestLimit = std::chrono::hours(24 * 365);

  Core(boost::asio::any_io_executor where, SingleFlightOptions given)
      : executor(std::move(where)),
        options(std::move(given)),
        limit(std::min(options.limit, kLongestLimit)),
        hash{secure_random64()} {
    for (auto& stripe : stripes) stripe.open = decltype(stripe.open)(0, hash);
  }

  Stripe& stripe_of(const K& key) {
    return stripes[(static_cast<std::uint64_t>(hash(key)) >> 40) % kStripes];
  }

  Ticket enter(const K& key) {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard lock(stripe.mutex);
    if (stopped) throw Unavailable("the cache is stopping");
    if (const auto at = stripe.open.find(key); at != stripe.open.end()) return {at->second, false};
    if (flights.load(std::memory_order_relaxed) >= options.max_flights)
      throw Unavailable("too many loads at once");
    auto flight = std::make_shared<Flight>(key, SteadyClock::now() + limit);
    stripe.open.emplace(key, flight);
    flights.fetch_add(1, std::memory_order_relaxed);
    return {std::move(flight), true};
  }

  // The first to land a flight decides how it ends. It leaves the table before anyone hears of its end: who
  // comes after those who were in it must not join it any more.
  bool land(const FlightPtr& flight, const std::exception_ptr& error, std::optional<R> value) {
    {
      Stripe& stripe = stripe_of(flight->key);
      const std::lock_guard lock(stripe.mutex);
      if (std::exchange(flight->landed, true)) return false;
      const auto at = stripe.open.find(flight->key);
      if (at != stripe.open.end() && at->second == flight) {
        stripe.open.erase(at);
      } else {
        stripe.forgotten.erase(flight);
      }
    }
    flights.fetch_sub(1, std::memory_order_relaxed);
    flight->gate->open([&] {
      flight->error = error;
      flight->value = std::move(value);
    });
    return true;
  }

  void count_timeout(Flight& flight) {
    if (!flight.timeout_counted.exchange(true) && options.on_timeout) options.on_timeout();
  }

  bool is_open(const K& key) {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard lock(stripe.mutex);
    return stripe.open.contains(key);
  }

  void forget(const K& key) {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard lock(stripe.mutex);
    if (const auto at = stripe.open.find(key); at != stripe.open.end()) {
      stripe.forgotten.insert(at->second);
      stripe.open.erase(at);
    }
  }

  void forget_all() {
    for (auto& stripe : stripes) {
      const std::lock_guard lock(stripe.mutex);
      for (auto& [key, flight] : stripe.open) stripe.forgotten.insert(flight);
      stripe.open.clear();
    }
  }

  void stop() {
    std::vector<FlightPtr> all;
    for (auto& stripe : stripes) {
      const std::lock_guard lock(stripe.mutex);
      stopped = true;
      for (auto& [key, flight] : stripe.open) all.push_back(flight);
      all.insert(all.end(), stripe.forgotten.begin(), stripe.forgotten.end());
    }
    if (all.empty()) return;
    const auto error = std::make_exception_ptr(Unavailable("the cache is stopping"));
    for (const auto& flight : all) land(flight, error, {});
  }

  const boost::asio::any_io_executor executor;
  const SingleFlightOptions options;
  const SteadyClock::duration limit;
  const SeededHash<K, Hash> hash;
  std::atomic<std::size_t> flights{0};
  std::atomic<bool> stopped{false};
  std::array<Stripe, kStripes> stripes;
};

// Those who fly one load: its flights, its deadline, the way to tell it to stop. Used on its strand only.
template <class K, class R, class Hash>
struct SingleFlight<K, R, Hash>::Crew : std::enable_shared_from_this<Crew> {
  Crew(std::shared_ptr<Core> c, std::vector<FlightPtr> f)
      : core(std::move(c)),
        flights(std::move(f)),
        strand(boost::asio::make_strand(core->executor)),
        timer(strand) {}
  // Whatever has happened to the load (its executor ended, say), nobody is left waiting.
  ~Crew() { land_all(std::make_exception_ptr(Unavailable("a load was abandoned"))); }

  template <class Load>
  void start(Load load) {
    const auto deadline = std::ranges::min_element(flights, {}, [](const auto& f) { return f->deadline; });
    if (deadline == flights.end()) return;
    // Begun so late, what it finds would reach nobody.
    if ((*deadline)->deadline <= SteadyClock::now()) return time_out();
    timer.expires_at((*deadline)->deadline);
    timer.async_wait([self = this->shared_from_this()](boost::system::error_code error) {
      if (!error) self->time_out();
    });
    boost::asio::co_spawn(
        strand, std::move(load),
        boost::asio::bind_cancellation_slot(
            stop.slot(), [self = this->shared_from_this()](std::exception_ptr error, std::vector<R> values) {
              self->end(error, std::move(values));
            }));
  }

  void end(std::exception_ptr error, std::vector<R> values) {
    timer.cancel();
    // The coroutine that calls this still unwinds through the signal: it has to live until the strand's next
    // turn.
    boost::asio::post(strand, [self = this->shared_from_this()] {});
    if (!error && values.size() != flights.size())
      error = std::make_exception_ptr(std::logic_error("a load of many has answered with another number"));
    if (error) {
      land_all(error);
      return;
    }
    for (std::size_t i = 0; i < flights.size(); ++i) core->land(flights[i], nullptr, std::move(values[i]));
  }

  void time_out() {
    const auto error = std::make_exception_ptr(TimedOut("a load took too long"));
    FlightPtr landed;
    bool counted = false;  // by one who waited for one of them
    for (const auto& flight : flights) {
      counted = counted || flight->timeout_counted;
      if (core->land(flight, error, {})) landed = flight;
    }
    if (landed && !counted) core->count_timeout(*landed);
    stop.emit(boost::asio::cancellation_type::terminal);
  }

  void land_all(const std::exception_ptr& error) {
    for (const auto& flight : flights) core->land(flight, error, {});
  }

  const std::shared_ptr<Core> core;
  const std::vector<FlightPtr> flights;
  const boost::asio::strand<boost::asio::any_io_executor> strand;
  boost::asio::steady_timer timer;
  boost::asio::cancellation_signal stop;
};

template <class K, class R, class Hash>
auto SingleFlight<K, R, Hash>::enter(const K& key) -> Ticket {
  return core_->enter(key);
}

template <class K, class R, class Hash>
template <class Load>
void SingleFlight<K, R, Hash>::launch_in(const std::shared_ptr<Core>& core, std::vector<FlightPtr> flights,
                                         Load load) {
  std::shared_ptr<Crew> crew;
  try {
    crew = std::make_shared<Crew>(core, flights);
  } catch (...) {
    // Others may have joined already.
    for (const auto& flight : flights) core->land(flight, std::current_exception(), {});
    throw;
  }
  // Posted: a caller in the middle of something doesn't run somebody else's load on its stack.
  boost::asio::post(crew->strand, [crew, load = std::move(load)]() mutable {
    try {
      crew->start(std::move(load));
    } catch (...) {
      crew->land_all(std::current_exception());
    }
  });
}

}  // namespace weir::cache

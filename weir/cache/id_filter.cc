#include "weir/cache/id_filter.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <mutex>
#include <optional>
#include <utility>

#include "weir/base/backoff.h"
#include "weir/base/hash.h"
#include "weir/base/random.h"
#include "weir/cache/cache_metrics.h"
#include "weir/cache/single_flight.h"
#include "weir/filter/growing_bloom_filter.h"
#include "weir/telemetry/metrics.h"

namespace weir::cache {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr std::chrono::milliseconds kFirstRetry{100};  // of a fill that failed
constexpr std::chrono::milliseconds kLongestRetry{10'000};
// The mark follows new rows this often at most; between, they are answered by looks.
constexpr std::chrono::milliseconds kAdvanceInterval{100};

}  // namespace

struct IdFilter::Core : std::enable_shared_from_this<Core> {
  using Looks = SingleFlight<int, Id>;
  static constexpr int kTheLook = 0;  // looks are flights that all have this key

  struct LastLook {
    SteadyTime began;
    Id highest;
  };

  Core(Options given, Source where, asio::any_io_executor executor)
      : options(std::move(given)),
        source(std::move(where)),
        strand(asio::make_strand(executor)),
        bloom(options.expected, options.false_positive_rate),
        retry(strand),
        // A look waits for the one before it.
        looks(executor, {.limit = 2 * options.look_timeout + options.look_interval}),
        looks_made(telemetry::counter("weir_id_filter_looks_total", "Looks at the highest id",
                                      {{"filter", options.name}})),
        hook(telemetry::on_scrape(
            [this,
             ids = telemetry::gauge("weir_id_filter_mark", "The filter is complete up to this id",
                                    {{"filter", options.name}}),
             memory = telemetry::gauge("weir_id_filter_bytes", "Memory of the filter",
                                       {{"filter", options.name}})]() mutable {
              ids.set(static_cast<double>(mark.load()));
              memory.set(static_cast<double>(bloom.bytes()));
            })) {}

  std::uint64_t hash(Id id) const { return mix64(static_cast<std::uint64_t>(id) ^ seed); }

  static awaitable<Membership> ask(std::shared_ptr<Core> core, Id id) {
    co_return co_await core->membership(id);
  }
  std::optional<Membership> known(Id id) const;
  awaitable<Membership> membership(Id id);
  bool out_of_reach(Id id) const;
  awaitable<Id> look();
  static awaitable<std::vector<Id>> look_once(std::shared_ptr<Core> self, Looks::FlightPtr before);
  awaitable<Id> look_now();
  void follow();

  static awaitable<void> fill(std::shared_ptr<Core> self);
  static awaitable<void> catch_up(std::shared_ptr<Core> self);
  awaitable<void> advance();
  // Takes in what was read above the mark; false when it stopped before a gap because the gaps have become
  // too much.
  bool take_in(const std::vector<Id>& ids);

  const Options options;
  const Source source;
  const asio::strand<asio::any_io_executor> strand;  // of the background work
  const std::uint64_t seed = secure_random64();      // nobody outside can compute a false positive
  filter::GrowingBloomFilter bloom;
  std::atomic<Id> mark{0};  // bits are set before it moves: release, acquire
  std::atomic<bool> filled{false};
  std::atomic<bool> stopped{false};
  std::atomic<bool> advancing{false};

  // Of whoever advances.
  Id settled = 0;     // no row can appear up to here any more: gaps are gaps
  Id gaps_taken = 0;  // ids of gaps put in since `settled` moved
  asio::steady_timer retry;

  mutable std::mutex mutex;
  std::optional<LastLook> last_look;  // of those that succeeded
  std::optional<SteadyTime> last_began;
  SteadyTime last_advance;
  Looks::FlightPtr newest_look;
  Looks looks;
  std::atomic<std::uint64_t> look_count{0};
  telemetry::Counter looks_made;
  telemetry::ScrapeHook hook;  // the first to go
};

std::optional<Membership> IdFilter::Core::known(Id id) const {
  if (id <= 0) return Membership::absent;
  const Id complete_to = mark.load(std::memory_order_acquire);
  if (!filled.load(std::memory_order_acquire))
    return id <= complete_to ? Membership::unknown : Membership::fresh;
  const bool maybe = bloom.may_contain(hash(id));
  if (id <= complete_to) return maybe ? Membership::unknown : Membership::absent;
  if (maybe) return Membership::fresh;  // created here, most likely
  if (out_of_reach(id)) return Membership::absent;
  return std::nullopt;
}

awaitable<Membership> IdFilter::Core::membership(Id id) {
  if (const auto answer = known(id)) co_return *answer;
  const Id highest = co_await look();
  co_return id > highest ? Membership::absent : Membership::fresh;
}

// Further up than could have been created since the last look began.
bool IdFilter::Core::out_of_reach(Id id) const {
  const std::lock_guard lock(mutex);
  if (!last_look || id <= last_look->highest) return false;
  const auto passed = std::max(options.clock->steady_now() - last_look->began, SteadyTime::duration::zero());
  constexpr Id kMostPeriods = 1'000'000'000;  // keeps the product in 64 bits; three years of looking away
  const Id periods = std::min<Id>(1 + passed / options.created_within, kMostPeriods);
  return id - last_look->highest > options.created_at_most * periods;
}

awaitable<Id> IdFilter::Core::look() {
  Looks::FlightPtr flight;
  {
    // The flight that is open hasn't begun to look yet: `look_once` forgets it before it does.
    const std::lock_guard lock(mutex);
    const auto ticket = looks.enter(kTheLook);
    flight = ticket.flight;
    if (ticket.leader) {
      looks.launch({flight}, [self = shared_from_this(), before = std::exchange(newest_look, flight)] {
        return look_once(self, before);
      });
    }
  }
  co_return co_await looks.wait(flight);
}

awaitable<std::vector<Id>> IdFilter::Core::look_once(std::shared_ptr<Core> self, Looks::FlightPtr before) {
  if (before) {
    try {
      co_await self->looks.wait(before);
    } catch (...) {
      // Those who waited for that one have heard of it.
    }
    before.reset();
  }
  SteadyTime not_before{};
  {
    const std::lock_guard lock(self->mutex);
    if (self->last_began) not_before = *self->last_began + self->options.look_interval;
  }
  if (const auto early = not_before - self->options.clock->steady_now();
      early > SteadyTime::duration::zero()) {
    asio::steady_timer pause(co_await asio::this_coro::executor, early);
    co_await pause.async_wait(asio::use_awaitable);
  }
  self->looks.forget(kTheLook);  // who comes from now on needs a look that begins later
  const Id highest = co_await self->look_now();
  self->follow();
  co_return std::vector<Id>{highest};
}

awaitable<Id> IdFilter::Core::look_now() {
  const SteadyTime began = options.clock->steady_now();
  {
    // Also of looks that fail: a store in trouble isn't asked more often than one that is well.
    const std::lock_guard lock(mutex);
    last_began = began;
  }
  looks_made.add();
  look_count.fetch_add(1, std::memory_order_relaxed);
  const Id highest = co_await source.highest_id();
  const std::lock_guard lock(mutex);
  if (!last_look || began >= last_look->began) last_look = LastLook{began, highest};
  co_return highest;
}

// Moves the mark in the background if there is something above it and nobody is at it.
void IdFilter::Core::follow() {
  {
    const std::lock_guard lock(mutex);
    if (last_look->highest <= mark.load() || !filled.load()) return;
    if (options.clock->steady_now() - last_advance < kAdvanceInterval) return;
  }
  if (stopped || advancing.exchange(true)) return;
  asio::co_spawn(strand, catch_up(shared_from_this()), asio::detached);
}

awaitable<void> IdFilter::Core::catch_up(std::shared_ptr<Core> self) {
  try {
    co_await self->advance();
  } catch (...) {
    swallowed("id filter of " + self->options.name, std::current_exception());  // the next look tries again
  }
  {
    const std::lock_guard lock(self->mutex);
    self->last_advance = self->options.clock->steady_now();
  }
  self->advancing = false;
}

awaitable<void> IdFilter::Core::fill(std::shared_ptr<Core> self) {
  Backoff backoff(kFirstRetry, kLongestRetry);
  while (!self->stopped) {
    try {
      if (self->settled == 0) {
        // Transactions that are open now have their ids among the last ones.
        const Id highest = co_await self->look_now();
        self->settled = std::max<Id>(0, highest - self->options.open_gap);
      }
      co_await self->advance();
      self->filled.store(true, std::memory_order_release);
      self->advancing = false;
      co_return;
    } catch (...) {
      swallowed("id filter of " + self->options.name, std::current_exception());
    }
    if (self->stopped) co_return;
    self->retry.expires_after(backoff.next());
    boost::system::error_code cancelled;
    co_await self->retry.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
}

awaitable<void> IdFilter::Core::advance() {
  while (!stopped) {
    const Id from = mark.load();
    const std::vector<Id> ids = co_await source.read_ids(from, options.page);
    if (!take_in(ids)) {
      // Too much to take in. Once every transaction of now has ended nobody can fill these gaps any more:
      // what isn't there when they are read again never will be.
      if (source.older_transactions_ended) co_await source.older_transactions_ended();
      settled = ids.back();
      gaps_taken = 0;
      continue;
    }
    if (ids.size() < options.page || mark.load() == from) co_return;
  }
}

bool IdFilter::Core::take_in(const std::vector<Id>& ids) {
  Id last = mark.load();
  bool all = true;
  for (const Id id : ids) {
    if (id <= last) continue;
    const Id gap_from = std::max(last, settled) + 1;
    const Id gap = std::max<Id>(0, id - gap_from);
    all = gaps_taken + gap <= options.open_gap;
    if (!all) break;
    for (Id missing = gap_from; missing < id; ++missing) bloom.insert(hash(missing));
    gaps_taken += gap;
    bloom.insert(hash(id));
    last = id;
  }
  mark.store(last, std::memory_order_release);
  return all;
}

IdFilter::IdFilter(Options options, Source source, asio::any_io_executor executor)
    : core_(std::make_shared<Core>(std::move(options), std::move(source), std::move(executor))) {}

IdFilter::~IdFilter() {
  stop();
}

void IdFilter::start() {
  if (core_->advancing.exchange(true)) return;
  asio::co_spawn(core_->strand, Core::fill(core_), asio::detached);
}

void IdFilter::stop() {
  core_->stopped = true;
  core_->looks.stop();
  asio::post(core_->strand, [core = core_] { core->retry.cancel(); });
}

// No coroutine: what it returns keeps the core.
awaitable<Membership> IdFilter::membership(Id id) {
  return Core::ask(core_, id);
}

std::optional<Membership> IdFilter::known(Id id) const {
  return core_->known(id);
}

void IdFilter::created(Id id) {
  core_->bloom.insert(core_->hash(id));
}

bool IdFilter::filled() const {
  return core_->filled;
}
Id IdFilter::mark() const {
  return core_->mark;
}
std::uint64_t IdFilter::bytes() const {
  return core_->bloom.bytes();
}
std::uint64_t IdFilter::looks() const {
  return core_->look_count;
}

}  // namespace weir::cache

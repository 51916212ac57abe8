// CacheWrite: a write of a key that a ReadThrough caches, in the order that keeps both levels right.
//
//     auto write = co_await articles.begin_write(id);  // before the store is touched: takes the leases
//     co_await store.write(article);                   // the commit
//     co_await write.invalidate();                     // drops the key, remotely, on the other nodes and here
//     co_await write.publish(value);                   // publish ahead: optional
//
// A Write that goes without `invalidate` (the store threw: whether it was done is unknown) does that by itself, in
// the background; one that is known to have changed nothing is to be abandoned. From the beginning to `publish`, or to its own end, it holds the remote lease, and readers of the
// key on all nodes wait for what it publishes: who doesn't publish needs no Write but ReadThrough::invalidate_all.
//
// If the remote level can't be told, the write stands; that is logged and counted
// (weir_cache_remote_drops_total), and the TTLs bound how long the old value may be served.
//
// A Write is used by one coroutine at a time. It may outlive its ReadThrough.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "weir/cache/gate.h"
#include "weir/cache/read_through_core.h"

namespace weir::cache {
namespace detail {

// A drop at both levels, which belongs to nobody's request: a writer who is cancelled has committed all the same.
// Its end is told by `ended`, whatever happens to the coroutine that does it.
struct DropOutcome {
  const std::shared_ptr<Gate> ended = std::make_shared<Gate>();
  bool done = false;        // both levels are known to have dropped it
  bool still_ours = false;  // the remote lease is good, if there was one
};

template <class Core, class K, class Local>
class Drop {
 public:
  Drop(std::shared_ptr<Core> core, std::vector<K> keys, std::optional<RemoteLevel::Lease> own, Local local,
       std::shared_ptr<DropOutcome> outcome)
      : core_(std::move(core)),
        keys_(std::move(keys)),
        own_(std::move(own)),
        local_(std::move(local)),
        outcome_(std::move(outcome)) {}
  Drop(const Drop&) = delete;
  Drop& operator=(const Drop&) = delete;
  // The local part runs in any case, and last: who reads here before it has not been promised anything yet.
  ~Drop() {
    local_();
    outcome_->ended->open([] {});
  }

  static boost::asio::awaitable<void> run(std::shared_ptr<Drop> drop) {
    Core& core = *drop->core_;
    if (core.remote) co_await drop_remotely(*drop);
    if (!core.feed) co_return;
    co_await core.feed->tell(drop->keys_);
    if (core.feed->wants_repeat())
      boost::asio::co_spawn(boost::asio::make_strand(core.loads), repeat(drop->core_), boost::asio::detached);
  }

 private:
  static boost::asio::awaitable<void> repeat(std::shared_ptr<Core> core) {
    co_await core->feed->repeat(core->options.pause);
  }
  static boost::asio::awaitable<void> drop_remotely(Drop& drop) {
    auto& remote = *drop.core_->remote;
    if (drop.own_) {
      const auto dropped = co_await remote.drop(drop.keys_.front(), std::move(drop.own_));
      drop.outcome_->done = dropped.done;
      drop.outcome_->still_ours = dropped.still_ours;
    } else {
      drop.outcome_->done = co_await remote.drop_many(drop.keys_);
    }
  }

  const std::shared_ptr<Core> core_;
  const std::vector<K> keys_;
  std::optional<RemoteLevel::Lease> own_;  // of the one key
  Local local_;
  const std::shared_ptr<DropOutcome> outcome_;
};

// Drops the keys: remotely, if there is such a level, in the background; tells other nodes, if there is a feed; then
// `local()`.
template <class Core, class K, class Local>
std::shared_ptr<DropOutcome> start_drop(const std::shared_ptr<Core>& core, std::vector<K> keys,
                                        std::optional<RemoteLevel::Lease> own, Local local) {
  auto outcome = std::make_shared<DropOutcome>();
  outcome->done = !core->remote;
  using Work = Drop<Core, K, Local>;
  auto drop = std::make_shared<Work>(core, std::move(keys), std::move(own), std::move(local), outcome);
  if (core->remote || core->feed)
    boost::asio::co_spawn(boost::asio::make_strand(core->loads), Work::run(std::move(drop)),
                          boost::asio::detached);
  return outcome;
}

template <class Core, class K>
boost::asio::awaitable<bool> invalidate_both(std::shared_ptr<Core> core, std::vector<K> keys) {
  const auto outcome = start_drop(core, keys, std::nullopt, [core, keys] {
    for (const K& key : keys) core->invalidate(key);
  });
  co_await outcome->ended->wait();
  co_return outcome->done;
}

}  // namespace detail

template <class K, class V, class Hash>
class CacheWrite {
  using Core = detail::ReadThroughCore<K, V, Hash>;

 public:
  using Millis = std::chrono::milliseconds;
  using Value = std::shared_ptr<const V>;

  // See ReadThrough::begin_write.
  static boost::asio::awaitable<CacheWrite> begin(std::shared_ptr<Core> core, K key) {
    auto state = std::make_shared<State>(core, key);
    if (core->remote) state->remote = co_await core->remote->take_over(key);
    co_return CacheWrite(std::move(state));
  }
  // No write: to be assigned to. Its calls throw std::logic_error.
  CacheWrite() = default;
  CacheWrite(CacheWrite&&) noexcept = default;
  CacheWrite& operator=(CacheWrite&& other) noexcept {
    CacheWrite taken(std::move(other));
    std::swap(state_, taken.state_);  // what was here ends now
    return *this;
  }
  ~CacheWrite() {
    if (!state_) return;
    if (!state_->outcome && !state_->abandoned) state_->drop();
    if (state_->remote)
      boost::asio::co_spawn(boost::asio::make_strand(state_->core->loads), State::give_back(state_),
                            boost::asio::detached);
  }

  // After the store's commit: drops the key at the remote level, then here, and cancels all other leases of it.
  // True when both are known to have dropped it; false: the remote level couldn't be told, see above. Once begun
  // it is done although the caller is cancelled (operation_aborted). Again: the same answer.
  boost::asio::awaitable<bool> invalidate() { return invalidate(state_); }

  // Instead of `invalidate`, when the store is known to be as it was (the row isn't the caller's, say): what is
  // cached stays, the leases are given back.
  void abandon() {
    if (!state_) throw std::logic_error("no write was begun");
    if (!state_->outcome) state_->abandoned = true;
  }

  // After `invalidate`, once: puts what was written into both levels; null: the row was removed. False: refused,
  // because another write came between, the level gave no lease, or the value is too heavy; then the next reader
  // loads. Throws std::logic_error before `invalidate` has ended.
  boost::asio::awaitable<bool> publish(Value value, std::optional<Millis> ttl = {}) {
    return publish(state_, std::move(value), ttl);
  }

 private:
  struct State : std::enable_shared_from_this<State> {
    State(std::shared_ptr<Core> c, K k)
        : core(std::move(c)), key(std::move(k)), local(core->leases.take(key)) {}
    void drop() {
      outcome = detail::start_drop(core, std::vector<K>{key}, remote, [self = this->shared_from_this()] {
        self->core->invalidate(self->key, self->local);
        self->dropped = true;
      });
    }
    // A lease that isn't used to publish would hold up who comes to load.
    static boost::asio::awaitable<void> give_back(std::shared_ptr<State> self) {
      if (self->outcome) co_await self->outcome->ended->wait();
      co_await self->core->remote->give_back(self->key, std::move(*self->remote));
    }

    const std::shared_ptr<Core> core;
    const K key;
    typename Core::Lease local;
    std::optional<RemoteLevel::Lease> remote;
    std::shared_ptr<detail::DropOutcome> outcome;
    std::atomic<bool> dropped{false};
    bool abandoned = false;
  };

  static boost::asio::awaitable<bool> invalidate(std::shared_ptr<State> state) {
    if (!state || state->abandoned) throw std::logic_error("no write was begun");
    if (!state->outcome) state->drop();
    const auto outcome = state->outcome;
    co_await outcome->ended->wait();
    co_return outcome->done;
  }

  static boost::asio::awaitable<bool> publish(std::shared_ptr<State> state, Value value,
                                              std::optional<Millis> ttl) {
    const auto outcome = state ? state->outcome : nullptr;
    if (!outcome || !state->dropped) throw std::logic_error("a write publishes before it has invalidated");
    Core& core = *state->core;
    if (auto lease = std::exchange(state->remote, std::nullopt)) {
      if (outcome->done && !outcome->still_ours) co_return false;  // another write came between
      // Also when the drop has failed: under a lease that is still good this replaces what stayed there.
      std::vector<typename Core::Remote::Offer> offers;
      offers.push_back({state->key, std::move(*lease), value, ttl});
      const auto ends = co_await core.remote->share(std::move(offers), Duration(0));
      if (ends.front() == Core::Remote::Shared::refused) co_return false;
    } else if (core.remote) {
      co_return false;  // without a lease there, nobody knows whether another write came between
    }
    co_return core.fill(state->key, std::exchange(state->local, {}), std::move(value), {.ttl = ttl});
  }

  explicit CacheWrite(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace weir::cache

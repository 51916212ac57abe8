// One shard of a LocalCache: its entries, their index, and the policy that chooses who goes. Writers hold
// `mutex`; `read` needs no lock. What a call took out (`Trash`) is destroyed after the mutex is let go.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/cache/clock_policy.h"
#include "weir/cache/frequency_sketch.h"
#include "weir/cache/local_cache_types.h"
#include "weir/cache/seq_gate.h"
#include "weir/cache/slab.h"
#include "weir/cache/slot_index.h"
#include "weir/cache/thread_slot.h"

namespace weir::cache::detail {

// A point of the steady clock as an entry keeps it: nanoseconds, and 0 for "never".
using Nanos = std::int64_t;
constexpr Nanos kNoTime = 0;
Nanos to_nanos(SteadyTime time);             // the end of time becomes kNoTime
Nanos after(SteadyTime now, Duration wait);  // kNoTime instead of an overflow
constexpr bool reached(Nanos time, Nanos now) {
  return time != kNoTime && time <= now;
}

struct Times {
  Nanos expires = kNoTime;
  Nanos refresh = kNoTime;
  bool none() const { return expires == kNoTime && refresh == kNoTime; }
};

// What look-ups read of an entry.
template <class K, class V>
struct CachePair {
  typename Reading<K, V>::template Cell<K> key;
  typename Reading<K, V>::template Cell<V> value;
};
using CacheLinks = PolicyLinks<std::uint32_t>;

// Zero: weight 1, no times.
struct CacheExtra {
  std::atomic<Nanos> expires, refresh;
  std::atomic<Nanos> retry;  // before this, somebody else is at refreshing it
  std::uint64_t more_weight;

  Times times() const {
    return {expires.load(std::memory_order_relaxed), refresh.load(std::memory_order_relaxed)};
  }
  void set(Times times) {
    expires.store(times.expires, std::memory_order_relaxed);
    refresh.store(times.refresh, std::memory_order_relaxed);
    retry.store(kNoTime, std::memory_order_relaxed);
  }
};

// What was taken out of the cache. Usually a piece or two, so these need no memory of their own.
template <class K, class V>
class Trash {
 public:
  // So that the next `add` can't throw.
  void reserve() {
    if (kKept && count_ >= few_.size()) more_.reserve(std::bit_ceil(more_.size() + 1));
  }
  void add(std::optional<K> key, V value) {
    if (!kKept) return;
    if (count_ < few_.size()) {
      few_[count_].emplace(std::move(key), std::move(value));
    } else {
      more_.emplace_back(std::move(key), std::move(value));
    }
    ++count_;
  }

 private:
  static constexpr bool kKept = !std::is_trivially_destructible_v<K> || !std::is_trivially_destructible_v<V>;
  using Piece = std::pair<std::optional<K>, V>;
  std::size_t count_ = 0;
  std::array<std::optional<Piece>, 2> few_;
  std::vector<Piece> more_;
};

template <class K, class V>
class alignas(64) Shard {
 public:
  using Id = std::uint32_t;
  using Gate = typename Reading<K, V>::Gate;
  static constexpr bool kReadersCheck = Gate::kReadersCheck;

  // What a reader sees of an entry.
  struct Sight {
    std::optional<V> value;
    Times times;
    std::atomic<std::uint8_t>* mark = nullptr;
    CacheExtra* extra = nullptr;
  };

  Shard() : nodes_{*this}, policy_(nodes_, sketch_) {}
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard() {
    Trash<K, V> trash;
    while (const Id id = policy_.first()) take_out(id, trash);
  }

  // Whether the key is here (dead or alive), and what of it. No lock, but for one time in many.
  WEIR_HOT bool read(std::uint32_t hash, const K& key, Sight& sight) {
    if constexpr (kReadersCheck) {
      const std::uint32_t count = gate_.enter();
      if (Gate::may_read(count)) [[likely]] {
        const bool found = look_up(hash, key, sight);
        if (gate_.still(count)) [[likely]]
          return found;
      }
    } else if (prefetch(hash); gate_.enter()) [[likely]] {
      const Leaving leaving;
      return look_up(hash, key, sight);
    }
    // Another object, so that the usual one may live in registers.
    Sight late;
    const bool found = read_beside_writers(hash, key, late);
    sight = std::move(late);
    return found;
  }

  // Begins to fetch what a call for this key will look at, before it waits for a lock: it asks for memory and
  // believes nothing.
  WEIR_HOT void prefetch(std::uint32_t hash) const {
    const Id id = index_.guess(hash);
    if (id == 0) return;
    const auto place = slab_.at(id);
    if (!place) return;
    __builtin_prefetch(&place.pair());
    __builtin_prefetch(&place.mark());
  }

  // All that follows under `mutex`.

  // Once, before anything else. `growth`: of the tables, when they are full.
  void set_up(std::uint64_t seed, std::size_t growth) {
    policy_.set_seed(seed);
    growth_ = growth;
  }
  // The bound in weight. `most_entries`: that can ever fit; `now_entries`: to make ready for from the start.
  void set_budget(std::uint64_t budget, std::size_t most_entries, std::size_t now_entries) {
    budget_.store(budget, std::memory_order_relaxed);
    most_entries_ = std::clamp<std::size_t>(most_entries, 1, SlotIndex::kMostIds);
    slab_.set_most(most_entries_);
    if (now_entries > policy_entries_) size_policy(now_entries);
    policy_.set_capacity(budget, policy_entries_);
  }

  void set_now(SteadyTime now) { now_ = to_nanos(now); }

  Id find(std::uint32_t hash, const K& key) const {
    return index_.find(hash, [&](Id id) { return slab_.at(id).pair().key.get() == key; });
  }

  bool dead(Id id) const {
    const CacheExtra* extra = slab_.extra(id);
    return extra != nullptr && reached(extra->expires.load(std::memory_order_relaxed), now_);
  }
  std::uint64_t weight(Id id) const {
    const CacheExtra* extra = slab_.extra(id);
    return extra == nullptr ? 1 : extra->more_weight + 1;
  }

  // Makes room for the weight; false when it never fits.
  bool make_room(std::uint64_t weight, Trash<K, V>& trash) {
    if (weight > budget()) return false;
    while (policy_.weight() + weight > budget() || (weight > 0 && policy_.entries() >= most_entries_)) {
      const Id victim = policy_.victim(weight);
      count_out(victim);
      take_out(victim, trash);
    }
    return true;
  }

  // The same for an entry that is here and will have this weight; false when it would have to go itself.
  bool resize(Id id, std::uint64_t weight, Trash<K, V>& trash) {
    if (weight > budget()) return false;
    const std::uint64_t before = this->weight(id);
    while (policy_.weight() - before + weight > budget()) {
      const Id victim = policy_.victim(weight);
      if (victim == id) return false;
      count_out(victim);
      take_out(victim, trash);
    }
    return true;
  }

  // A place for a new entry, and all the memory that `insert` needs. May throw.
  Id prepare(bool ordinary) {
    if (index_.full(policy_.entries())) grow();
    const Id id = slab_.take();
    if (ordinary && slab_.extra(id) == nullptr) return id;
    try {
      slab_.want_extra(id);
    } catch (...) {
      slab_.give_back(id);
      throw;
    }
    return id;
  }
  void abandon(Id id) { slab_.give_back(id); }

  // Room was made.
  void insert(Id id, std::uint32_t hash, K key, V value, std::uint64_t weight, Times times,
              PolicyChoice choice) {
    const auto place = slab_.at(id);
    place.links() = {.hash = hash};
    place.mark().store(0, std::memory_order_relaxed);
    {
      const Writing writing(gate_);
      place.pair().key.construct(std::move(key));
      place.pair().value.construct(std::move(value));
      if (CacheExtra* extra = slab_.extra(id)) {
        extra->set(times);
        extra->more_weight = weight - 1;
      }
      index_.step(hash_of());
      index_.insert(hash, id);
    }
    policy_.choose(choice);
    policy_.add(id);
    publish();
  }

  // A new value in the place of the old one, which counts as a use. False, and nothing is done, when the weight
  // doesn't fit without evicting: then `value` still is the caller's. Without times, those that were go on. May
  // throw.
  bool replace(Id id, V& value, std::uint64_t weight, std::optional<Times> times, Trash<K, V>& trash) {
    const std::uint64_t before = this->weight(id);
    if (policy_.weight() - before + weight > budget()) return false;
    trash.reserve();
    if (weight != 1 || (times && !times->none())) slab_.want_extra(id);
    const auto place = slab_.at(id);
    if (weight != before) policy_.reweigh(id, before, weight);
    {
      const Writing writing(gate_);
      index_.step(hash_of());
      V old = place.pair().value.take();
      place.pair().value.construct(std::move(value));
      if (CacheExtra* extra = slab_.extra(id)) {
        if (times) extra->set(*times);
        extra->more_weight = weight - 1;
      }
      trash.add(std::nullopt, std::move(old));
    }
    raise_mark(place.mark());
    publish();
    return true;
  }

  void take_out(Id id, Trash<K, V>& trash) {
    trash.reserve();
    auto& pair = slab_.at(id).pair();
    policy_.remove(id);
    {
      const Writing writing(gate_);
      index_.erase(slab_.at(id).links().hash, id, hash_of());
      K key = pair.key.take();
      V value = pair.value.take();
      trash.add(std::move(key), std::move(value));
    }
    slab_.give_back(id);
    publish();
  }
  // Counts it as expired or evicted, before it is taken out.
  void count_out(Id id) { ++(dead(id) ? stats.expirations : stats.evictions); }

  // Looks at the next `most` places for dead entries.
  void sweep(int most, Trash<K, V>& trash) {
    for (; most > 0 && slab_.last() != 0; --most) {
      sweeper_ = sweeper_ >= slab_.last() ? 1 : sweeper_ + 1;
      if (slab_.at(sweeper_).links().queue == Queue::none || !dead(sweeper_)) continue;
      count_out(sweeper_);
      take_out(sweeper_, trash);
    }
  }

  // Raises the mark if it can be; whether it could.
  static bool raise_mark(std::atomic<std::uint8_t>& marks) {
    const std::uint8_t mark = marks.load(std::memory_order_relaxed);
    if (mark >= Policy::kMostMarks) return false;
    marks.store(mark + 1, std::memory_order_relaxed);
    return true;
  }

  const CachePair<K, V>& pair(Id id) const { return slab_.at(id).pair(); }
  CacheExtra* extra(Id id) { return slab_.extra(id); }
  Id first() const { return policy_.first(); }
  Id next(Id id) const { return policy_.next(id); }
  std::uint64_t budget() const { return budget_.load(std::memory_order_relaxed); }
  // Without the mutex, too.
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  // About how many entries fill the budget.
  std::size_t entries_when_full() const {
    const std::uint64_t used = this->used();
    const std::size_t size = this->size();
    if (used == 0 || used == size) return budget();
    return static_cast<std::size_t>(static_cast<double>(budget()) * static_cast<double>(size) /
                                    static_cast<double>(used));
  }

  // What readers look at has a cache line to itself.
 private:
  Gate gate_;
  SlotIndex index_;
  Slab<CachePair<K, V>, CacheLinks, CacheExtra> slab_;

 public:
  alignas(64) std::mutex mutex;
  LocalCacheStats stats;  // of writers

 private:
  static constexpr int kTries = 64;  // reads beside a writer before the reader queues for the mutex

  struct Nodes {
    using Id = std::uint32_t;
    Shard& shard;
    CacheLinks& links(Id id) const { return shard.slab_.at(id).links(); }
    std::uint64_t weight(Id id) const { return shard.weight(id); }
    unsigned mark(Id id) const { return shard.slab_.at(id).mark().load(std::memory_order_relaxed); }
    void set_mark(Id id, unsigned mark) const {
      shard.slab_.at(id).mark().store(static_cast<std::uint8_t>(mark), std::memory_order_relaxed);
    }
    bool dead(Id id) const { return shard.dead(id); }
  };
  using Policy = ClockPolicy<Nodes, FrequencySketch>;

  struct Leaving {
    ~Leaving() { ReaderGate::leave(); }
  };
  struct Writing {
    explicit Writing(Gate& gate) : gate_(gate) { gate_.begin_write(); }
    ~Writing() { gate_.end_write(); }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    Gate& gate_;
  };

  auto hash_of() const {
    return [this](Id id) { return slab_.at(id).links().hash; };
  }

  // When the first attempt met a writer.
  [[gnu::noinline]] bool read_beside_writers(std::uint32_t hash, const K& key, Sight& sight) {
    if constexpr (kReadersCheck) {
      for (int tries = 0; tries < kTries; ++tries) {
        const std::uint32_t count = gate_.enter();
        if (!Gate::may_read(count)) continue;
        const bool found = look_up(hash, key, sight);
        if (gate_.still(count)) return found;
      }
    }
    const std::lock_guard lock(mutex);
    return look_up(hash, key, sight);
  }

  WEIR_HOT bool look_up(std::uint32_t hash, const K& key, Sight& sight) const {
    const CachePair<K, V>* pair = nullptr;
    const Id id = index_.find(hash, [&](Id candidate) WEIR_HOT_LAMBDA {
      const auto place = slab_.at(candidate);
      if (kReadersCheck && !place) return false;
      pair = &place.pair();
      sight.mark = &place.mark();
      if constexpr (kReadersCheck) {
        return pair->key.copy() == key;
      } else {
        return pair->key.get() == key;
      }
    });
    if (id == 0) return false;
    sight.value.emplace(pair->value.copy());
    sight.extra = slab_.extra(id);
    sight.times = sight.extra == nullptr ? Times{} : sight.extra->times();
    return true;
  }

  void grow() {
    const std::size_t entries = index_.next_entries(most_entries_, growth_);
    auto table = SlotIndex::table_for(entries);
    index_.reserve();
    if (entries > policy_entries_) size_policy(entries);
    const Writing writing(gate_);
    index_.grow(std::move(table), hash_of());
  }
  void size_policy(std::size_t entries) {
    sketch_.resize(entries);
    policy_.set_capacity(budget(), entries);
    policy_entries_ = entries;
  }
  void publish() {
    used_.store(policy_.weight(), std::memory_order_relaxed);
    size_.store(policy_.entries(), std::memory_order_relaxed);
  }

  Nodes nodes_;
  FrequencySketch sketch_;
  Policy policy_;
  std::size_t policy_entries_ = 0, growth_ = 2;
  std::size_t most_entries_ = 1;
  Id sweeper_ = 0;
  Nanos now_ = kNoTime + 1;
  std::atomic<std::uint64_t> budget_{0}, used_{0};
  std::atomic<std::size_t> size_{0};
};

}  // namespace weir::cache::detail

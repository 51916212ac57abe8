// One shard of a LocalCache: its entries, their index, and the policy that chooses who goes. Writers hold
// `mutex`; look-ups need no lock. What a call took out (`Trash`) is destroyed after the mutex is let go.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "weir/base/clock.h"
#include "weir/cache/brief_mutex.h"
#include "weir/cache/cache_trash.h"
#include "weir/cache/clock_policy.h"
#include "weir/cache/frequency_sketch.h"
#include "weir/cache/hot_path.h"
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
  Nanos idle = kNoTime;
  bool none() const { return expires == kNoTime && refresh == kNoTime && idle == kNoTime; }
  bool over(Nanos now) const { return reached(expires, now) || reached(idle, now); }
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
  std::atomic<Nanos> idle;   // when it ends if nobody asks for it
  std::atomic<Nanos> retry;  // before this, somebody else is at refreshing it
  std::uint64_t more_weight;

  Times times() const {
    return {expires.load(std::memory_order_relaxed), refresh.load(std::memory_order_relaxed),
            idle.load(std::memory_order_relaxed)};
  }
  void set(Times times) {
    expires.store(times.expires, std::memory_order_relaxed);
    refresh.store(times.refresh, std::memory_order_relaxed);
    idle.store(times.idle, std::memory_order_relaxed);
    retry.store(kNoTime, std::memory_order_relaxed);
  }
};

// An entry changes its place under a lock, in steps of which none may fail.
template <class K, class V>
class alignas(64) Shard {
  static_assert(std::is_nothrow_move_constructible_v<K> && std::is_nothrow_move_constructible_v<V>,
                "keys and values of a cache must move without an exception");
  static_assert(alignof(CachePair<K, V>) <= 64, "the cache's memory is aligned to lines of 64 bytes");

 public:
  using Id = std::uint32_t;
  using Gate = typename Reading<K, V>::Gate;
  using Mark = std::atomic<std::uint8_t>;
  using Slots = Slab<CachePair<K, V>, CacheLinks, CacheExtra>;
  using Place = typename Slots::Place;
  static constexpr bool kReadersCheck = Gate::kReadersCheck;
  static constexpr std::uint8_t kMostMarks = 3;  // the policy's

  Shard() : nodes_{*this}, policy_(nodes_, sketch_) {}
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard() {
    while (const Id id = policy_.first()) {
      Trash<K, V> trash;  // one at a time: going takes no memory
      take_out(id, Removal::erased, trash);
    }
  }

  // What a reader of a SeqGate copies of an entry; to be believed only if the gate was `still`.
  struct Glimpse {
    std::optional<V> value;
    CacheExtra* extra = nullptr;
    Times times;
    Mark* mark = nullptr;
  };
  // Whether the key is here (dead or alive), and what of it. No lock, but for one time in many.
  WEIR_HOT bool glimpse(std::uint32_t hash, const K& key, Glimpse& seen)
    requires kReadersCheck
  {
    const std::uint32_t count = gate_.enter();
    if (Gate::may_read(count)) [[likely]] {
      const bool found = look_up(hash, key, seen);
      if (gate_.still(count)) [[likely]]
        return found;
    }
    // Another object, so that the usual one may live in registers.
    Glimpse late;
    const bool found = glimpse_beside_writers(hash, key, late);
    seen = late;
    return found;
  }

  // The path of a hit in its parts: where a key is that is easily found.
  WEIR_HOT bool is_at_home(std::uint32_t hash, const K& key, Place& place) const {
    return index_.is_at_home(hash, [&](Id id) WEIR_HOT_LAMBDA {
      place = slab_.at(id);
      if constexpr (kReadersCheck) {
        return place.pair().key.copy() == key;
      } else {
        return place.pair().key.get() == key;
      }
    });
  }
  // And its value, if the answer is true. `untimed()` tells whether no entry has times, asked while nobody
  // writes.
  template <class Untimed>
  WEIR_HOT bool copy_at_home(std::uint32_t hash, const K& key, Place& place, std::optional<V>& value,
                             Untimed untimed) const
    requires kReadersCheck
  {
    const std::uint32_t count = gate_.enter();
    if (!Gate::may_read(count) || !untimed() || !is_at_home(hash, key, place)) [[unlikely]]
      return false;
    value = place.pair().value.copy();
    return gate_.still(count);
  }

  // For readers of a ReaderGate: while it lasts, if it is true, nobody writes. Not to be nested.
  class Reader {
   public:
    WEIR_HOT Reader(Shard& shard, unsigned slot) : slot_(slot), reads_(shard.gate_.enter(slot)) {}
    WEIR_HOT ~Reader() {
      if (reads_) Gate::leave(slot_);
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    explicit operator bool() const { return reads_; }

   private:
    const unsigned slot_;
    const bool reads_;
  };

  // Begins to fetch what a call for this key will look at, before it waits for a lock: it asks for memory and
  // believes nothing.
  WEIR_HOT void prefetch(std::uint32_t hash) const {
    const Id id = index_.guess(hash);
    if (id == 0) return;
    __builtin_prefetch(&slab_.pair(id));
    __builtin_prefetch(&slab_.mark(id));
  }

  // All that follows under `mutex`, or `find`, `value`, `extra` and `mark` while a Reader lasts.

  // Once, before anything else. `growth`: of the tables, when they are full.
  void set_up(std::uint64_t seed, std::size_t growth) {
    policy_.set_seed(seed);
    growth_ = growth;
  }
  // Room for so many entries; may throw, and then nothing has changed.
  void make_ready(std::size_t entries) { slab_.set_most(possible(entries)); }
  // The bound in weight. `most_entries`: that can ever fit; `now_entries`: to make ready for from the start.
  void set_budget(std::uint64_t budget, std::size_t most_entries, std::size_t now_entries) {
    make_ready(most_entries);
    if (now_entries > policy_entries_) size_policy(now_entries);
    policy_.set_capacity(budget, policy_entries_);
    most_entries_ = possible(most_entries);
    budget_.store(budget, std::memory_order_relaxed);
  }

  void set_now(SteadyTime now) { now_ = to_nanos(now); }

  WEIR_HOT Id find(std::uint32_t hash, const K& key) const {
    return index_.find(hash, [&](Id id) WEIR_HOT_LAMBDA { return slab_.pair(id).key.get() == key; });
  }

  bool dead(Id id) const {
    const CacheExtra* extra = slab_.extra(id);
    return extra != nullptr && extra->times().over(now_);
  }
  std::uint64_t weight(Id id) const {
    const CacheExtra* extra = slab_.extra(id);
    return extra == nullptr ? 1 : extra->more_weight + 1;
  }

  // Whether there is room for the weight, once `less` has gone. No sum, which might overflow.
  bool fits(std::uint64_t weight, std::uint64_t less = 0) const {
    const std::uint64_t used = policy_.weight() - less, budget = this->budget();
    return used <= budget && weight <= budget - used;
  }

  // Makes room for the weight; false when it never fits.
  bool make_room(std::uint64_t weight, Trash<K, V>& trash) {
    if (weight > budget()) return false;
    while (!fits(weight) || (weight > 0 && policy_.entries() >= most_entries_)) {
      evict(policy_.victim(weight), trash);
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

  // Room was made.
  void insert(Id id, std::uint32_t hash, K key, V value, std::uint64_t weight, Times times,
              PolicyChoice choice) {
    slab_.links(id) = {.hash = hash};
    slab_.mark(id).store(0, std::memory_order_relaxed);
    auto& pair = slab_.pair(id);
    {
      const Writing writing(gate_);
      pair.key.construct(std::move(key));
      pair.value.construct(std::move(value));
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

  // The path of a write that finds its key, in a shard whose entries are all ordinary: as `replace`, but the old
  // value is swapped out. False, and nothing is done, for everything else.
  WEIR_HOT bool replace_quickly(std::uint32_t hash, const K& key, V& value) {
    Place place;
    if (!slab_.all_ordinary() || index_.growing() || !is_at_home(hash, key, place)) [[unlikely]]
      return false;
    {
      const Writing writing(gate_);
      place.pair().value.swap(value);
    }
    raise_mark(place.mark());
    ++stats.puts;
    return true;
  }

  // A new value in the place of the old one, which counts as a use. False, and nothing is done, when the weight
  // doesn't fit without evicting: then `value` still is the caller's. May throw.
  bool replace(Id id, V& value, std::uint64_t weight, Times times, Trash<K, V>& trash) {
    const std::uint64_t before = this->weight(id);
    if (!fits(weight, before)) return false;
    auto& pair = slab_.pair(id);
    std::optional<K> key = trash.prepare(pair.key);
    if (weight != 1 || !times.none()) slab_.want_extra(id);
    if (weight != before) policy_.reweigh(id, before, weight);
    {
      const Writing writing(gate_);
      index_.step(hash_of());
      V old = pair.value.take();
      pair.value.construct(std::move(value));
      if (CacheExtra* extra = slab_.extra(id)) {
        extra->set(times);
        extra->more_weight = weight - 1;
      }
      trash.add(std::move(key), std::move(old), Removal::replaced);
    }
    raise_mark(slab_.mark(id));
    if (weight != before) publish();
    return true;
  }

  void take_out(Id id, Removal why, Trash<K, V>& trash) {
    trash.reserve();
    auto& pair = slab_.pair(id);
    policy_.remove(id);
    {
      const Writing writing(gate_);
      index_.step(hash_of());
      index_.erase(slab_.links(id).hash, id);
      K key = pair.key.take();
      V value = pair.value.take();
      trash.add(std::move(key), std::move(value), why);
    }
    slab_.give_back(id);
    publish();
  }
  // Takes out, and counts, what is dead or has to go for room.
  void evict(Id id, Trash<K, V>& trash) {
    const bool expired = dead(id);
    ++(expired ? stats.expirations : stats.evictions);
    take_out(id, expired ? Removal::expired : Removal::evicted, trash);
  }

  // Looks at the next `most` places for dead entries.
  void sweep(int most, Trash<K, V>& trash) {
    for (; most > 0 && slab_.taken() != 0; --most) {
      sweeper_ = sweeper_ >= slab_.taken() ? 1 : sweeper_ + 1;
      const Id id = slab_.nth(sweeper_);
      if (slab_.links(id).queue != Queue::none && dead(id)) evict(id, trash);
    }
  }

  // Raises the mark if it can be; whether it could.
  WEIR_HOT static bool raise_mark(Mark& marks) {
    const std::uint8_t mark = marks.load(std::memory_order_relaxed);
    if (mark >= kMostMarks) return false;
    marks.store(mark + 1, std::memory_order_relaxed);
    return true;
  }

  // References to what lies in the entry, or copies of plain values.
  decltype(auto) key(Id id) const { return slab_.pair(id).key.get(); }
  decltype(auto) value(Id id) const { return slab_.pair(id).value.get(); }
  CacheExtra* extra(Id id) const { return slab_.extra(id); }
  Mark& mark(Id id) const { return slab_.mark(id); }
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

  // What readers look at shares a cache line with the lock, which writers take before they change that.
  mutable BriefMutex mutex;

 private:
  Gate gate_;
  SlotIndex index_;
  Slots slab_;

 public:
  alignas(64) LocalCacheStats stats;  // of writers

 private:
  static constexpr int kTries = 64;  // reads beside a writer before the reader waits for the mutex

  struct Nodes {
    using Id = std::uint32_t;
    Shard& shard;
    CacheLinks& links(Id id) const { return shard.slab_.links(id); }
    std::uint64_t weight(Id id) const { return shard.weight(id); }
    unsigned mark(Id id) const { return shard.slab_.mark(id).load(std::memory_order_relaxed); }
    void set_mark(Id id, unsigned mark) const {
      shard.slab_.mark(id).store(static_cast<std::uint8_t>(mark), std::memory_order_relaxed);
    }
    bool dead(Id id) const { return shard.dead(id); }
  };
  using Policy = ClockPolicy<Nodes, FrequencySketch>;
  static_assert(kMostMarks == Policy::kMostMarks);

  struct Writing {
    explicit Writing(Gate& gate) : gate_(gate) { gate_.begin_write(); }
    ~Writing() { gate_.end_write(); }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    Gate& gate_;
  };

  static std::size_t possible(std::size_t entries) {
    return std::clamp<std::size_t>(entries, 1, Slots::kMostEntries - 1);
  }
  auto hash_of() const {
    return [this](Id id) { return slab_.links(id).hash; };
  }

  // When the first attempt met a writer.
  WEIR_COLD bool glimpse_beside_writers(std::uint32_t hash, const K& key, Glimpse& seen) {
    for (int tries = 0; tries < kTries; ++tries) {
      const std::uint32_t count = gate_.enter();
      if (!Gate::may_read(count)) continue;
      const bool found = look_up(hash, key, seen);
      if (gate_.still(count)) return found;
    }
    const std::lock_guard lock(mutex);
    return look_up(hash, key, seen);
  }

  WEIR_HOT bool look_up(std::uint32_t hash, const K& key, Glimpse& seen) const {
    const Id id = index_.find(
        hash, [&](Id candidate) WEIR_HOT_LAMBDA { return slab_.pair(candidate).key.copy() == key; });
    if (id == 0) return false;
    seen.value.emplace(slab_.pair(id).value.copy());
    seen.mark = &slab_.mark(id);
    seen.extra = slab_.extra(id);
    if (seen.extra != nullptr) [[unlikely]]
      seen.times = seen.extra->times();
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
  std::uint32_t sweeper_ = 0;
  Nanos now_ = kNoTime + 1;
  std::atomic<std::uint64_t> budget_{0}, used_{0};
  std::atomic<std::size_t> size_{0};
};

}  // namespace weir::cache::detail

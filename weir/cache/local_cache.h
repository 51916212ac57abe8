// LocalCache: a map in memory that is bounded by weight and forgets what is least worth keeping.
//
// Promises:
//  - Hard bound: the weights of all entries never sum to more than the capacity, at no step: room is made
//    before an entry comes in, not after. (A lower capacity holds when set_capacity has returned.)
//  - An entry is never seen past its TTL. A TTL of zero or less stores nothing: it never means "forever".
//  - A look-up moves nothing, allocates nothing and takes no lock that readers share, as long as there are at most
//    64 threads at it; those above take the lock of a shard. Small plain values are read by a seqlock and write
//    nothing that is shared once an entry is known as popular; others cost one store in the thread's own cache
//    line. A look-up that meets a writer at its shard waits for that write.
//  - What stays is chosen by how often and how lately keys are asked for; how much each counts is tuned to
//    the keys by shadow caches (clock_policy.h, policy_tuner.h). `weir cache replay` shows it on your keys.
//  - Every call does bounded work, but those that say otherwise; there is no background thread. Tables grow a
//    few places at a time. Dead entries are swept a few at a time by those who put into their shard.
//  - Hashing is seeded, and a frequent key gets in whatever collides with it: chosen keys do no harm.
//
//     LocalCache<Id, Article> articles({.capacity = 64 << 20});         // shared values; 64 MiB in all
//     articles.put(7, std::make_shared<const Article>(text), bytes, 10min);
//     if (auto article = articles.find(7)) ...
//
//     FlatCache<std::uint64_t, Point> points({.capacity = 10'000, .bound = Bound::weights});  // values in place
//     points.put(7, {1, 2});
//     if (auto point = points.find(7)) ...
//
// Everything is thread-safe. Keys and values are destroyed outside of the locks; a key's == and a value's
// copy constructor run inside and must not call a cache. Plain C++20, without Boost.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/cache/hot_path.h"
#include "weir/cache/key_hash.h"
#include "weir/cache/local_cache_shard.h"
#include "weir/cache/local_cache_types.h"
#include "weir/cache/policy_tuner.h"
#include "weir/cache/ttl.h"

namespace weir::cache {

namespace detail {
unsigned shards_for(const LocalCacheOptions& options);  // a power of two
std::uint64_t seed_for(const LocalCacheOptions& options);
}  // namespace detail

// `Stored` is kept in the entry. See LocalCache and FlatCache below.
template <class K, class Stored, class Hash = KeyHash<K>>
class BasicLocalCache {
  static constexpr bool kShared = detail::kIsShared<Stored>;

 public:
  using Value = Stored;
  using Hit = BasicHit<Stored>;
  // What `find` answers: the shared value or null; of values in place, the value or nothing.
  using Found = decltype(Hit::value);

  // What the cache spends on an entry beside the value, in a cache bounded by bytes: the entry with its key,
  // links, times and weight, an eighth more for what is spare; its part of index, sketch and ghost; and the
  // control block of a shared value.
  static constexpr std::size_t kEntryOverhead =
      (sizeof(detail::CachePair<K, Stored>) + sizeof(detail::CacheLinks) + sizeof(detail::CacheExtra) + 8) /
          8 * 9 +
      48 + (kShared ? 32 : 0);

  using Hooks = LocalCacheHooks<K, Stored>;

  // Throws std::invalid_argument for an idle time of zero or less.
  explicit BasicLocalCache(LocalCacheOptions options = {}, Hooks hooks = {});
  BasicLocalCache(const BasicLocalCache&) = delete;
  BasicLocalCache& operator=(const BasicLocalCache&) = delete;

  // The value, or null or nothing when it isn't here (or is known to be absent). Counts a hit or a miss.
  Found find(const K& key);

  // The same with everything that is known about it. Past the entry's time to refresh exactly one caller gets
  // `refresh`; the next gets it when the entry is still the same `retry` later.
  Hit look(const K& key, Duration retry = std::chrono::seconds(1));

  // Whether it is here, and its value, without counting and without keeping it any longer.
  Hit peek(const K& key) const;

  // Its weight and times, with as little trace as `peek`; nothing when it isn't here.
  std::optional<EntryInfo> inspect(const K& key) const;

  // `find` for many, in the keys' order.
  std::vector<Found> find_all(std::span<const K> keys);

  // The same, and what isn't here comes from one call of load(std::span<const K>) -> a range of pairs of key
  // and Stored, and is put for `keep`. What it leaves out stays unknown. A write while it loads may be
  // overwritten by what was read before it: where that matters, ReadThrough has leases.
  template <class Load>
  std::vector<Found> load_all(std::span<const K> keys, Load load, Keep keep = {});

  // Stores the value. `weight`: with Bound::bytes, the bytes of the value, its sizeof included; the cache adds
  // its own overhead and what a string as key owns. Without `weight`: what the weigher says (see LocalCacheHooks;
  // a type that owns memory needs one). What was there before is replaced; when the entry can't be kept (heavier
  // than the capacity, ttl <= 0), it is erased and the answer is false. Besides what it evicts, O(1).
  template <std::integral Weight>
  bool put(const K& key, Stored value, Weight weight, Duration ttl = kNever,
           Duration refresh_after = kNever) {
    return put_weighed(key, std::move(value), static_cast<std::size_t>(weight), {ttl, refresh_after});
  }
  bool put(const K& key, Stored value, Keep keep = {}) {
    const std::size_t weight = given_weight(key, value);
    return put_weighed(key, std::move(value), weight, keep);
  }

  // Atomically replaces a value that is here: change(const V&) answers the new one, or null (for values in
  // place, std::nullopt) to keep the current one; then weigh(const V&) its weight. Both run under the shard's
  // lock: no calls into the cache, nothing slow. The TTL goes on as it was. What was put as null is not
  // "here". Seldom, when room has to come from other shards first, `change` is called a second time. False when
  // nothing was replaced; an entry that outgrew the capacity is dropped.
  template <class Change, class Weigh>
  bool update(const K& key, Change change, Weigh weigh);

  // What `compute` puts; without `weight` as `put`.
  struct Computed {
    Stored value;
    Keep keep{};
    std::optional<std::size_t> weight{};
  };
  // Atomically makes the entry what make(const Stored* current) -> std::optional<Computed> answers; nothing
  // erases it; `current` is null when it isn't here or was put as null. The TTL is the new one's. Runs under the
  // shard's lock: no calls into the cache, nothing slow. Seldom, when room has to come from other shards first, it
  // is called a second time and its first answer is dropped. True when the key is here afterwards.
  template <class Make>
  bool compute(const K& key, Make make);

  // True when it was here.
  bool erase(const K& key);

  // Erases what drop(const K&, const Stored&) approves of, and tells how many; O(entries), one shard locked at
  // a time. `drop` runs under the lock.
  template <class Drop>
  std::size_t erase_if(Drop drop);
  void clear() {
    erase_if([](const K&, const Stored&) { return true; });
  }

  // visit(const K&, const Stored&, const EntryInfo&) for each entry that is alive, about from the one that would
  // go first to the one that would go last. O(entries), one shard locked at a time: each shard as it is at one
  // moment. `visit` runs under the lock: no calls into the cache.
  template <class Visit>
  void for_each(Visit visit) const;

  // The same of one shard: 0 .. shards() - 1.
  template <class Visit>
  void for_each_in(unsigned shard, Visit visit) const;
  unsigned shards() const { return shard_count(); }

  // Another bound from now on; when it is lower, what is over goes before the call ends. O(what goes). The
  // number of shards stays: give `shards` to a small cache that is to become large.
  void set_capacity(std::size_t capacity);

  // Entries, dead ones that weren't swept yet included; O(shards).
  std::size_t size() const;
  // Their weight; never more than the capacity. O(shards).
  std::size_t weight() const;
  std::size_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  LocalCacheStats stats() const;

 private:
  using Shard = detail::Shard<K, Stored>;
  using Trash = detail::Trash<K, Stored>;
  using Extra = detail::CacheExtra;
  using Times = detail::Times;
  using Lock = std::unique_lock<detail::BriefMutex>;
  using Id = typename Shard::Id;
  using Mark = typename Shard::Mark;
  enum Count : std::size_t { kHit, kNegativeHit, kStaleHit, kMiss };
  static constexpr int kSweepPerPut = 2;  // more than come in, so that the dead can't pile up

  // What an entry's times say at a look.
  struct Verdict {
    bool over = false, stale = false, refresh = false;
  };

  std::uint64_t hash_of(const K& key) const { return Hash{}(key, seed_); }
  // The index uses the lower half, the tuner's samples the middle.
  Shard& shard_of(std::uint64_t hash) const { return shards_[(hash >> 56) & shard_mask_]; }
  unsigned shard_count() const { return shard_mask_ + 1; }
  static std::uint32_t low(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }

  std::size_t given_weight(const K& key, const Stored& value) const {
    if (is_null(value)) return 1;
    if (hooks_.weigher) return hooks_.weigher(key, value);
    return bound_ == Bound::bytes ? own_bytes(target(value)) : 1;
  }
  std::uint64_t whole_weight(const K& key, std::size_t weight) const;
  std::size_t given_of(const K& key, std::uint64_t whole) const;  // the weight as it was given
  std::size_t most_entries(std::uint64_t weight) const {
    return weight / (bound_ == Bound::bytes ? kEntryOverhead : 1);
  }
  static bool is_null(const Stored& value) {
    if constexpr (kShared) return value == nullptr;
    return false;
  }
  static const auto& target(const Stored& value) {
    if constexpr (kShared)
      return *value;
    else
      return value;
  }

  // Reads.
  Found find_anew(const K& key);
  bool quick_hit(unsigned slot, Mark& mark, std::uint64_t hash);
  Hit look_locked(Shard& shard, std::uint64_t hash, const K& key, Duration retry);
  Hit hit_at(Shard& shard, Id id, std::uint64_t hash, Duration retry, bool& over);
  Verdict judge(Extra& extra, Times times, Duration retry) const;
  void touch(Shard& shard, Mark& mark, std::uint64_t hash);
  void bury(Shard& shard, std::uint64_t hash, const K& key);
  void feed(std::uint64_t hash, const Shard& shard, bool may_build);

  static Times times_at(const Shard& shard, Id id) {
    const Extra* const extra = shard.extra(id);
    return extra == nullptr ? Times{} : extra->times();
  }
  EntryInfo info_of(const Shard& shard, Id id, const K& key, const Times& times, detail::Nanos now) const;

  // Writes.
  // What a rewrite makes of an entry: nothing, and it goes; or a value, which goes too where it can't be kept.
  struct Rewritten {
    std::optional<Stored> value;
    std::uint64_t need = 0;
    Times times{};
    bool lasts = true;  // its TTL is more than zero
  };
  // Reading the clock is half the price of a look-up, and for nothing while no entry has a time.
  SteadyTime now_if_timed() const {
    return timed_.load(std::memory_order_relaxed) ? clock_.steady_now() : SteadyTime();
  }
  Times times_of(SteadyTime now, Keep keep) const {
    return {detail::after(now, keep.ttl), detail::after(now, keep.refresh_after), detail::after(now, idle_)};
  }
  void note_times(Keep keep);
  bool put_weighed(const K& key, Stored value, std::size_t weight, Keep keep);
  bool replace_quickly(Shard& shard, std::uint64_t hash, const K& key, Stored& value);
  bool put_anew(Shard& shard, std::uint64_t hash, const K& key, Stored&& value, std::uint64_t need,
                Keep keep);
  template <class Make>
  bool rewrite(const K& key, Make make);
  bool put_locked(Shard& shard, std::uint64_t hash, K&& key, Stored&& value, std::uint64_t need, Times times,
                  Trash& trash);
  bool drop_locked(Shard& shard, Id id, Trash& trash);
  Id find_alive(Shard& shard, std::uint64_t hash, const K& key, Trash& trash);
  Lock lock_with_room(Shard& shard, std::uint64_t weight, SteadyTime now, Trash& trash);
  void borrow(Shard& to, std::uint64_t weight, SteadyTime now, Trash& trash);
  std::size_t ready_for(std::uint64_t budget) const;
  std::uint64_t share() const { return share_.load(std::memory_order_relaxed); }

  // What readers use comes first.
  const std::uint64_t seed_;
  const unsigned shard_mask_;
  const Bound bound_;
  const std::unique_ptr<Shard[]> shards_;
  detail::ReadCounters counters_;
  detail::PolicyTuner tuner_;
  const Clock& clock_;
  const Duration idle_;
  const Hooks hooks_;
  const bool watched_;  // there is a removal listener
  std::atomic<std::size_t> capacity_;
  std::atomic<std::uint64_t> share_;  // of the capacity, a shard's
  std::atomic<bool> timed_;           // an entry had a TTL or a time to refresh
  // Budgets move between shards under it. Taken before a shard's mutex.
  mutable std::mutex budgets_;
};

// Values are shared, never copied; a value lives as long as somebody holds it, whatever the cache forgets. A
// null value is one that is known to be absent.
template <class K, class V, class Hash = KeyHash<K>>
using LocalCache = BasicLocalCache<K, std::shared_ptr<const V>, Hash>;

// Values lie in the entries and are copied out; for small ones. Trivially copyable values of up to 64 bytes
// under integers (see kComparesBytesOnly) are read without writing anything.
template <class K, class V, class Hash = KeyHash<K>>
using FlatCache = BasicLocalCache<K, V, Hash>;

}  // namespace weir::cache

#include "weir/cache/local_cache_reads.h"   // IWYU pragma: export
#include "weir/cache/local_cache_writes.h"  // IWYU pragma: export

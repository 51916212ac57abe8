// LocalCache: a map in memory that is bounded by weight and forgets what is least worth keeping.
//
// Promises:
//  - Hard bound: the weights of all entries never sum to more than the capacity, at no step: room is made
//    before an entry comes in, not after.
//  - An entry is never seen past its TTL. A TTL of zero or less stores nothing: it never means "forever".
//  - A look-up moves nothing, allocates nothing and takes no lock that readers share. Small plain values are
//    read by a seqlock and write nothing at all once an entry is known as popular; others cost one store in
//    the thread's own cache line.
//  - What stays is chosen by how often and how lately keys are asked for; how much each counts is tuned to
//    the keys by shadow caches (clock_policy.h, policy_tuner.h). `weir cache replay` shows it on your keys.
//  - Every call does bounded work, but those that say otherwise; there is no background thread. Tables grow a
//    few places at a time. Dead entries are swept a few at a time by those who put.
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
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "weir/base/clock.h"
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

  explicit BasicLocalCache(LocalCacheOptions options = {});
  BasicLocalCache(const BasicLocalCache&) = delete;
  BasicLocalCache& operator=(const BasicLocalCache&) = delete;

  // The value, or null or nothing when it isn't here (or is known to be absent). Counts a hit or a miss.
  Found find(const K& key) {
    return access(key, [](const Sight&, detail::Nanos, SteadyTime) { return false; }).value;
  }

  // The same with everything that is known about it. Past the entry's time to refresh exactly one caller gets
  // `refresh`; the next gets it when the entry is still the same `retry` later.
  Hit look(const K& key, Duration retry = std::chrono::seconds(1));

  // Whether it is here, and its value, without counting and without keeping it any longer.
  Hit peek(const K& key) const;

  // Stores the value for `ttl`; `refresh_after`: when `look` begins to ask for a refresh. `weight`: with
  // Bound::bytes, the bytes of the value, its sizeof included; the cache adds its own overhead and what a
  // string as key owns. What was there before is replaced; when the entry can't be kept (heavier than the
  // capacity, ttl <= 0), it is erased and the answer is false. Besides what it evicts, O(1).
  bool put(const K& key, Stored value, std::size_t weight = 1, Duration ttl = kNever,
           Duration refresh_after = kNever);

  // Atomically replaces a value that is here: change(const V&) answers the new one, or null (for values in
  // place, std::nullopt) to keep the current one; then weigh(const V&) its weight. Both run under the shard's
  // lock: no calls into the cache, nothing slow. The TTL goes on as it was. What was put as null is not
  // "here". False when nothing was replaced; an entry that outgrew the capacity is dropped.
  template <class Change, class Weigh>
  bool update(const K& key, Change change, Weigh weigh);

  // True when it was here.
  bool erase(const K& key);

  // Erases what drop(const K&, const Value&) approves of, and tells how many; O(entries), one shard locked at
  // a time. `drop` runs under the lock.
  template <class Drop>
  std::size_t erase_if(Drop drop);
  void clear() {
    erase_if([](const K&, const Stored&) { return true; });
  }

  // Entries, dead ones that weren't swept yet included; O(shards).
  std::size_t size() const;
  // Their weight; never more than the capacity. O(shards).
  std::size_t weight() const;
  std::size_t capacity() const { return capacity_; }
  LocalCacheStats stats() const;

 private:
  using Shard = detail::Shard<K, Stored>;
  using Trash = detail::Trash<K, Stored>;
  using Id = typename Shard::Id;
  using Sight = typename Shard::Sight;
  enum Count : std::size_t { kHit, kNegativeHit, kStaleHit, kMiss };
  static constexpr int kSweepPerPut = 2;  // more than come in, so that the dead can't pile up

  std::uint64_t hash_of(const K& key) const { return Hash{}(key, seed_); }
  // The index uses the lower half, the tuner's samples the middle.
  Shard& shard_of(std::uint64_t hash) const { return shards_[(hash >> 56) & (shard_count_ - 1)]; }
  static std::uint32_t low(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }

  std::uint64_t whole_weight(const K& key, std::size_t weight) const;
  std::size_t most_entries(std::uint64_t weight) const {
    return weight / (bound_ == Bound::bytes ? kEntryOverhead : 1);
  }
  static bool is_null(const Stored& value) {
    if constexpr (kShared) return value == nullptr;
    return false;
  }
  static Found found(Sight& sight) {
    if constexpr (kShared)
      return std::move(*sight.value);
    else
      return std::move(sight.value);
  }
  static const auto& target(const Stored& value) {
    if constexpr (kShared)
      return *value;
    else
      return value;
  }
  // A look-up that counts; of a stale entry, claim(sight, now, now) tells whether this caller refreshes it.
  template <class Claim>
  Hit access(const K& key, Claim claim);
  // Reading the clock is half the price of a look-up, and for nothing while no entry has a time.
  SteadyTime now_if_timed() const {
    return timed_.load(std::memory_order_relaxed) ? clock_.steady_now() : SteadyTime();
  }
  void feed(std::uint64_t hash, const Shard& shard);
  void bury(Shard& shard, std::uint64_t hash, const K& key);
  Id find_alive(Shard& shard, std::uint64_t hash, const K& key, Trash& trash);
  std::unique_lock<std::mutex> lock_with_room(Shard& shard, std::uint64_t weight, SteadyTime now);
  void borrow(Shard& to, std::uint64_t weight, SteadyTime now);

  const std::size_t capacity_;
  const Bound bound_;
  const Clock& clock_;
  const std::uint64_t seed_;
  const unsigned shard_count_;
  const std::uint64_t share_;  // of the capacity, a shard's
  const std::unique_ptr<Shard[]> shards_;
  detail::ReadCounters counters_;
  detail::PolicyTuner tuner_;
  std::atomic<bool> timed_{false};  // an entry had a TTL or a time to refresh
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

template <class K, class Stored, class Hash>
BasicLocalCache<K, Stored, Hash>::BasicLocalCache(LocalCacheOptions options)
    : capacity_(options.capacity),
      bound_(options.bound),
      clock_(*options.clock),
      seed_(detail::seed_for(options)),
      shard_count_(detail::shards_for(options)),
      share_(capacity_ / shard_count_),
      shards_(std::make_unique<Shard[]>(shard_count_)),
      tuner_(seed_) {
  // Where the number of entries is known to be small, the policy is made ready for all of them.
  constexpr std::size_t kReadyFor = 16'384;
  for (unsigned i = 0; i < shard_count_; ++i) {
    const std::size_t share = capacity_ / shard_count_ + (i < capacity_ % shard_count_ ? 1 : 0);
    const bool ready = bound_ == Bound::weights && share <= kReadyFor;
    // Where `most_entries` is what will really be there, few large steps leave least behind.
    shards_[i].set_up(seed_ + i, bound_ == Bound::weights ? 4 : 2);
    shards_[i].set_budget(share, most_entries(share), ready ? share : 0);
  }
}

template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::look(const K& key, Duration retry) -> Hit {
  return access(key, [retry](const Sight& sight, detail::Nanos nanos, SteadyTime now) {
    // Beside a writer this may be another entry's by now, which at worst is refreshed a little later.
    detail::Nanos until = sight.extra->retry.load(std::memory_order_relaxed);
    return (until == detail::kNoTime || until <= nanos) &&
           sight.extra->retry.compare_exchange_strong(until, detail::after(now, retry));
  });
}

template <class K, class Stored, class Hash>
template <class Claim>
WEIR_HOT auto BasicLocalCache<K, Stored, Hash>::access(const K& key, Claim claim) -> Hit {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  Sight sight;
  if (!shard.read(low(hash), key, sight)) [[unlikely]] {
    counters_.add(kMiss);
    return {};
  }
  Hit hit{.known = true};
  if (!sight.times.none()) {
    const SteadyTime now = clock_.steady_now();
    const detail::Nanos nanos = detail::to_nanos(now);
    if (detail::reached(sight.times.expires, nanos)) {
      bury(shard, hash, key);
      counters_.add(kMiss);
      return {};
    }
    hit.stale = detail::reached(sight.times.refresh, nanos);
    hit.refresh = hit.stale && claim(sight, nanos, now);
  }
  if (Shard::raise_mark(*sight.mark) && tuner_.samples(hash)) [[unlikely]]
    feed(hash, shard);
  counters_.add(hit.stale ? kStaleHit : is_null(*sight.value) ? kNegativeHit : kHit);
  hit.value = found(sight);
  return hit;
}

template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::peek(const K& key) const -> Hit {
  const std::uint64_t hash = hash_of(key);
  Sight sight;
  if (!shard_of(hash).read(low(hash), key, sight)) return {};
  const detail::Nanos now = detail::to_nanos(clock_.steady_now());
  if (detail::reached(sight.times.expires, now)) return {};
  return {.known = true, .stale = detail::reached(sight.times.refresh, now), .value = found(sight)};
}

// A reader has met a dead entry. When others are at the shard, they or the next will do it.
template <class K, class Stored, class Hash>
void BasicLocalCache<K, Stored, Hash>::bury(Shard& shard, std::uint64_t hash, const K& key) {
  Trash trash;
  const std::unique_lock lock(shard.mutex, std::try_to_lock);
  if (lock) find_alive(shard, hash, key, trash);
}

template <class K, class Stored, class Hash>
void BasicLocalCache<K, Stored, Hash>::feed(std::uint64_t hash, const Shard& shard) {
  tuner_.feed(hash, shard.entries_when_full() * shard_count_);
}

// Saturated: what is too heavy must not become light by an overflow.
template <class K, class Stored, class Hash>
std::uint64_t BasicLocalCache<K, Stored, Hash>::whole_weight(const K& key, std::size_t weight) const {
  if (bound_ == Bound::weights) return weight == 0 ? 1 : weight;
  const std::uint64_t overhead = kEntryOverhead + key_heap_bytes(key);
  return weight > UINT64_MAX - overhead ? UINT64_MAX : weight + overhead;
}

template <class K, class Stored, class Hash>
bool BasicLocalCache<K, Stored, Hash>::put(const K& key, Stored value, std::size_t weight, Duration ttl,
                                           Duration refresh_after) {
  const std::uint64_t hash = hash_of(key);
  const std::uint64_t need = whole_weight(key, weight);
  const bool kept = ttl > Duration::zero() && need <= capacity_;
  Shard& shard = shard_of(hash);
  shard.prefetch(low(hash));
  if (ttl != kNever || refresh_after != kNever) timed_.store(true, std::memory_order_relaxed);
  const SteadyTime now = now_if_timed();
  const detail::Times times{detail::after(now, ttl), detail::after(now, refresh_after)};
  K own = key;
  Trash trash;
  const auto lock = kept ? lock_with_room(shard, need, now) : std::unique_lock(shard.mutex);
  shard.set_now(now);
  if (const Id old = shard.find(low(hash), key)) {
    if (kept && !shard.dead(old) && shard.replace(old, value, need, times, trash)) {
      ++shard.stats.puts;
      return true;
    }
    shard.take_out(old, trash);
  }
  shard.sweep(kSweepPerPut, trash);
  if (!kept || !shard.make_room(need, trash)) {
    ++shard.stats.refused;
    return false;
  }
  const Id id = shard.prepare(need == 1 && times.none());
  shard.insert(id, low(hash), std::move(own), std::move(value), need, times, tuner_.choice());
  ++shard.stats.puts;
  if (tuner_.samples(hash)) feed(hash, shard);
  return true;
}

// The shard's lock, after budget was moved to it if it had too little. Others may take that away at once;
// then it is tried again, a few times.
template <class K, class Stored, class Hash>
std::unique_lock<std::mutex> BasicLocalCache<K, Stored, Hash>::lock_with_room(Shard& shard,
                                                                              std::uint64_t weight,
                                                                              SteadyTime now) {
  constexpr int kTries = 8;
  for (int tries = 0;; ++tries) {
    if (shard.budget() < std::max(weight, share_ / 2)) borrow(shard, weight, now);
    std::unique_lock lock(shard.mutex);
    if (shard.budget() >= weight || tries == kTries) return lock;
  }
}

// Moves budget to a shard which has too little: what others have above their share, until it has its own
// share; and if that isn't enough for the entry, from all alike. They evict what they have no room for then.
template <class K, class Stored, class Hash>
void BasicLocalCache<K, Stored, Hash>::borrow(Shard& to, std::uint64_t weight, SteadyTime now) {
  const std::lock_guard moving(budgets_);
  std::uint64_t got = 0;
  const auto take = [&](Shard& from, std::uint64_t most) {
    Trash trash;
    const std::lock_guard lock(from.mutex);
    from.set_now(now);
    const std::uint64_t part = std::min(most, from.budget());
    from.set_budget(from.budget() - part, most_entries(from.budget() - part), 0);
    from.make_room(0, trash);
    got += part;
  };
  const auto lacking = [&](std::uint64_t want) { return want - std::min(want, to.budget() + got); };
  for (unsigned i = 0; i < shard_count_; ++i)
    if (Shard& from = shards_[i]; &from != &to && from.budget() > share_)
      take(from, std::min(from.budget() - share_, lacking(std::max(weight, share_))));
  for (unsigned i = 0, left = shard_count_ - 1; i < shard_count_ && lacking(weight) > 0; ++i)
    if (&shards_[i] != &to) take(shards_[i], lacking(weight) / left-- + 1);
  for (unsigned i = 0; i < shard_count_ && lacking(weight) > 0; ++i)
    if (&shards_[i] != &to) take(shards_[i], lacking(weight));
  const std::lock_guard lock(to.mutex);
  to.set_budget(to.budget() + got, most_entries(to.budget() + got), 0);
}

template <class K, class Stored, class Hash>
template <class Change, class Weigh>
bool BasicLocalCache<K, Stored, Hash>::update(const K& key, Change change, Weigh weigh) {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  Trash trash;
  const std::lock_guard lock(shard.mutex);
  const Id id = find_alive(shard, hash, key, trash);
  if (id == 0) return false;
  const auto& current = shard.pair(id).value.get();
  if (is_null(current)) return false;
  Found changed = change(target(current));
  if (!changed) return false;
  const std::uint64_t weight = whole_weight(key, weigh(*changed));
  bool replaced = false;
  if constexpr (kShared) {
    replaced = shard.resize(id, weight, trash) && shard.replace(id, changed, weight, {}, trash);
  } else {
    replaced = shard.resize(id, weight, trash) && shard.replace(id, *changed, weight, {}, trash);
  }
  if (replaced) return true;
  shard.take_out(id, trash);  // the old value would be a lie
  ++shard.stats.refused;
  return false;
}

template <class K, class Stored, class Hash>
bool BasicLocalCache<K, Stored, Hash>::erase(const K& key) {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  Trash trash;
  const std::lock_guard lock(shard.mutex);
  const Id id = shard.find(low(hash), key);
  if (id == 0) return false;
  shard.take_out(id, trash);
  return true;
}

template <class K, class Stored, class Hash>
template <class Drop>
std::size_t BasicLocalCache<K, Stored, Hash>::erase_if(Drop drop) {
  std::size_t count = 0;
  for (unsigned i = 0; i < shard_count_; ++i) {
    Shard& shard = shards_[i];
    Trash trash;
    const std::lock_guard lock(shard.mutex);
    for (Id id = shard.first(), next = 0; id != 0; id = next) {
      next = shard.next(id);
      const auto& key = shard.pair(id).key.get();
      const auto& value = shard.pair(id).value.get();
      if (!drop(key, value)) continue;
      shard.take_out(id, trash);
      ++count;
    }
  }
  return count;
}

template <class K, class Stored, class Hash>
std::size_t BasicLocalCache<K, Stored, Hash>::size() const {
  std::size_t sum = 0;
  for (unsigned i = 0; i < shard_count_; ++i) sum += shards_[i].size();
  return sum;
}

template <class K, class Stored, class Hash>
std::size_t BasicLocalCache<K, Stored, Hash>::weight() const {
  const std::lock_guard lock(budgets_);  // or budget could be seen at its old place and at its new one
  std::size_t sum = 0;
  for (unsigned i = 0; i < shard_count_; ++i) sum += shards_[i].used();
  return sum;
}

template <class K, class Stored, class Hash>
LocalCacheStats BasicLocalCache<K, Stored, Hash>::stats() const {
  LocalCacheStats sum;
  for (unsigned i = 0; i < shard_count_; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    sum += shards_[i].stats;
  }
  sum.hits = counters_.total(kHit);
  sum.negative_hits = counters_.total(kNegativeHit);
  sum.stale_hits = counters_.total(kStaleHit);
  sum.misses = counters_.total(kMiss);
  return sum;
}

// The entry if it is alive; a dead one is taken out.
template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::find_alive(Shard& shard, std::uint64_t hash, const K& key,
                                                  Trash& trash) -> Id {
  shard.set_now(clock_.steady_now());
  const Id id = shard.find(low(hash), key);
  if (id == 0 || !shard.dead(id)) return id;
  shard.count_out(id);
  shard.take_out(id, trash);
  return 0;
}

}  // namespace weir::cache

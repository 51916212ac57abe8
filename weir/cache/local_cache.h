// LocalCache: a map in memory that is bounded by weight and forgets.
//
// Promises:
//  - Hard bound: the weights of all entries, each with what the cache itself spends on it, never sum to more
//    than the capacity. Room is made before an entry comes in, not after.
//  - An entry is never seen past its TTL. A TTL of zero or less stores nothing: it never means "forever".
//  - Values are shared, never copied; a value lives as long as somebody holds it, whatever the cache forgets.
//  - A look-up allocates nothing and moves nothing: it sets one flag. Eviction is CLOCK (Corbato, "A Paging
//    Experiment with the Multics System", 1968): second chance in a ring, close to LRU in what it keeps.
//  - No call does unbounded work but `clear` and `erase_if`, and the doubling of a shard's table. Dead
//    entries are swept a few at a time by those who put.
//  - Hashing is seeded: chosen keys can't crowd one bucket.
//
// Everything is thread-safe. The cache is split into shards, each with its own mutex; values and keys are
// destroyed outside of it. Plain C++20, without Boost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "weir/base/clock.h"
#include "weir/cache/key_hash.h"
#include "weir/cache/local_cache_shard.h"
#include "weir/cache/ttl.h"

namespace weir::cache {

struct LocalCacheOptions {
  std::size_t capacity = std::size_t{16} << 20;  // bytes; see `weight` of LocalCache::put
  unsigned shards = 0;                           // at most 256; 0: chosen by capacity and processors
  const Clock* clock = &Clock::system();         // must outlive the cache
  std::uint64_t seed = 0;                        // of the hash; 0: a secret one
};

namespace detail {
unsigned shards_for(const LocalCacheOptions& options);  // a power of two
std::uint64_t seed_for(const LocalCacheOptions& options);
SteadyTime after(SteadyTime now, Duration wait);  // the end of time instead of an overflow
}  // namespace detail

template <class K, class V, class Hash = KeyHash<K>>
class LocalCache {
 public:
  using Value = std::shared_ptr<const V>;
  // What a look-up finds. A null value that is `known` is one that was put as null: known to be absent.
  using Hit = cache::Hit<V>;

  // What the cache spends on an entry beside the value: its node with key, pointers and times, up to two
  // places of the table, the allocator's header, and the value's control block.
  static constexpr std::size_t kEntryOverhead = sizeof(detail::Node<K, V>) + 2 * sizeof(void*) + 16 + 32;

  explicit LocalCache(LocalCacheOptions options = {})
      : capacity_(options.capacity),
        clock_(*options.clock),
        seed_(detail::seed_for(options)),
        shard_count_(detail::shards_for(options)),
        shards_(std::make_unique<Shard[]>(shard_count_)) {}
  LocalCache(const LocalCache&) = delete;
  LocalCache& operator=(const LocalCache&) = delete;

  // The value, or null when it isn't here (or is known to be absent). Counts a hit or a miss.
  Value find(const K& key) { return look(key).value; }

  // The same with everything that is known about it. Past the entry's time to refresh exactly one caller gets
  // `refresh`; the next gets it when the entry is still the same `retry` later.
  Hit look(const K& key, Duration retry = std::chrono::seconds(1));

  // Whether it is here, and its value, without counting and without keeping it any longer.
  Hit peek(const K& key) const;

  // Stores the value for `ttl`; `refresh_after`: when `look` begins to ask for a refresh. `weight`: the bytes
  // of the value, its sizeof included; the cache adds its own overhead and what a string as key owns. What
  // was there before is replaced; when the entry can't be kept (heavier than the capacity, ttl <= 0), it is
  // erased and the answer is false.
  bool put(const K& key, Value value, std::size_t weight, Duration ttl, Duration refresh_after = kNever);

  // Atomically replaces a value that is here: change(const V&) answers the new one, or null to keep the
  // current one; then weigh(const V&) its weight. Both run under the shard's lock: no calls into the cache,
  // nothing slow. The TTL goes on as it was. What was put as null is not "here". False when nothing was
  // replaced; an entry that outgrew the capacity is dropped.
  template <class Change, class Weigh>
  bool update(const K& key, Change change, Weigh weigh);

  // True when it was here.
  bool erase(const K& key);

  // Erases what drop(const K&, const Value&) approves of, and tells how many; O(entries), one shard locked at
  // a time. `drop` runs under the lock.
  template <class Drop>
  std::size_t erase_if(Drop drop);
  void clear() {
    erase_if([](const K&, const Value&) { return true; });
  }

  // Entries, dead ones that weren't swept yet included; O(shards).
  std::size_t size() const;
  // Their weight, in bytes; never more than the capacity.
  std::size_t weight() const { return used_.load(std::memory_order_relaxed); }
  std::size_t capacity() const { return capacity_; }
  LocalCacheStats stats() const;

 private:
  using Node = detail::Node<K, V>;
  using Trash = detail::Trash<K, V>;
  struct alignas(64) Shard {
    std::mutex mutex;
    detail::Shard<K, V> entries;
  };
  // Room taken for an entry that isn't in yet; given back if it never comes in.
  struct Reservation {
    LocalCache& cache;
    std::size_t bytes = 0;
    ~Reservation() { cache.release(bytes); }
  };
  static constexpr int kSweepPerPut = 2;  // more than come in, so that the dead can't pile up

  std::uint64_t hash_of(const K& key) const { return Hash{}(key, seed_); }
  // Upper bits: a shard's table uses the lower ones.
  Shard& shard_of(std::uint64_t hash) const { return shards_[(hash >> 40) & (shard_count_ - 1)]; }
  Node* find_alive(Shard& shard, std::uint64_t hash, const K& key, SteadyTime now, Trash& trash);
  bool reserve(std::size_t need, SteadyTime now);
  bool reserve_if_free(std::size_t need);
  void release(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  bool evict_one(SteadyTime now);

  const std::size_t capacity_;
  const Clock& clock_;
  const std::uint64_t seed_;
  const unsigned shard_count_;
  const std::unique_ptr<Shard[]> shards_;
  std::atomic<std::size_t> used_{0};        // weights of what is in, or about to come in
  std::atomic<std::size_t> evict_from_{0};  // the shards give up entries in turn
};

template <class K, class V, class Hash>
auto LocalCache<K, V, Hash>::look(const K& key, Duration retry) -> Hit {
  const std::uint64_t hash = hash_of(key);
  const SteadyTime now = clock_.steady_now();
  Shard& shard = shard_of(hash);
  Trash trash;
  const std::lock_guard lock(shard.mutex);
  LocalCacheStats& stats = shard.entries.stats;
  Node* node = find_alive(shard, hash, key, now, trash);
  if (node == nullptr) {
    ++stats.misses;
    return {};
  }
  node->used = true;
  Hit hit{.known = true, .stale = node->refresh_at <= now, .value = node->value};
  if (hit.stale && node->retry_at <= now) {
    hit.refresh = true;
    node->retry_at = detail::after(now, retry);
  }
  ++(hit.stale ? stats.stale_hits : hit.value ? stats.hits : stats.negative_hits);
  return hit;
}

template <class K, class V, class Hash>
auto LocalCache<K, V, Hash>::peek(const K& key) const -> Hit {
  const std::uint64_t hash = hash_of(key);
  const SteadyTime now = clock_.steady_now();
  Shard& shard = shard_of(hash);
  const std::lock_guard lock(shard.mutex);
  const Node* node = shard.entries.find(hash, key);
  if (node == nullptr || node->expires_at <= now) return {};
  return {.known = true, .stale = node->refresh_at <= now, .value = node->value};
}

template <class K, class V, class Hash>
bool LocalCache<K, V, Hash>::put(const K& key, Value value, std::size_t weight, Duration ttl,
                                 Duration refresh_after) {
  const std::uint64_t hash = hash_of(key);
  const SteadyTime now = clock_.steady_now();
  const std::size_t overhead = kEntryOverhead + key_heap_bytes(key);
  auto node = std::unique_ptr<Node>(new Node{.hash = hash,
                                             .expires_at = detail::after(now, ttl),
                                             .refresh_at = detail::after(now, refresh_after),
                                             .value = std::move(value),
                                             .weight = weight + overhead,
                                             .key = key});
  Reservation room{*this};
  if (ttl > Duration::zero() && weight <= capacity_ && reserve(node->weight, now)) room.bytes = node->weight;
  Shard& shard = shard_of(hash);
  Trash trash;
  const std::lock_guard lock(shard.mutex);
  if (Node* old = shard.entries.find(hash, key)) release(shard.entries.take_out(old, trash));
  release(shard.entries.sweep(now, kSweepPerPut, trash));
  if (room.bytes == 0) {
    ++shard.entries.stats.refused;
    return false;
  }
  shard.entries.add(node.get());
  node.release();
  room.bytes = 0;  // from here on the entry's own
  ++shard.entries.stats.puts;
  return true;
}

template <class K, class V, class Hash>
template <class Change, class Weigh>
bool LocalCache<K, V, Hash>::update(const K& key, Change change, Weigh weigh) {
  const std::uint64_t hash = hash_of(key);
  const SteadyTime now = clock_.steady_now();
  Shard& shard = shard_of(hash);
  Trash trash;
  Value replaced;
  const std::lock_guard lock(shard.mutex);
  Node* node = find_alive(shard, hash, key, now, trash);
  if (node == nullptr || !node->value) return false;
  Value changed = change(*node->value);
  if (!changed) return false;
  const std::size_t weight = kEntryOverhead + key_heap_bytes(key) + weigh(*changed);
  if (weight > node->weight && !reserve_if_free(weight - node->weight)) {
    release(shard.entries.take_out(node, trash));
    ++shard.entries.stats.refused;
    return false;
  }
  if (weight < node->weight) release(node->weight - weight);
  node->weight = weight;
  replaced = std::exchange(node->value, std::move(changed));
  return true;
}

template <class K, class V, class Hash>
bool LocalCache<K, V, Hash>::erase(const K& key) {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  Trash trash;
  const std::lock_guard lock(shard.mutex);
  Node* node = shard.entries.find(hash, key);
  if (node == nullptr) return false;
  release(shard.entries.take_out(node, trash));
  return true;
}

template <class K, class V, class Hash>
template <class Drop>
std::size_t LocalCache<K, V, Hash>::erase_if(Drop drop) {
  std::size_t count = 0;
  for (unsigned i = 0; i < shard_count_; ++i) {
    Trash trash;
    std::size_t freed = 0;
    const std::lock_guard lock(shards_[i].mutex);
    count += shards_[i].entries.take_out_if(drop, trash, freed);
    release(freed);
  }
  return count;
}

template <class K, class V, class Hash>
std::size_t LocalCache<K, V, Hash>::size() const {
  std::size_t sum = 0;
  for (unsigned i = 0; i < shard_count_; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    sum += shards_[i].entries.size();
  }
  return sum;
}

template <class K, class V, class Hash>
LocalCacheStats LocalCache<K, V, Hash>::stats() const {
  LocalCacheStats sum;
  for (unsigned i = 0; i < shard_count_; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    sum += shards_[i].entries.stats;
  }
  return sum;
}

// The entry if it is alive; a dead one is taken out.
template <class K, class V, class Hash>
auto LocalCache<K, V, Hash>::find_alive(Shard& shard, std::uint64_t hash, const K& key, SteadyTime now,
                                        Trash& trash) -> Node* {
  Node* node = shard.entries.find(hash, key);
  if (node == nullptr || node->expires_at > now) return node;
  release(shard.entries.take_out(node, trash));
  ++shard.entries.stats.expirations;
  return nullptr;
}

template <class K, class V, class Hash>
bool LocalCache<K, V, Hash>::reserve_if_free(std::size_t need) {
  std::size_t used = used_.load(std::memory_order_relaxed);
  while (need <= capacity_ - used)
    if (used_.compare_exchange_weak(used, used + need, std::memory_order_relaxed)) return true;
  return false;
}

// Makes room, then takes it. False when it never fits, or when all that is in the way is just coming in.
template <class K, class V, class Hash>
bool LocalCache<K, V, Hash>::reserve(std::size_t need, SteadyTime now) {
  if (need > capacity_) return false;
  for (unsigned empty_shards = 0; !reserve_if_free(need);) {
    if (evict_one(now)) {
      empty_shards = 0;
    } else if (++empty_shards > shard_count_) {
      return false;
    }
  }
  return true;
}

template <class K, class V, class Hash>
bool LocalCache<K, V, Hash>::evict_one(SteadyTime now) {
  Shard& shard = shards_[evict_from_.fetch_add(1, std::memory_order_relaxed) & (shard_count_ - 1)];
  Trash trash;
  const std::lock_guard lock(shard.mutex);
  Node* node = shard.entries.victim(now);
  if (node == nullptr) return false;
  ++(node->expires_at <= now ? shard.entries.stats.expirations : shard.entries.stats.evictions);
  release(shard.entries.take_out(node, trash));
  return true;
}

}  // namespace weir::cache

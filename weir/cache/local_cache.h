// LocalCache: a map in memory that is bounded by weight and forgets.
//
// Promises:
//  - Hard bound: the weights of all entries, each with what the cache itself spends on it, never sum to more
//  than
//    the capacity. Room is made before an entry comes in, not after.
//  - An entry is never seen past its TTL. A TTL of zero or less stores nothing: it never means "forever".
//  - Values are shared, never copied; a value lives as long as somebody holds it, whatever the cache forgets.
//  - A look-up allocates nothing and moves nothing: it sets one flag. Eviction is CLOCK (Corbato, "A Paging
//  Experiment
//    with the Multics System", 1968): second chance in a ring, close to LRU in what it keeps.
//  - No call does unbounded work but `clear` and `erase_if`, and the doubling of a shard's table. Dead
//  entries are swept a few at a time by those who put.
//  - Hashing is seeded: chosen keys can't crowd one bucket.
//
// Everything is thread-safe. The cache is split into shards, each with its own mutex; values and keys are
// destroyed outside of it. Plain C++20, without Boost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/cache/key_hash.h"
#include "weir/cache/ttl.h"

namespace weir::cache {

struct LocalCacheOptions {
  std::size_t capacity = std::size_t{16} << 20;  // bytes; see `weight` of LocalCache::put
  unsigned shards = 0;                    // a power of two up to 256; 0: chosen by capacity and processors
  const Clock* clock = &Clock::system();  // must outlive the cache
  std::uint64_t seed = 0;                 // of the hash; 0: a secret one
};

template <class K, class V, class Hash = KeyHash<K>>
class LocalCache {
 public:
  using Value = std::shared_ptr<const V>;
  using Shard = detail::Shard<K, V, Hash>;
  // What a look-up finds. A null value that is `known` is one that was put as null: known to be absent.
  using Hit = detail::Hit<V>;

  // What the cache spends on an entry beside the value: its node with key, pointer and links, its share of
  // the table, the allocator's headers, the value's control block.
  static constexpr std::size_t kEntryOverhead = Shard::kNodeBytes;

  explicit LocalCache(LocalCacheOptions options = {});
  ~LocalCache() = default;
  LocalCache(const LocalCache&) = delete;
  LocalCache& operator=(const LocalCache&) = delete;

  // The value, or null when it isn't here (or is known to be absent). Counts a hit or a miss.
  Value find(const K& key) { return look(key).value; }
  // The same with everything that is known about it. Past the entry's time to refresh exactly one caller gets
  // `refresh`; when that one fails, the next gets it `retry` later.
  Hit look(const K& key, Duration retry = std::chrono::seconds(1));
  // Whether it is here, and its value, without counting and without keeping it any longer.
  Hit peek(const K& key) const;

  // Stores the value for `ttl`; `refresh_after`: when `look` begins to ask for a refresh. `weight`: the bytes
  // of the value, its sizeof included; the cache adds its own overhead and what a string as key owns. What
  // was there before is replaced; when the entry can't be kept (heavier than the capacity, ttl <= 0), it is
  // erased and the answer is false.
  bool put(const K& key, Value value, std::size_t weight, Duration ttl, Duration refresh_after = kNever);

  // Atomically replaces a value that is here: change(const Value& current) answers the new value, or null to
  // keep the current one; then weigh(const V&) its weight. Both run under the shard's lock: no calls into the
  // cache, nothing slow. The TTL goes on as it was. What was put as null is not "here". False when nothing
  // was replaced. An entry that outgrew the capacity is dropped.
  template <class Change, class Weigh>
  bool update(const K& key, Change change, Weigh weigh);

  // True when it was here.
  bool erase(const K& key);
  // Erases what drop(const K&, const Value&) approves of; O(entries), locking one shard at a time. `drop`
  // runs under the lock.
  template <class Drop>
  std::size_t erase_if(Drop drop);
  void clear();

  // Entries, expired ones that weren't swept yet included; their weight in bytes. O(1) and O(shards).
  std::size_t size() const;
  std::size_t weight() const { return used_.load(std::memory_order_relaxed); }
  std::size_t capacity() const { return capacity_; }
  LocalCacheStats stats() const;
};

}  // namespace weir::cache

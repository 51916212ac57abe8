// One shard of a LocalCache: a chained hash table whose nodes also form the ring of the CLOCK. Not
// thread-safe: the cache holds the shard's mutex, and destroys what a call took out (`Trash`) after letting
// it go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/cache/key_hash.h"

namespace weir::cache {

// What a look-up finds out.
template <class V>
struct Hit {
  bool known = false;              // it is here
  bool stale = false;              // past its time to refresh
  bool refresh = false;            // and this caller is the one to do that
  std::shared_ptr<const V> value;  // null: known to be absent, if it is known
};

// Sums since the cache was made.
struct LocalCacheStats {
  std::uint64_t hits = 0;           // fresh values
  std::uint64_t negative_hits = 0;  // known absences
  std::uint64_t stale_hits = 0;     // values (or absences) past their time to refresh
  std::uint64_t misses = 0;
  std::uint64_t puts = 0;
  std::uint64_t evictions = 0;    // for room
  std::uint64_t expirations = 0;  // dead entries swept
  std::uint64_t refused = 0;      // puts that couldn't be kept

  LocalCacheStats& operator+=(const LocalCacheStats& other) {
    hits += other.hits;
    negative_hits += other.negative_hits;
    stale_hits += other.stale_hits;
    misses += other.misses;
    puts += other.puts;
    evictions += other.evictions;
    expirations += other.expirations;
    refused += other.refused;
    return *this;
  }
};

namespace detail {

template <class K, class V>
struct Node {
  std::uint64_t hash = 0;
  Node* chain = nullptr;     // the next in the bucket, or in the trash
  Node* previous = nullptr;  // the ring
  Node* next = nullptr;
  SteadyTime expires_at;
  SteadyTime refresh_at;
  SteadyTime retry_at = SteadyTime::min();  // before this, somebody else is at it
  std::shared_ptr<const V> value;
  std::size_t weight = 0;  // all of it
  K key;
  bool used = false;  // since the hand was here
};

// Nodes that were taken out; destroys them with itself.
template <class K, class V>
class Trash {
 public:
  Trash() = default;
  Trash(const Trash&) = delete;
  Trash& operator=(const Trash&) = delete;
  ~Trash() {
    while (first_ != nullptr) delete std::exchange(first_, first_->chain);
  }
  void add(Node<K, V>* node) { node->chain = std::exchange(first_, node); }

 private:
  Node<K, V>* first_ = nullptr;
};

template <class K, class V>
class Shard {
 public:
  using N = Node<K, V>;

  Shard() = default;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard() {
    Trash<K, V> trash;
    while (hand_ != nullptr) take_out(hand_, trash);
  }

  N* find(std::uint64_t hash, const K& key) const {
    if (buckets_.empty()) return nullptr;
    for (N* node = buckets_[bucket(hash)]; node != nullptr; node = node->chain)
      if (node->hash == hash && node->key == key) return node;
    return nullptr;
  }

  // Takes a node that isn't in yet; its last to be looked at by the hand.
  void add(N* node) {
    if (size_ >= buckets_.size()) rehash(buckets_.empty() ? kFirstBuckets : 2 * buckets_.size());
    N*& head = buckets_[bucket(node->hash)];
    node->chain = std::exchange(head, node);
    if (hand_ == nullptr) {
      hand_ = sweeper_ = node->previous = node->next = node;
    } else {
      node->next = hand_;
      node->previous = hand_->previous;
      node->previous->next = hand_->previous = node;
    }
    ++size_;
  }

  // The weight that is free again.
  std::size_t take_out(N* node, Trash<K, V>& trash) {
    N** link = &buckets_[bucket(node->hash)];
    while (*link != node) link = &(*link)->chain;
    *link = node->chain;
    if (hand_ == node) hand_ = node->next == node ? nullptr : node->next;
    if (sweeper_ == node) sweeper_ = node->next == node ? nullptr : node->next;
    node->previous->next = node->next;
    node->next->previous = node->previous;
    --size_;
    trash.add(node);
    return node->weight;
  }

  // The next to give up its place: not used since the last round, or dead. After kMostSkips that were used (a
  // hit has paid for each) it takes whom it finds, so that no call sweeps the whole ring. Null when empty.
  N* victim(SteadyTime now) {
    for (int skips = 0; hand_ != nullptr && skips < kMostSkips; ++skips) {
      if (!hand_->used || hand_->expires_at <= now) return hand_;
      hand_->used = false;
      hand_ = hand_->next;
    }
    return hand_;
  }

  // Looks at the next `most` entries for dead ones; the weight that is free again.
  std::size_t sweep(SteadyTime now, int most, Trash<K, V>& trash) {
    std::size_t freed = 0;
    for (; sweeper_ != nullptr && most > 0; --most) {
      N* node = std::exchange(sweeper_, sweeper_->next);
      if (node->expires_at > now) continue;
      freed += take_out(node, trash);
      ++stats.expirations;
    }
    return freed;
  }

  template <class Drop>
  std::size_t take_out_if(Drop& drop, Trash<K, V>& trash, std::size_t& freed) {
    std::size_t count = 0;
    N* node = hand_;
    for (std::size_t left = size_; left > 0; --left) {
      N* next = node->next;
      if (drop(std::as_const(node->key), std::as_const(node->value))) {
        freed += take_out(node, trash);
        ++count;
      }
      node = next;
    }
    return count;
  }

  std::size_t size() const { return size_; }

  LocalCacheStats stats;

 private:
  static constexpr std::size_t kFirstBuckets = 8;
  static constexpr int kMostSkips = 64;

  // Shards were chosen by the upper bits.
  std::size_t bucket(std::uint64_t hash) const {
    return static_cast<std::size_t>(hash) & (buckets_.size() - 1);
  }

  void rehash(std::size_t count) {
    std::vector<N*> old = std::exchange(buckets_, std::vector<N*>(count));
    for (N* node : old) {
      while (node != nullptr) {
        N* next = node->chain;
        N*& head = buckets_[bucket(node->hash)];
        node->chain = std::exchange(head, node);
        node = next;
      }
    }
  }

  std::vector<N*> buckets_;
  N* hand_ = nullptr;     // of the clock
  N* sweeper_ = nullptr;  // of the dead
  std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace weir::cache

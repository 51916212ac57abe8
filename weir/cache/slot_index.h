// SlotIndex: from a key's hash to the number of its entry; the hash table of a shard.
//
// A bucket is a cache line: twelve tags (8 bits of hash each), twelve numbers, and how many entries went past it
// because it was full. So a look-up touches one line here and, but for one time in thirty, only the right entry.
// The tags are compared at once and without a branch (as in Abseil's Swiss tables): a processor that guessed
// wrong where a key stands would wait for memory before it could begin with the next look-up. Nothing moves when
// an entry goes, and there are no tombstones: the count of those who went past tells where a search may end.
//
// It grows by a second table into which the first is moved a bucket at a time, so no call pays for the whole.
//
// One writer at a time. `find` may run beside a writer if what it answers is checked afterwards (see SeqGate):
// it always ends and touches only memory of this index. For that, outgrown tables are kept; they add up to a
// third of the table where it grows fourfold, to as much again where it doubles.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/cache/hot_path.h"
#include "weir/cache/zeroed_array.h"

#if defined(__SSE2__) && (defined(__GNUC__) || defined(__clang__)) && !defined(WEIR_UNDER_TSAN)
#define WEIR_TAGS_BY_SSE2 1
#include <emmintrin.h>
#endif

namespace weir::cache::detail {

class alignas(64) SlotBucket {
 public:
  using Id = std::uint32_t;
  static constexpr unsigned kSlots = 12;

  // A bit for each slot with the tag. Beside a writer a tag may be older or newer than its number, but no tag
  // is seen whose slot never had a number.
  WEIR_HOT unsigned with_tag(std::uint8_t tag) const;
  // Acquired, so that who sees a number sees the slab's chunk for it too.
  WEIR_HOT Id id(unsigned slot) const { return ids_[slot].load(std::memory_order_acquire); }
  std::uint8_t tag(unsigned slot) const { return tags_[slot].load(std::memory_order_relaxed); }
  // Whether an entry whose way leads past this bucket may stand further on.
  bool passed() const { return passed_.load(std::memory_order_acquire) != 0; }

  // For the writer.
  void put(unsigned slot, std::uint8_t tag, Id id) {
    ids_[slot].store(id, std::memory_order_relaxed);
    tags_[slot].store(tag, std::memory_order_release);
  }
  void free(unsigned slot) { tags_[slot].store(kFree, std::memory_order_release); }
  unsigned free_slots() const { return with_tag(kFree); }
  void pass(std::uint32_t more) {
    passed_.store(passed_.load(std::memory_order_relaxed) + more, std::memory_order_release);
  }

  static constexpr std::uint8_t kFree = 0;

 private:
  // These two are read by one load of 16 bytes.
  std::array<std::atomic<std::uint8_t>, kSlots> tags_;
  std::atomic<std::uint32_t> passed_;
  std::array<std::atomic<Id>, kSlots> ids_;
};
static_assert(sizeof(SlotBucket) == 64);

#ifdef WEIR_TAGS_BY_SSE2
// By assembly, since to the compiler a vector's load is no atomic one. This processor neither tears a byte nor
// lets a later load overtake this one.
WEIR_HOT unsigned SlotBucket::with_tag(std::uint8_t tag) const {
  __m128i tags;
  asm volatile("movdqa %1, %0" : "=x"(tags) : "m"(*reinterpret_cast<const char(*)[16]>(this)));
  const __m128i wanted = _mm_set1_epi32(static_cast<int>(tag * 0x01010101U));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(tags, wanted))) & ((1U << kSlots) - 1);
}
#else
inline unsigned SlotBucket::with_tag(std::uint8_t tag) const {
  unsigned same = 0;
  for (unsigned slot = 0; slot < kSlots; ++slot)
    same |= static_cast<unsigned>(tags_[slot].load(std::memory_order_acquire) == tag) << slot;
  return same;
}
#endif

class SlotIndex {
 public:
  using Id = SlotBucket::Id;
  using Memory = ZeroedArray<SlotBucket>;

  // Whether one more entry asks for `grow` first.
  bool full(std::size_t entries) const { return entries + 1 > held_now(); }
  // How many entries the next table is for, `growth` times those of this one, if there will never be more than
  // `most`: a part of that, so that the last growth ends there.
  std::size_t next_entries(std::size_t most, std::size_t growth) const {
    const std::size_t least = held_now() + kFirst;
    std::size_t next = std::max(most, least);
    while (next / growth >= least) next /= growth;
    return next;
  }
  // The table that `grow` takes; made beforehand, since this may throw.
  static Memory table_for(std::size_t entries) {
    return Memory(entries * kLoadDown / (kSlots * kLoadUp) + 1);
  }

  // Goes on in a new table.
  template <class HashOf>
  void grow(Memory table, HashOf hash_of) {
    while (growing()) move_some(hash_of);  // it is done long before
    // A reader takes the number first and the table second. Tables only grow, so whatever it gets of the two,
    // the number is never beyond the table.
    if (!cold_->tables.empty())
      before_.store(now_.load(std::memory_order_relaxed), std::memory_order_release);
    buckets_before_.store(buckets_.load(std::memory_order_relaxed), std::memory_order_release);
    cold_->moved = 0;
    now_.store(table.data(), std::memory_order_release);
    buckets_.store(static_cast<std::uint32_t>(table.size()), std::memory_order_release);
    cold_->tables.push_back(std::move(table));
  }
  // Room in the list of tables, so that `grow` can't throw.
  void reserve() { cold_->tables.reserve(cold_->tables.size() + 1); }

  // The number for which match(id) is true, or 0.
  template <class Match>
  WEIR_HOT Id find(std::uint32_t hash, Match match) const {
    const std::uint32_t buckets = buckets_.load(std::memory_order_acquire);
    const SlotBucket* const table = now_.load(std::memory_order_acquire);
    if (const Id id = find_in(table, buckets, hash, match)) [[likely]]
      return id;
    if (before_.load(std::memory_order_acquire) == nullptr) [[likely]]
      return 0;
    return find_before(hash, match);
  }

  // Whether match(id) is true for one that stands where nearly all do: a part of `find`, for the path of a hit.
  template <class Match>
  WEIR_HOT bool is_at_home(std::uint32_t hash, Match match) const {
    const std::uint32_t buckets = buckets_.load(std::memory_order_acquire);
    const SlotBucket* const table = now_.load(std::memory_order_acquire);
    const SlotBucket& bucket = table[home(buckets, hash)];
    for (unsigned same = bucket.with_tag(tag(hash)); same != 0; same &= same - 1)
      if (match(bucket.id(static_cast<unsigned>(std::countr_zero(same))))) [[likely]]
        return true;
    return false;
  }

  // The number that `find` will most likely look at first, or 0. Beside a writer this may be anybody's.
  WEIR_HOT Id guess(std::uint32_t hash) const {
    const std::uint32_t buckets = buckets_.load(std::memory_order_acquire);
    const SlotBucket* const table = now_.load(std::memory_order_acquire);
    const SlotBucket& bucket = table[home(buckets, hash)];
    const unsigned same = bucket.with_tag(tag(hash));
    return same == 0 ? 0 : bucket.id(static_cast<unsigned>(std::countr_zero(same)));
  }

  bool growing() const { return before_.load(std::memory_order_relaxed) != nullptr; }
  // A part of what is left to do after `grow`; each write calls it, and until it is done look-ups that find
  // nothing look in two tables.
  template <class HashOf>
  void step(HashOf hash_of) {
    if (growing()) move_some(hash_of);
  }

  void insert(std::uint32_t hash, Id id) {
    SlotBucket* const table = now_.load(std::memory_order_relaxed);
    const std::uint32_t buckets = buckets_.load(std::memory_order_relaxed);
    std::uint32_t at = home(buckets, hash);
    unsigned free = table[at].free_slots();
    for (; free == 0; free = table[at].free_slots()) {
      table[at].pass(1);
      at = after(buckets, at);
    }
    table[at].put(static_cast<unsigned>(std::countr_zero(free)), tag(hash), id);
  }

  void erase(std::uint32_t hash, Id id) {
    if (erase_in(now_.load(std::memory_order_relaxed), buckets_.load(std::memory_order_relaxed), hash, id))
      return;
    if (growing())
      erase_in(before_.load(std::memory_order_relaxed), buckets_before_.load(std::memory_order_relaxed), hash,
               id);
  }

  std::size_t memory_bytes() const {
    std::size_t bytes = 0;
    for (const auto& table : cold_->tables) bytes += table.size() * sizeof(SlotBucket);
    return bytes;
  }

 private:
  static constexpr unsigned kSlots = SlotBucket::kSlots;
  static constexpr std::size_t kFirst = 12;  // entries of the first table, about
  // The share of slots that are taken when it is full: beyond that too many go past their bucket.
  static constexpr std::size_t kLoadUp = 13, kLoadDown = 16;
  static constexpr int kBucketsPerWrite = 2;

  static std::size_t held(std::size_t buckets) { return buckets * kSlots * kLoadUp / kLoadDown; }
  std::size_t held_now() const {
    return cold_->tables.empty() ? 0 : held(buckets_.load(std::memory_order_relaxed));
  }
  // The upper bits choose the bucket, the lowest eight tell apart who shares it.
  WEIR_HOT static std::uint32_t home(std::uint32_t buckets, std::uint32_t hash) {
    return static_cast<std::uint32_t>((std::uint64_t{hash} * buckets) >> 32);
  }
  static std::uint32_t after(std::uint32_t buckets, std::uint32_t at) {
    return at + 1 == buckets ? 0 : at + 1;
  }
  // Never that of a free slot.
  WEIR_HOT static std::uint8_t tag(std::uint32_t hash) {
    const auto bits = static_cast<std::uint8_t>(hash);
    return static_cast<std::uint8_t>(bits + (bits == SlotBucket::kFree ? 1 : 0));
  }

  template <class Match>
  WEIR_HOT static Id find_in(const SlotBucket* table, std::uint32_t buckets, std::uint32_t hash,
                             Match match) {
    std::uint32_t at = home(buckets, hash);
    for (std::uint32_t seen = 0; seen < buckets; ++seen, at = after(buckets, at)) {
      for (unsigned same = table[at].with_tag(tag(hash)); same != 0; same &= same - 1)
        if (const Id id = table[at].id(static_cast<unsigned>(std::countr_zero(same))); match(id)) [[likely]]
          return id;
      if (!table[at].passed()) [[likely]]
        break;
    }
    return 0;
  }
  template <class Match>
  [[gnu::noinline]] Id find_before(std::uint32_t hash, Match match) const {
    const std::uint32_t buckets = buckets_before_.load(std::memory_order_acquire);
    const SlotBucket* const table = before_.load(std::memory_order_acquire);
    if (table == nullptr) return 0;  // the last of it was moved just now
    return find_in(table, buckets, hash, match);
  }

  static bool erase_in(SlotBucket* table, std::uint32_t buckets, std::uint32_t hash, Id id) {
    const std::uint32_t start = home(buckets, hash);
    std::uint32_t at = start;
    for (std::uint32_t seen = 0; seen < buckets; ++seen, at = after(buckets, at)) {
      for (unsigned same = table[at].with_tag(tag(hash)); same != 0; same &= same - 1) {
        const auto slot = static_cast<unsigned>(std::countr_zero(same));
        if (table[at].id(slot) != id) continue;
        table[at].free(slot);
        for (std::uint32_t left = start; left != at; left = after(buckets, left)) table[left].pass(~0U);
        return true;
      }
      if (!table[at].passed()) return false;
    }
    return false;
  }

  // Some buckets' entries into the new table. What has gone past a bucket stays counted in the old table, which
  // only makes a search there longer.
  template <class HashOf>
  void move_some(HashOf hash_of) {
    SlotBucket* const from = before_.load(std::memory_order_relaxed);
    const std::uint32_t buckets = buckets_before_.load(std::memory_order_relaxed);
    for (int n = 0; n < kBucketsPerWrite && cold_->moved < buckets; ++n, ++cold_->moved) {
      SlotBucket& bucket = from[cold_->moved];
      for (unsigned slot = 0; slot < kSlots; ++slot) {
        if (bucket.tag(slot) == SlotBucket::kFree) continue;
        insert(hash_of(bucket.id(slot)), bucket.id(slot));
        bucket.free(slot);
      }
    }
    if (cold_->moved == buckets) before_.store(nullptr, std::memory_order_release);
  }

  // What no look-up needs stays out of its cache line.
  struct Cold {
    std::uint32_t moved = 0;  // buckets of `before_` that are empty
    std::vector<Memory> tables;
  };

  // An empty table for all, so that a look-up needn't ask whether there is one.
  static inline SlotBucket nobody_{};

  std::atomic<std::uint32_t> buckets_{1}, buckets_before_{1};
  std::atomic<SlotBucket*> now_{&nobody_}, before_{nullptr};
  const std::unique_ptr<Cold> cold_ = std::make_unique<Cold>();
};

}  // namespace weir::cache::detail

// SlotIndex: from a key's hash to the number of its entry; the hash table of a shard.
//
// Open addressing with linear probing, four bytes a place: 24 bits of number, 8 bits of hash, so that a
// look-up touches one cache line here and (but for one time in 256) only the right entry. Eight places are
// compared at once and without a branch: a processor that guessed wrong where a key stands would wait for
// memory before it could begin with the next look-up (this is worth a factor of two). No tombstones: who
// stands behind a gap moves up. It grows by a second table into which the first is moved a few places at a
// time, so no call pays for the whole.
//
// One writer at a time. `find` may run beside a writer if what it answers is checked afterwards (see
// SeqGate): it always ends and touches only memory of this index. For that, outgrown tables are kept; they
// add up to a third of the table where it grows fourfold, to as much again where it doubles.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/cache/place_group.h"
#include "weir/cache/zeroed_array.h"

namespace weir::cache::detail {

class SlotIndex {
 public:
  using Id = std::uint32_t;
  using Word = std::atomic<std::uint32_t>;
  using Memory = ZeroedArray<Word>;
  static constexpr Id kMostIds = (Id{1} << 24) - 2;  // from 1

  // Whether one more entry asks for `grow` first.
  bool full(std::size_t entries) const { return 4 * (entries + 1) > 3 * size_now(); }
  // How many entries the next table is for, `growth` times those of this one, if there will never be more than
  // `most`: a part of that, so that the last growth ends there.
  std::size_t next_entries(std::size_t most, std::size_t growth) const {
    const std::size_t held = size_now() / 4 * 3;
    std::size_t next = std::max(most, held + kFirst);
    while (next / growth >= held + kFirst) next /= growth;
    return next;
  }
  // The table that `grow` takes; made beforehand, since this may throw.
  static Memory table_for(std::size_t entries) { return Table::memory_for(entries + entries / 3 + 2); }

  // Goes on in a new table. `hash_of(id)`: the hash of an entry that is in.
  template <class HashOf>
  void grow(Memory table, HashOf hash_of) {
    while (before_.load(std::memory_order_relaxed) != nullptr) move_some(hash_of);  // it is done long before
    before_.store(now_.load(std::memory_order_relaxed), std::memory_order_release);
    cold_->moved = 0;
    now_.store(table.data(), std::memory_order_release);
    cold_->tables.push_back(std::move(table));
  }
  // Room in the list of tables, so that `grow` can't throw.
  void reserve() { cold_->tables.reserve(cold_->tables.size() + 1); }

  // The number for which match(id) is true, or 0.
  template <class Match>
  WEIR_HOT Id find(std::uint32_t hash, Match match) const {
    Word* const now = now_.load(std::memory_order_acquire);
    if (now == nullptr) return 0;
    if (const Id id = find_in<false>(Table(now), hash, match)) return id;
    Word* const before = before_.load(std::memory_order_acquire);
    return before == nullptr ? 0 : find_in<true>(Table(before), hash, match);
  }

  // The number that `find` will most likely look at first, or 0. Beside a writer this may be anybody's.
  WEIR_HOT Id guess(std::uint32_t hash) const {
    Word* const now = now_.load(std::memory_order_acquire);
    if (now == nullptr) return 0;
    const Table table(now);
    const std::size_t at = home(table, hash);
    const unsigned same = PlaceGroup(&table.words[at]).same(tag(hash), kTagMask);
    return same == 0 ? 0 : id_of(table.load(at + static_cast<unsigned>(std::countr_zero(same))));
  }

  // A part of what is left to do after `grow`; each write calls it, and until it is done look-ups that find
  // nothing look in two tables.
  template <class HashOf>
  void step(HashOf hash_of) {
    if (before_.load(std::memory_order_relaxed) != nullptr) move_some(hash_of);
  }

  void insert(std::uint32_t hash, Id id) { insert_in(Table(now_.load(std::memory_order_relaxed)), hash, id); }

  template <class HashOf>
  void erase(std::uint32_t hash, Id id, HashOf hash_of) {
    const auto is_it = [id](Id other) { return other == id; };
    const Table table(now_.load(std::memory_order_relaxed));
    if (const std::size_t at = place_in<false>(table, hash, is_it); at != kNowhere)
      return close_gap(table, at, hash_of);
    const Table before(before_.load(std::memory_order_relaxed));
    before.store(place_in<true>(before, hash, is_it), kMoved);
  }

  std::size_t memory_bytes() const {
    std::size_t bytes = 0;
    for (const auto& table : cold_->tables) bytes += table.size() * sizeof(Word);
    return bytes;
  }

 private:
  static constexpr std::size_t kFirst = 12;  // entries of the first table
  static constexpr std::size_t kMovesPerWrite = 16;
  static constexpr std::uint32_t kMoved = ~0U;  // was here; an id that nobody has
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr unsigned kIdBits = 24;
  static constexpr std::uint32_t kTagMask = ~std::uint32_t{0} << kIdBits;
  static constexpr std::size_t kGroup = kPlacesCompared;

  // A table is one piece of memory: a group that only holds how many places there are, then the places. A
  // group is half a cache line, and a key's home is the beginning of one.
  class Table {
   public:
    static Memory memory_for(std::size_t places) {
      const std::size_t size = (std::max<std::size_t>(places, 1) + kGroup - 1) / kGroup * kGroup;
      Memory memory(kGroup + size);
      memory[0].store(static_cast<std::uint32_t>(size), std::memory_order_relaxed);
      return memory;
    }
    explicit Table(Word* memory) : size(memory[0].load(std::memory_order_relaxed)), words(memory + kGroup) {}

    void store(std::size_t at, std::uint32_t word) const { words[at].store(word, std::memory_order_release); }
    // Acquired, so that who sees a number sees the slab's chunk for it too.
    std::uint32_t load(std::size_t at) const { return words[at].load(std::memory_order_acquire); }

    const std::size_t size;
    Word* const words;  // 0: free
  };

  std::size_t size_now() const {
    Word* const now = now_.load(std::memory_order_relaxed);
    return now == nullptr ? 0 : Table(now).size;
  }
  static Id id_of(std::uint32_t word) { return word & ((1U << kIdBits) - 1); }
  // Never zero, so that no free place looks like it.
  static std::uint32_t tag(std::uint32_t hash) {
    const std::uint32_t bits = hash << kIdBits;
    return bits == 0 ? 1U << kIdBits : bits;
  }
  static std::uint32_t word_of(std::uint32_t hash, Id id) { return tag(hash) | id; }
  // The upper bits choose the group, the lowest eight tell apart who shares it.
  static std::size_t home(const Table& table, std::uint32_t hash) {
    return static_cast<std::size_t>((std::uint64_t{hash} * table.size) >> 32) & ~(kGroup - 1);
  }
  static std::size_t after(const Table& table, std::size_t at) { return at + 1 == table.size ? 0 : at + 1; }

  // All places from its home to where a key stands are taken: the first free one ends the search.
  template <bool kOutgrown, class Match>
  WEIR_HOT static std::size_t place_in(const Table& table, std::uint32_t hash, Match match) {
    std::size_t at = home(table, hash), seen = 0;
    do {
      const PlaceGroup group(&table.words[at]);
      for (unsigned same = group.same(tag(hash), kTagMask); same != 0; same &= same - 1) {
        const std::size_t place = at + static_cast<unsigned>(std::countr_zero(same));
        const std::uint32_t word = table.load(place);
        if ((!kOutgrown || word != kMoved) && match(id_of(word))) return place;
      }
      if (group.has_free()) return kNowhere;
      at = at + kGroup == table.size ? 0 : at + kGroup;
      seen += kGroup;
    } while (seen < table.size);
    return kNowhere;
  }
  template <bool kOutgrown, class Match>
  WEIR_HOT static Id find_in(const Table& table, std::uint32_t hash, Match match) {
    Id found = 0;
    place_in<kOutgrown>(table, hash, [&](Id id) WEIR_HOT_LAMBDA { return match(id) && (found = id) != 0; });
    return found;
  }

  static void insert_in(const Table& table, std::uint32_t hash, Id id) {
    std::size_t at = home(table, hash);
    while (table.load(at) != 0) at = after(table, at);
    table.store(at, word_of(hash, id));
  }

  template <class HashOf>
  static void close_gap(const Table& table, std::size_t gap, HashOf hash_of) {
    const std::size_t size = table.size;
    const auto distance = [size](std::size_t from, std::size_t to) {
      return to >= from ? to - from : to + size - from;
    };
    for (std::size_t at = after(table, gap);; at = after(table, at)) {
      const std::uint32_t word = table.load(at);
      if (word == 0) break;
      if (distance(home(table, hash_of(id_of(word))), at) < distance(gap, at)) continue;
      table.store(gap, word);
      gap = at;
    }
    table.store(gap, 0);
  }

  template <class HashOf>
  void move_some(HashOf hash_of) {
    const Table from(before_.load(std::memory_order_relaxed));
    const Table to(now_.load(std::memory_order_relaxed));
    for (std::size_t n = 0; n < kMovesPerWrite && cold_->moved < from.size; ++n, ++cold_->moved) {
      const std::uint32_t word = from.load(cold_->moved);
      if (word == 0 || word == kMoved) continue;
      insert_in(to, hash_of(id_of(word)), id_of(word));
      from.store(cold_->moved, kMoved);
    }
    if (cold_->moved < from.size) return;
    before_.store(nullptr, std::memory_order_relaxed);
  }

  std::atomic<Word*> now_{nullptr}, before_{nullptr};
  // What no look-up needs stays out of its cache line.
  struct Cold {
    std::size_t moved = 0;  // places of `before_` that are empty or moved
    std::vector<Memory> tables;
  };
  const std::unique_ptr<Cold> cold_ = std::make_unique<Cold>();
};

}  // namespace weir::cache::detail

// SlotIndex: from a key's hash to the number of its entry; the hash table of a shard.
//
// Open addressing with linear probing, four bytes a place: 24 bits of number, 8 bits of hash, so that a
// look-up touches one cache line here and (but for one time in 256) only the right entry. No tombstones: who
// stands behind a gap moves up. It grows by a second table into which the first is moved a few places at a
// time, so no call pays for the whole.
//
// One writer at a time. `find` may run beside a writer if what it answers is checked afterwards (see
// SeqGate): it always ends and touches only memory of this index; for that, outgrown tables are kept when
// `kKeep` is set: they add up to a third of the table, as it grows fourfold.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/cache/zeroed_array.h"

namespace weir::cache::detail {

template <bool kKeep>
class SlotIndex {
 public:
  using Id = std::uint32_t;
  static constexpr Id kMostIds = (Id{1} << 24) - 2;  // from 1

  // Whether one more entry asks for `grow` first.
  bool full(std::size_t entries) const {
    const Table* table = now_.load(std::memory_order_relaxed);
    return table == nullptr || 4 * (entries + 1) > 3 * table->words.size();
  }
  // How many entries the next table is for, if there will never be more than `most`: a part of that, so that the
  // last growth ends there.
  std::size_t next_entries(std::size_t most) const {
    const Table* table = now_.load(std::memory_order_relaxed);
    const std::size_t held = table == nullptr ? 0 : table->words.size() / 4 * 3;
    std::size_t next = std::max(most, held + kFirst);
    while (next / kGrowth >= held + kFirst) next /= kGrowth;
    return next;
  }
  // The table that `grow` takes; made beforehand, since this may throw.
  static auto table_for(std::size_t entries) { return std::make_unique<Table>(entries + entries / 3 + 2); }

  // Goes on in a new table. `hash_of(id)`: the hash of an entry that is in.
  template <class HashOf>
  void grow(auto table, HashOf hash_of) {
    while (before_.load(std::memory_order_relaxed) != nullptr) move_some(hash_of);  // it is done long before
    before_.store(now_.load(std::memory_order_relaxed), std::memory_order_release);
    moved_ = 0;
    now_.store(table.get(), std::memory_order_release);
    tables_.push_back(std::move(table));
  }
  // Room in the list of tables, so that `grow` can't throw.
  void reserve() { tables_.reserve(tables_.size() + 1); }

  // The number for which match(id) is true, or 0.
  template <class Match>
  Id find(std::uint32_t hash, Match match) const {
    if (const Table* table = now_.load(std::memory_order_acquire)) {
      if (const Id id = find_in(*table, hash, match)) return id;
      if (const Table* before = before_.load(std::memory_order_acquire)) return find_in(*before, hash, match);
    }
    return 0;
  }

  template <class HashOf>
  void insert(std::uint32_t hash, Id id, HashOf hash_of) {
    if (before_.load(std::memory_order_relaxed) != nullptr) move_some(hash_of);
    insert_in(*now_.load(std::memory_order_relaxed), hash, id);
  }

  template <class HashOf>
  void erase(std::uint32_t hash, Id id, HashOf hash_of) {
    const auto is_it = [id](Id other) { return other == id; };
    Table& table = *now_.load(std::memory_order_relaxed);
    if (const std::size_t at = place_in(table, hash, is_it); at != kNowhere)
      return close_gap(table, at, hash_of);
    Table& before = *before_.load(std::memory_order_relaxed);
    before.words[place_in(before, hash, is_it)].store(kMoved, std::memory_order_relaxed);
  }

  std::size_t memory_bytes() const {
    std::size_t bytes = 0;
    for (const auto& table : tables_) bytes += table->words.size() * sizeof(std::uint32_t);
    return bytes;
  }

 private:
  static constexpr std::size_t kFirst = 12;              // entries of the first table
  static constexpr std::size_t kGrowth = kKeep ? 4 : 2;  // see above
  static constexpr std::size_t kMovesPerInsert = 8;
  static constexpr std::uint32_t kMoved = ~0U;  // was here; an id that nobody has
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr unsigned kIdBits = 24;

  struct Table {
    explicit Table(std::size_t size) : words(size) {}
    ZeroedArray<std::atomic<std::uint32_t>> words;  // 0: free
  };

  static Id id_of(std::uint32_t word) { return word & ((1U << kIdBits) - 1); }
  static std::uint32_t word_of(std::uint32_t hash, Id id) { return hash << kIdBits | id; }
  // The upper bits choose the place, the lowest eight tell apart who shares it.
  static std::size_t home(const Table& table, std::uint32_t hash) {
    return static_cast<std::size_t>((std::uint64_t{hash} * table.words.size()) >> 32);
  }
  static std::size_t after(const Table& table, std::size_t at) {
    return at + 1 == table.words.size() ? 0 : at + 1;
  }

  template <class Match>
  static std::size_t place_in(const Table& table, std::uint32_t hash, Match match) {
    std::size_t at = home(table, hash);
    for (std::size_t left = table.words.size(); left > 0; --left) {
      const std::uint32_t word = table.words[at].load(std::memory_order_relaxed);
      if (word == 0) return kNowhere;
      if ((word ^ word_of(hash, 0)) >> kIdBits == 0 && word != kMoved && match(id_of(word))) return at;
      at = after(table, at);
    }
    return kNowhere;
  }
  template <class Match>
  static Id find_in(const Table& table, std::uint32_t hash, Match match) {
    Id found = 0;
    place_in(table, hash, [&](Id id) { return match(id) && (found = id) != 0; });
    return found;
  }

  static void insert_in(Table& table, std::uint32_t hash, Id id) {
    std::size_t at = home(table, hash);
    while (table.words[at].load(std::memory_order_relaxed) != 0) at = after(table, at);
    table.words[at].store(word_of(hash, id), std::memory_order_relaxed);
  }

  template <class HashOf>
  static void close_gap(Table& table, std::size_t gap, HashOf hash_of) {
    const std::size_t size = table.words.size();
    const auto distance = [size](std::size_t from, std::size_t to) {
      return to >= from ? to - from : to + size - from;
    };
    for (std::size_t at = after(table, gap);; at = after(table, at)) {
      const std::uint32_t word = table.words[at].load(std::memory_order_relaxed);
      if (word == 0) break;
      if (distance(home(table, hash_of(id_of(word))), at) < distance(gap, at)) continue;
      table.words[gap].store(word, std::memory_order_relaxed);
      gap = at;
    }
    table.words[gap].store(0, std::memory_order_relaxed);
  }

  template <class HashOf>
  void move_some(HashOf hash_of) {
    Table& from = *before_.load(std::memory_order_relaxed);
    Table& to = *now_.load(std::memory_order_relaxed);
    for (std::size_t n = 0; n < kMovesPerInsert && moved_ < from.words.size(); ++n, ++moved_) {
      const std::uint32_t word = from.words[moved_].load(std::memory_order_relaxed);
      if (word == 0 || word == kMoved) continue;
      insert_in(to, hash_of(id_of(word)), id_of(word));
      from.words[moved_].store(kMoved, std::memory_order_relaxed);
    }
    if (moved_ < from.words.size()) return;
    before_.store(nullptr, std::memory_order_relaxed);
    if constexpr (!kKeep) tables_.erase(tables_.begin());
  }

  std::atomic<Table*> now_{nullptr}, before_{nullptr};
  std::size_t moved_ = 0;  // places of `before_` that are empty or moved
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace weir::cache::detail

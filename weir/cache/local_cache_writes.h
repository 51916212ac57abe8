// What changes a LocalCache. Included by local_cache.h.
#pragma once

#include "weir/cache/local_cache.h"

namespace weir::cache {

template <class K, class Stored, class Hash>
BasicLocalCache<K, Stored, Hash>::BasicLocalCache(LocalCacheOptions options, Hooks hooks)
    : seed_(detail::seed_for(options)),
      shard_mask_(detail::shards_for(options) - 1),
      bound_(options.bound),
      shards_(std::make_unique<Shard[]>(shard_count())),
      tuner_(seed_),
      clock_(*options.clock),
      idle_(options.idle),
      hooks_(std::move(hooks)),
      watched_(hooks_.removed != nullptr),
      capacity_(0),
      share_(0),
      timed_(options.idle != kNever) {
  if (options.idle <= Duration::zero()) throw std::invalid_argument("an idle time must be more than zero");
  // Where `most_entries` is what will really be there, few large steps leave least behind.
  for (unsigned i = 0; i < shard_count(); ++i) shards_[i].set_up(seed_ + i, bound_ == Bound::weights ? 4 : 2);
  set_capacity(options.capacity);
}

// First those go down that have more than their new share, then the others go up: so the budgets never sum to more
// than the larger of the two capacities.
template <class K, class Stored, class Hash>
void BasicLocalCache<K, Stored, Hash>::set_capacity(std::size_t capacity) {
  Trash trash(&hooks_.removed);
  const std::lock_guard moving(budgets_);
  share_.store(capacity / shard_count(), std::memory_order_relaxed);
  const SteadyTime now = now_if_timed();
  const auto resize = [&](bool down) {
    for (unsigned i = 0; i < shard_count(); ++i) {
      Shard& shard = shards_[i];
      const std::uint64_t budget = share() + (i < capacity % shard_count() ? 1 : 0);
      const Lock lock(shard.mutex);
      if ((budget < shard.budget()) != down) continue;
      shard.set_now(now);
      shard.set_budget(budget, most_entries(budget), ready_for(budget));
      shard.make_room(0, trash);
    }
  };
  resize(true);
  capacity_.store(capacity, std::memory_order_relaxed);
  resize(false);
}

// Where the number of entries is known to be small, the policy is made ready for all of them.
template <class K, class Stored, class Hash>
std::size_t BasicLocalCache<K, Stored, Hash>::ready_for(std::uint64_t budget) const {
  constexpr std::uint64_t kMost = 16'384;
  return bound_ == Bound::weights && budget <= kMost ? budget : 0;
}

// Saturated: what is too heavy must not become light by an overflow.
template <class K, class Stored, class Hash>
std::uint64_t BasicLocalCache<K, Stored, Hash>::whole_weight(const K& key, std::size_t weight) const {
  if (bound_ == Bound::weights) return weight == 0 ? 1 : weight;
  const std::uint64_t overhead = kEntryOverhead + key_heap_bytes(key);
  return weight > UINT64_MAX - overhead ? UINT64_MAX : weight + overhead;
}
template <class K, class Stored, class Hash>
std::size_t BasicLocalCache<K, Stored, Hash>::given_of(const K& key, std::uint64_t whole) const {
  return bound_ == Bound::weights ? whole : whole - kEntryOverhead - key_heap_bytes(key);
}

template <class K, class Stored, class Hash>
void BasicLocalCache<K, Stored, Hash>::note_times(Keep keep) {
  if ((keep.ttl != kNever || keep.refresh_after != kNever) && !timed_.load(std::memory_order_relaxed))
    timed_.store(true, std::memory_order_relaxed);
}

template <class K, class Stored, class Hash>
bool BasicLocalCache<K, Stored, Hash>::put_weighed(const K& key, Stored value, std::size_t weight,
                                                   Keep keep) {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  const std::uint64_t need = whole_weight(key, weight);
  const bool ordinary = need == 1 && keep.ttl == kNever && keep.refresh_after == kNever && !watched_ &&
                        !timed_.load(std::memory_order_relaxed);
  if (ordinary && replace_quickly(shard, hash, key, value)) [[likely]]
    return true;
  return put_anew(shard, hash, key, std::move(value), need, keep);
}

template <class K, class Stored, class Hash>
WEIR_HOT bool BasicLocalCache<K, Stored, Hash>::replace_quickly(Shard& shard, std::uint64_t hash,
                                                                const K& key, Stored& value) {
  shard.prefetch(low(hash));
  const std::lock_guard lock(shard.mutex);
  return shard.replace_quickly(low(hash), key, value);
}

template <class K, class Stored, class Hash>
WEIR_COLD bool BasicLocalCache<K, Stored, Hash>::put_anew(Shard& shard, std::uint64_t hash, const K& key,
                                                          Stored&& value, std::uint64_t need, Keep keep) {
  note_times(keep);
  const SteadyTime now = now_if_timed();
  const Times times = times_of(now, keep);
  K own = key;
  Trash trash(&hooks_.removed);
  if (keep.ttl <= Duration::zero() || need > capacity()) {
    const Lock lock(shard.mutex);
    shard.set_now(now);
    ++shard.stats.refused;
    return drop_locked(shard, shard.find(low(hash), key), trash);
  }
  const Lock lock = lock_with_room(shard, need, now, trash);
  shard.set_now(now);
  return put_locked(shard, hash, std::move(own), std::move(value), need, times, trash);
}

template <class K, class Stored, class Hash>
WEIR_HOT bool BasicLocalCache<K, Stored, Hash>::put_locked(Shard& shard, std::uint64_t hash, K&& key,
                                                           Stored&& value, std::uint64_t need, Times times,
                                                           Trash& trash) {
  shard.sweep(kSweepPerPut, trash);
  if (const Id old = shard.find(low(hash), key)) {
    const bool dead = shard.dead(old);
    if (!dead && shard.replace(old, value, need, times, trash)) {
      ++shard.stats.puts;
      return true;
    }
    // What can't come in replaces nothing: the key is gone.
    const Removal live = need > shard.budget() ? Removal::erased : Removal::replaced;
    shard.take_out(old, dead ? Removal::expired : live, trash);
  }
  if (!shard.make_room(need, trash)) {
    ++shard.stats.refused;
    return false;
  }
  const Id id = shard.prepare(need == 1 && times.none());
  shard.insert(id, low(hash), std::move(key), std::move(value), need, times, tuner_.choice());
  ++shard.stats.puts;
  if (tuner_.samples(hash)) feed(hash, shard, true);
  return true;
}

// Always false: the entry isn't here afterwards. The shard knows the time.
template <class K, class Stored, class Hash>
bool BasicLocalCache<K, Stored, Hash>::drop_locked(Shard& shard, Id id, Trash& trash) {
  if (id != 0) shard.take_out(id, shard.dead(id) ? Removal::expired : Removal::erased, trash);
  return false;
}

// The shard's lock, after budget was moved to it if it had too little. Others may take that away at once;
// then it is tried again, a few times.
template <class K, class Stored, class Hash>
WEIR_HOT auto BasicLocalCache<K, Stored, Hash>::lock_with_room(Shard& shard, std::uint64_t weight,
                                                               SteadyTime now, Trash& trash) -> Lock {
  constexpr int kTries = 8;
  for (int tries = 0;; ++tries) {
    if (shard.budget() < std::max(weight, share() / 2)) [[unlikely]]
      borrow(shard, weight, now, trash);
    Lock lock(shard.mutex);
    if (shard.budget() >= weight || tries == kTries) [[likely]]
      return lock;
  }
}

// Moves budget to a shard which has too little: what others have above their share, until it has its own
// share; and if that isn't enough for the entry, from all alike. They evict what they have no room for then.
template <class K, class Stored, class Hash>
WEIR_COLD void BasicLocalCache<K, Stored, Hash>::borrow(Shard& to, std::uint64_t weight, SteadyTime now,
                                                        Trash& trash) {
  const std::lock_guard moving(budgets_);
  {
    // What may throw comes before anything is taken away.
    const Lock lock(to.mutex);
    to.make_ready(most_entries(std::max(weight, share()) + 2 * shard_count()));
  }
  std::uint64_t got = 0;
  const auto take = [&](Shard& from, std::uint64_t most) {
    const Lock lock(from.mutex);
    from.set_now(now);
    const std::uint64_t part = std::min(most, from.budget());
    from.set_budget(from.budget() - part, most_entries(from.budget() - part), 0);
    from.make_room(0, trash);
    got += part;
  };
  const auto lacking = [&](std::uint64_t want) { return want - std::min(want, to.budget() + got); };
  for (unsigned i = 0; i < shard_count(); ++i)
    if (Shard& from = shards_[i]; &from != &to && from.budget() > share())
      take(from, std::min(from.budget() - share(), lacking(std::max(weight, share()))));
  for (unsigned i = 0, left = shard_mask_; i < shard_count() && lacking(weight) > 0; ++i)
    if (&shards_[i] != &to) take(shards_[i], lacking(weight) / left-- + 1);
  for (unsigned i = 0; i < shard_count() && lacking(weight) > 0; ++i)
    if (&shards_[i] != &to) take(shards_[i], lacking(weight));
  const Lock lock(to.mutex);
  to.set_budget(to.budget() + got, most_entries(to.budget() + got), 0);
}

// make(shard, id, now) -> std::optional<Rewritten>, under the lock; `id` is 0 when the key isn't here, and nothing
// leaves it as it is. A value that needs room from other shards first is made a second time. True when it was put.
template <class K, class Stored, class Hash>
template <class Make>
bool BasicLocalCache<K, Stored, Hash>::rewrite(const K& key, Make make) {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  std::uint64_t room = 0;
  for (bool again = false;; again = true) {
    const SteadyTime now = clock_.steady_now();
    K own = key;
    std::optional<Rewritten> made;
    Trash trash(&hooks_.removed);
    const Lock lock = lock_with_room(shard, room, now, trash);
    const Id id = find_alive(shard, hash, key, trash);
    made = make(shard, id, now);
    if (!made) return false;
    if (!made->value) return drop_locked(shard, id, trash);
    if (!made->lasts || made->need > capacity()) {
      ++shard.stats.refused;
      return drop_locked(shard, id, trash);  // the old value would be a lie
    }
    if (made->need > shard.budget() && !again) {
      room = made->need;
      continue;
    }
    return put_locked(shard, hash, std::move(own), *std::move(made->value), made->need, made->times, trash);
  }
}

template <class K, class Stored, class Hash>
template <class Change, class Weigh>
bool BasicLocalCache<K, Stored, Hash>::update(const K& key, Change change, Weigh weigh) {
  return rewrite(key, [&](const Shard& shard, Id id, SteadyTime) -> std::optional<Rewritten> {
    if (id == 0) return std::nullopt;
    const auto& current = shard.value(id);
    if (is_null(current)) return std::nullopt;
    Found changed = change(target(current));
    if (!changed) return std::nullopt;
    const std::uint64_t need = whole_weight(key, weigh(*changed));
    return Rewritten{std::move(changed), need, times_at(shard, id)};
  });
}

template <class K, class Stored, class Hash>
template <class Make>
bool BasicLocalCache<K, Stored, Hash>::compute(const K& key, Make make) {
  return rewrite(key, [&](const Shard& shard, Id id, SteadyTime now) -> std::optional<Rewritten> {
    std::optional<Computed> made;
    if (id == 0) {
      made = make(static_cast<const Stored*>(nullptr));
    } else {
      const auto& current = shard.value(id);
      made = make(is_null(current) ? nullptr : &current);
    }
    if (!made) return Rewritten{};
    const std::size_t weight = made->weight ? *made->weight : given_weight(key, made->value);
    const bool lasts = made->keep.ttl > Duration::zero();
    if (lasts) note_times(made->keep);
    return Rewritten{std::move(made->value), whole_weight(key, weight), times_of(now, made->keep), lasts};
  });
}

template <class K, class Stored, class Hash>
template <class Load>
auto BasicLocalCache<K, Stored, Hash>::load_all(std::span<const K> keys, Load load, Keep keep)
    -> std::vector<Found> {
  std::vector<Found> found(keys.size());
  std::vector<K> missing;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Hit hit = look(keys[i]);
    if (!hit.known) {
      missing.push_back(keys[i]);
      places.push_back(i);
    }
    found[i] = std::move(hit.value);
  }
  if (missing.empty()) return found;
  std::unordered_map<K, Stored, SeededHash<K, Hash>> loaded(missing.size(), SeededHash<K, Hash>{seed_});
  for (auto&& [key, value] : load(std::span<const K>(missing))) loaded.insert_or_assign(key, value);
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (const auto at = loaded.find(missing[i]); at != loaded.end()) found[places[i]] = at->second;
  for (auto& [key, value] : loaded) put(key, std::move(value), keep);
  return found;
}

template <class K, class Stored, class Hash>
bool BasicLocalCache<K, Stored, Hash>::erase(const K& key) {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  const SteadyTime now = now_if_timed();
  Trash trash(&hooks_.removed);
  const Lock lock(shard.mutex);
  shard.set_now(now);
  const Id id = shard.find(low(hash), key);
  drop_locked(shard, id, trash);
  return id != 0;
}

template <class K, class Stored, class Hash>
template <class Drop>
std::size_t BasicLocalCache<K, Stored, Hash>::erase_if(Drop drop) {
  std::size_t count = 0;
  for (unsigned i = 0; i < shard_count(); ++i) {
    Shard& shard = shards_[i];
    const SteadyTime now = now_if_timed();
    Trash trash(&hooks_.removed);
    const Lock lock(shard.mutex);
    shard.set_now(now);
    for (Id id = shard.first(), next = 0; id != 0; id = next) {
      next = shard.next(id);
      const auto& key = shard.key(id);
      const auto& value = shard.value(id);
      if (!drop(key, value)) continue;
      drop_locked(shard, id, trash);
      ++count;
    }
  }
  return count;
}

// The entry if it is alive; a dead one is taken out.
template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::find_alive(Shard& shard, std::uint64_t hash, const K& key,
                                                  Trash& trash) -> Id {
  shard.set_now(clock_.steady_now());
  const Id id = shard.find(low(hash), key);
  if (id == 0 || !shard.dead(id)) return id;
  shard.evict(id, trash);
  return 0;
}

}  // namespace weir::cache

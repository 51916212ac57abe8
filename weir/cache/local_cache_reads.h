// The look-ups of a LocalCache. Included by local_cache.h.
#pragma once

#include "weir/cache/local_cache.h"

namespace weir::cache {

// The path of a hit in a cache without times, which calls nothing. Whatever is out of the ordinary is left to
// `look`, which begins anew: so nothing may be counted here that isn't a whole hit. Whether there are times is
// asked while no writer is at the shard: who puts the first one says so before.
template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::find(const K& key) -> Found {
  const unsigned slot = detail::ThreadSlot::mine_if_any();
  if (slot >= detail::ThreadSlot::kSlots) [[unlikely]]
    return find_anew(key);
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  const auto untimed = [this]() WEIR_HOT_LAMBDA { return !timed_.load(std::memory_order_relaxed); };
  typename Shard::Place place;
  if constexpr (Shard::kReadersCheck) {
    Found value;
    if (shard.copy_at_home(low(hash), key, place, value, untimed) && quick_hit(slot, place.mark(), hash))
        [[likely]]
      return value;
  } else if (const typename Shard::Reader reader(shard, slot); reader) [[likely]] {
    if (untimed() && shard.is_at_home(low(hash), key, place)) [[likely]] {
      const Stored& value = place.pair().value.get();
      if (!is_null(value) && quick_hit(slot, place.mark(), hash)) [[likely]]
        return value;
    }
  }
  return find_anew(key);
}

template <class K, class Stored, class Hash>
WEIR_COLD auto BasicLocalCache<K, Stored, Hash>::find_anew(const K& key) -> Found {
  return look(key).value;
}

// Counts a hit of a value, if that is all there is to do.
template <class K, class Stored, class Hash>
WEIR_HOT bool BasicLocalCache<K, Stored, Hash>::quick_hit(unsigned slot, Mark& mark, std::uint64_t hash) {
  if (const std::uint8_t marks = mark.load(std::memory_order_relaxed); marks < Shard::kMostMarks) {
    if (tuner_.samples(hash)) [[unlikely]]
      return false;
    mark.store(marks + 1, std::memory_order_relaxed);
  }
  counters_.add_own(slot, kHit);
  return true;
}

template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::look(const K& key, Duration retry) -> Hit {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  if constexpr (Shard::kReadersCheck) {
    typename Shard::Glimpse seen;
    if (!shard.glimpse(low(hash), key, seen)) [[unlikely]] {
      counters_.add(kMiss);
      return {};
    }
    Verdict verdict;
    if (seen.extra != nullptr && !seen.times.none()) verdict = judge(*seen.extra, seen.times, retry);
    if (verdict.over) [[unlikely]] {
      bury(shard, hash, key);
      counters_.add(kMiss);
      return {};
    }
    touch(shard, *seen.mark, hash);
    counters_.add(verdict.stale ? kStaleHit : kHit);
    return {true, verdict.stale, verdict.refresh, seen.value};
  } else {
    {
      const typename Shard::Reader reader(shard, detail::ThreadSlot::mine());
      if (!reader) return look_locked(shard, hash, key, retry);
      const Id id = shard.find(low(hash), key);
      if (id == 0) [[unlikely]] {
        counters_.add(kMiss);
        return {};
      }
      bool over = false;
      Hit hit = hit_at(shard, id, hash, retry, over);
      if (!over) [[likely]]
        return hit;
    }
    bury(shard, hash, key);  // not while this thread keeps writers out
    return {};
  }
}

// Where a writer was at the shard, or this thread has no slot.
template <class K, class Stored, class Hash>
WEIR_COLD auto BasicLocalCache<K, Stored, Hash>::look_locked(Shard& shard, std::uint64_t hash, const K& key,
                                                             Duration retry) -> Hit {
  Trash trash(&hooks_.removed);
  const Lock lock(shard.mutex);
  const Id id = shard.find(low(hash), key);
  if (id == 0) {
    counters_.add(kMiss);
    return {};
  }
  bool over = false;
  Hit hit = hit_at(shard, id, hash, retry, over);
  if (over) {
    shard.set_now(clock_.steady_now());
    if (shard.dead(id)) shard.evict(id, trash);
  }
  return hit;
}

// Nobody writes meanwhile. An entry that is `over` is a miss.
template <class K, class Stored, class Hash>
WEIR_HOT auto BasicLocalCache<K, Stored, Hash>::hit_at(Shard& shard, Id id, std::uint64_t hash,
                                                       Duration retry, bool& over) -> Hit {
  Verdict verdict;
  if (Extra* const extra = shard.extra(id); extra != nullptr)
    if (const Times times = extra->times(); !times.none()) verdict = judge(*extra, times, retry);
  over = verdict.over;
  if (over) [[unlikely]] {
    counters_.add(kMiss);
    return {};
  }
  touch(shard, shard.mark(id), hash);
  const Stored& value = shard.value(id);
  counters_.add(verdict.stale ? kStaleHit : is_null(value) ? kNegativeHit : kHit);
  return {true, verdict.stale, verdict.refresh, value};
}

template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::judge(Extra& extra, Times times, Duration retry) const -> Verdict {
  const SteadyTime now = clock_.steady_now();
  const detail::Nanos nanos = detail::to_nanos(now);
  if (times.over(nanos)) return {.over = true};
  // Beside a writer the entry may be another one's by now, which at worst lives a little longer or is refreshed
  // a little later. Written only when it moves by a sixteenth, so that a popular entry's line isn't.
  if (times.idle != detail::kNoTime)
    if (const detail::Nanos idle = detail::after(now, idle_); idle - times.idle > (idle - nanos) / 16)
      extra.idle.store(idle, std::memory_order_relaxed);
  if (!detail::reached(times.refresh, nanos)) return {};
  detail::Nanos until = extra.retry.load(std::memory_order_relaxed);
  const bool due = until == detail::kNoTime || until <= nanos;
  return {.stale = true,
          .refresh = due && extra.retry.compare_exchange_strong(until, detail::after(now, retry))};
}

template <class K, class Stored, class Hash>
WEIR_HOT void BasicLocalCache<K, Stored, Hash>::touch(Shard& shard, Mark& mark, std::uint64_t hash) {
  if (Shard::raise_mark(mark) && tuner_.samples(hash)) [[unlikely]]
    feed(hash, shard, false);
}

template <class K, class Stored, class Hash>
WEIR_COLD void BasicLocalCache<K, Stored, Hash>::feed(std::uint64_t hash, const Shard& shard,
                                                      bool may_build) {
  tuner_.feed(hash, shard.entries_when_full() * shard_count(), may_build);
}

// A reader has met a dead entry. When others are at the shard, they or the next will do it.
template <class K, class Stored, class Hash>
WEIR_COLD void BasicLocalCache<K, Stored, Hash>::bury(Shard& shard, std::uint64_t hash, const K& key) {
  Trash trash(&hooks_.removed);
  const Lock lock(shard.mutex, std::try_to_lock);
  if (lock) find_alive(shard, hash, key, trash);
}

template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::peek(const K& key) const -> Hit {
  const std::uint64_t hash = hash_of(key);
  Shard& shard = shard_of(hash);
  const auto answer = [&](const Times& times, const Stored& value) -> Hit {
    const detail::Nanos now = times.none() ? 0 : detail::to_nanos(clock_.steady_now());
    if (times.over(now)) return {};
    return {true, detail::reached(times.refresh, now), false, value};
  };
  if constexpr (Shard::kReadersCheck) {
    typename Shard::Glimpse seen;
    return shard.glimpse(low(hash), key, seen) ? answer(seen.times, *seen.value) : Hit{};
  } else {
    const Lock lock(shard.mutex);
    const Id id = shard.find(low(hash), key);
    if (id == 0) return {};
    return answer(times_at(shard, id), shard.value(id));
  }
}

template <class K, class Stored, class Hash>
auto BasicLocalCache<K, Stored, Hash>::find_all(std::span<const K> keys) -> std::vector<Found> {
  std::vector<Found> found;
  found.reserve(keys.size());
  for (const K& key : keys) found.push_back(find(key));
  return found;
}

template <class K, class Stored, class Hash>
template <class Visit>
void BasicLocalCache<K, Stored, Hash>::for_each(Visit visit) const {
  for (unsigned shard = 0; shard < shard_count(); ++shard) for_each_in(shard, visit);
}

template <class K, class Stored, class Hash>
template <class Visit>
void BasicLocalCache<K, Stored, Hash>::for_each_in(unsigned number, Visit visit) const {
  Shard& shard = shards_[number];
  const Lock lock(shard.mutex);
  const detail::Nanos now = detail::to_nanos(clock_.steady_now());
  for (Id id = shard.first(); id != 0; id = shard.next(id)) {
    const Times times = times_at(shard, id);
    if (times.over(now)) continue;
    const auto& key = shard.key(id);
    const auto& value = shard.value(id);
    visit(key, value, info_of(shard, id, key, times, now));
  }
}

template <class K, class Stored, class Hash>
std::optional<EntryInfo> BasicLocalCache<K, Stored, Hash>::inspect(const K& key) const {
  const std::uint64_t hash = hash_of(key);
  const Shard& shard = shard_of(hash);
  const Lock lock(shard.mutex);
  const Id id = shard.find(low(hash), key);
  if (id == 0) return std::nullopt;
  const detail::Nanos now = detail::to_nanos(clock_.steady_now());
  const Times times = times_at(shard, id);
  if (times.over(now)) return std::nullopt;
  const auto& own = shard.key(id);
  return info_of(shard, id, own, times, now);
}

template <class K, class Stored, class Hash>
EntryInfo BasicLocalCache<K, Stored, Hash>::info_of(const Shard& shard, Id id, const K& key,
                                                    const Times& times, detail::Nanos now) const {
  const auto left = [now](detail::Nanos time) -> std::optional<Duration> {
    if (time == detail::kNoTime) return std::nullopt;
    return Duration(time - now);
  };
  return {given_of(key, shard.weight(id)), left(times.expires), left(times.refresh)};
}

template <class K, class Stored, class Hash>
std::size_t BasicLocalCache<K, Stored, Hash>::size() const {
  std::size_t sum = 0;
  for (unsigned i = 0; i < shard_count(); ++i) sum += shards_[i].size();
  return sum;
}

template <class K, class Stored, class Hash>
std::size_t BasicLocalCache<K, Stored, Hash>::weight() const {
  const std::lock_guard lock(budgets_);  // or budget could be seen at its old place and at its new one
  std::size_t sum = 0;
  for (unsigned i = 0; i < shard_count(); ++i) sum += shards_[i].used();
  return sum;
}

template <class K, class Stored, class Hash>
LocalCacheStats BasicLocalCache<K, Stored, Hash>::stats() const {
  LocalCacheStats sum;
  for (unsigned i = 0; i < shard_count(); ++i) {
    const Lock lock(shards_[i].mutex);
    sum += shards_[i].stats;
  }
  sum.hits = counters_.total(kHit);
  sum.negative_hits = counters_.total(kNegativeHit);
  sum.stale_hits = counters_.total(kStaleHit);
  sum.misses = counters_.total(kMiss);
  return sum;
}

}  // namespace weir::cache

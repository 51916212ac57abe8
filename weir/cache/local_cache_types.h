// What a LocalCache takes and tells: options, look-ups' answers, why an entry went, statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "weir/base/clock.h"
#include "weir/cache/ttl.h"

namespace weir::cache {

// What the capacity counts.
enum class Bound : std::uint8_t {
  bytes,    // memory: the cache adds to each weight what it spends on the entry itself
  weights,  // the weights as they are given, at least 1 each; weights of 1 bound the number of entries
};

struct LocalCacheOptions {
  std::size_t capacity = std::size_t{16} << 20;  // see `bound`
  Bound bound = Bound::bytes;
  unsigned shards = 0;  // at most 256, rounded up to a power of two; 0: by the capacity
  // An entry ends when nobody asked for it for so long (to a sixteenth); kNever: it doesn't.
  Duration idle = kNever;
  const Clock* clock = &Clock::system();  // must outlive the cache
  std::uint64_t seed = 0;                 // of the hash; 0: a secret one
};

// What a value takes where nobody weighs it: its sizeof and, of a string or a vector, its room. A type of your own
// that owns memory needs a weigher, or the capacity doesn't bound that memory.
template <class V>
std::size_t own_bytes(const V& value) {
  if constexpr (requires {
                  typename V::value_type;
                  value.capacity();
                  value.data();
                }) {
    return sizeof(V) + value.capacity() * sizeof(typename V::value_type);
  } else {
    return sizeof(V);
  }
}

// Why an entry left. Caffeine, moka and otter let too heavy a value in, tell that the old one was replaced, and then that
// the new one was evicted. Here it never comes in, so there is one to tell of, and its key is gone: erased.
enum class Removal : std::uint8_t {
  erased,  // by erase, erase_if, clear; or by a put, update or compute whose value can't be kept (too heavy, ttl <= 0)
  replaced,  // by a new value, which is here now
  expired,   // its time was over, whatever call has found that
  evicted,   // for room
};
const char* name_of(Removal why);

// Told of what left: after the locks are let go, by the thread whose call took it out, so in no order between
// threads. It may call the cache. It must not throw. Not told of what is there when the cache goes.
template <class K, class Stored>
using RemovalListener = std::function<void(const K&, const Stored&, Removal)>;

template <class K, class Stored>
struct LocalCacheHooks {
  // The weight of an entry that is put without one. By default 1, and with Bound::bytes `own_bytes` of the value.
  std::function<std::size_t(const K&, const Stored&)> weigher{};
  RemovalListener<K, Stored> removed{};
};

// How long a value is kept.
struct Keep {
  Duration ttl = kNever;            // after that nobody sees it; zero or less: it isn't kept at all
  Duration refresh_after = kNever;  // from then on `look` asks one reader at a time for a refresh
};

// What a walk over the entries sees of one.
struct EntryInfo {
  std::size_t weight;             // as it was given
  std::optional<Duration> left;   // of its TTL; none: it has none
  std::optional<Duration> fresh;  // until it is to be refreshed, below zero if that is due; none: never
};

namespace detail {
template <class T>
inline constexpr bool kIsShared = false;
template <class T>
inline constexpr bool kIsShared<std::shared_ptr<T>> = true;
}  // namespace detail

// What a look-up finds out.
template <class Stored>
struct BasicHit {
  bool known = false;    // it is here
  bool stale = false;    // past its time to refresh
  bool refresh = false;  // and this caller is the one to do that
  // Shared values: null when it isn't known, or known to be absent. Others: nothing when it isn't known.
  std::conditional_t<detail::kIsShared<Stored>, Stored, std::optional<Stored>> value{};
};
template <class V>
using Hit = BasicHit<std::shared_ptr<const V>>;

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

}  // namespace weir::cache

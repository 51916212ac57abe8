// KeyHash: the seeded hash of a cache's keys. Whoever chooses the keys doesn't know the seed, so nobody can
// choose keys that all fall into one bucket.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weir/base/hash.h"

namespace weir::cache {

// Two multiplications to 128 bits whose halves are folded ("folded multiply", as in wyhash and foldhash). Both
// factors are fixed: a secret one would, for some seeds, leave keys that follow each other side by side.
inline std::uint64_t fold_hash(std::uint64_t key, std::uint64_t seed) {
  __extension__ using Wide = unsigned __int128;
  const auto fold = [](std::uint64_t a, std::uint64_t b) {
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  return fold(fold(key ^ seed, 0x9e3779b97f4a7c15) ^ std::rotl(seed, 32), 0xa0761d6478bd642f);
}

// For integers, enumerations, strings, and pairs and tuples of them. For a key of your own: a type with the
// same call operator, given to the cache as `Hash`, or a specialization of this one. The 64 bits must all be
// well mixed.
template <class K>
struct KeyHash {
  std::uint64_t operator()(const K& key, std::uint64_t seed) const {
    if constexpr (std::is_integral_v<K> || std::is_enum_v<K>) {
      return fold_hash(static_cast<std::uint64_t>(key), seed);
    } else {
      static_assert(std::is_convertible_v<const K&, std::string_view>, "give the cache a Hash for this key");
      return hash64(std::string_view(key), seed);
    }
  }
};

template <class A, class B>
struct KeyHash<std::pair<A, B>> {
  std::uint64_t operator()(const std::pair<A, B>& key, std::uint64_t seed) const {
    return KeyHash<B>{}(key.second, KeyHash<A>{}(key.first, seed));
  }
};

template <class... T>
struct KeyHash<std::tuple<T...>> {
  std::uint64_t operator()(const std::tuple<T...>& key, std::uint64_t seed) const {
    std::apply([&](const T&... part) { ((seed = KeyHash<T>{}(part, seed)), ...); }, key);
    return seed;
  }
};

// A hash with its seed, in the shape that std::unordered_map asks for.
template <class K, class Hash>
struct SeededHash {
  std::uint64_t seed = 0;
  std::size_t operator()(const K& key) const { return static_cast<std::size_t>(Hash{}(key, seed)); }
};

// What a key owns beside its own sizeof.
template <class A, class B>
std::size_t key_heap_bytes(const std::pair<A, B>& key);
template <class... T>
std::size_t key_heap_bytes(const std::tuple<T...>& key);
template <class K>
std::size_t key_heap_bytes(const K& key) {
  if constexpr (std::is_same_v<K, std::string>) {
    // Of the copy that the cache keeps, which has no room to spare; the allocator rounds up and keeps a header.
    return key.size() < sizeof(std::string) / 2 ? 0 : key.size() + 1 + 16;
  } else {
    return 0;
  }
}
template <class A, class B>
std::size_t key_heap_bytes(const std::pair<A, B>& key) {
  return key_heap_bytes(key.first) + key_heap_bytes(key.second);
}
template <class... T>
std::size_t key_heap_bytes(const std::tuple<T...>& key) {
  return std::apply([](const T&... part) { return (std::size_t{0} + ... + key_heap_bytes(part)); }, key);
}

}  // namespace weir::cache

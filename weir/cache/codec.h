// Codec: how keys and values of a ReadThrough look as bytes, for the level that nodes share.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "weir/base/clock.h"

namespace weir::cache {

// All three may throw, whatever they like: it is counted, logged, and fails no read. A throw of `decode` is as good as
// nothing, what can't be encoded or named isn't shared. Thread-safe, as functions of their arguments.
// Bytes that come back damaged, or were written by somebody else, don't reach `decode`: a seal tells.
// A new format of V needs a new name of the level (RemoteCacheOptions::version).
template <class K, class V>
struct Codec {
  std::function<std::string(const K&)> key;  // short, not empty, different for different keys
  std::function<std::string(const V&)> encode;
  std::function<std::optional<V>(std::string_view)> decode;  // nothing: these bytes are no V
};

// Integers and texts as keys: as they are written.
template <class K>
std::string key_text(const K& key) {
  if constexpr (std::is_integral_v<K>) {
    return std::to_string(key);
  } else {
    return std::string(key);
  }
}

// What key_text has written, read again; nothing: this is no such key.
template <class K>
std::optional<K> key_of_text(std::string_view text) {
  if constexpr (std::is_integral_v<K>) {
    K key{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return key;
  } else {
    return K(text);
  }
}

// The codec of plain texts under such keys.
template <class K>
Codec<K, std::string> text_codec() {
  return {.key = key_text<K>,
          .encode = [](const std::string& text) { return text; },
          .decode = [](std::string_view bytes) { return std::optional(std::string(bytes)); }};
}

// What travels with a value: when it was loaded, and how long that took.
struct Origin {
  WallTime loaded_at;
  std::chrono::microseconds took{0};
};

// Puts value and origin under a seal: a checksum of both, of the key and of the cache's name. 28 bytes more.
std::string seal(std::string_view name, std::string_view key, std::string_view value, Origin origin);
struct Unsealed {
  std::string_view value;  // in the bytes that were given
  Origin origin;
};
// Nothing when the bytes are damaged, are of another key, or were never sealed.
std::optional<Unsealed> unseal(std::string_view name, std::string_view key, std::string_view bytes);

}  // namespace weir::cache

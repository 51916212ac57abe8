// What a call takes out of a cache: kept until the locks are let go, then told to the removal listener and
// destroyed, so that neither a destructor nor the listener runs under a lock. Declare it before the lock.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/cache/local_cache_types.h"

namespace weir::cache::detail {

template <class K, class V>
class Trash {
 public:
  explicit Trash(const RemovalListener<K, V>* listener = nullptr)
      : listener_(listener != nullptr && *listener ? listener : nullptr) {}
  Trash(const Trash&) = delete;
  Trash& operator=(const Trash&) = delete;
  ~Trash() {
    if (listener_ == nullptr) return;
    for (std::size_t i = 0; i < count_; ++i) {
      const Piece& piece = i < few_.size() ? *few_[i] : more_[i - few_.size()];
      (*listener_)(*piece.key, piece.value, piece.why);
    }
  }

  // So that the next `add` can't throw.
  void reserve() {
    if (kept() && count_ >= few_.size()) more_.reserve(std::bit_ceil(more_.size() + 1));
  }
  // The same for a value whose key stays in the cache, of which the listener needs a copy.
  template <class Cell>
  std::optional<K> prepare(const Cell& key) {
    reserve();
    if (listener_ == nullptr) return std::nullopt;
    return key.copy();
  }
  void add(std::optional<K> key, V value, Removal why) {
    if (!kept()) return;
    if (count_ < few_.size()) {
      few_[count_].emplace(std::move(key), std::move(value), why);
    } else {
      more_.emplace_back(std::move(key), std::move(value), why);
    }
    ++count_;
  }

 private:
  static constexpr bool kWorkToDestroy =
      !std::is_trivially_destructible_v<K> || !std::is_trivially_destructible_v<V>;
  struct Piece {
    Piece(std::optional<K> k, V v, Removal w) : key(std::move(k)), value(std::move(v)), why(w) {}
    std::optional<K> key;
    V value;
    Removal why;
  };

  bool kept() const { return kWorkToDestroy || listener_ != nullptr; }

  const RemovalListener<K, V>* const listener_;
  std::size_t count_ = 0;
  std::array<std::optional<Piece>, 2> few_;  // usually a piece or two, so these need no memory of their own
  std::vector<Piece> more_;
};

}  // namespace weir::cache::detail

// SeqGate and AtomicCell: reads that write nothing at all, for what can be copied word by word.
//
// A seqlock (Lameter 2005; for the C++ memory model Boehm, "Can Seqlocks Get Along With Programming Language
// Memory Models?", MSPC 2012): the writer makes the count odd, changes, makes it even; a reader whose count
// was even and still is the same has seen a whole. What it reads meanwhile are relaxed atomics, so torn
// values are possible and data races aren't.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weir/cache/thread_slot.h"

namespace weir::cache {

// Keys for which comparing bytes that were torn in two is harmless, as it only compares them: scalars.
// Specialize it for a trivially copyable key of your own whose == follows no pointers.
template <class K>
inline constexpr bool kComparesBytesOnly = std::is_scalar_v<K>;

namespace detail {

class SeqGate {
 public:
  static constexpr bool kReadersCheck = true;

  std::uint32_t enter() const { return count_.load(std::memory_order_acquire); }
  static bool may_read(std::uint32_t count) { return count % 2 == 0; }
  bool still(std::uint32_t count) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return count_.load(std::memory_order_relaxed) == count;
  }
  void begin_write() {
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  void end_write() { count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> count_{0};
};

// A trivially copyable value that may be read while it is written.
template <class T>
class AtomicCell {
  static_assert(std::is_trivially_copyable_v<T>);
  using Word = std::conditional_t<
      alignof(T) >= 8, std::uint64_t,
      std::conditional_t<alignof(T) == 4, std::uint32_t,
                         std::conditional_t<alignof(T) == 2, std::uint16_t, std::uint8_t>>>;
  static constexpr std::size_t kWords =
      sizeof(T) / sizeof(Word);  // NOLINT(bugprone-sizeof-expression): may be one
  using Words = std::array<Word, kWords>;

 public:
  void construct(const T& value) { assign(value); }
  void assign(const T& value) {
    const auto words = std::bit_cast<Words>(value);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
  }
  T copy() const {
    Words words;
    for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
    return std::bit_cast<T>(words);
  }
  T take() { return copy(); }
  T get() const { return copy(); }  // for the writer
  void swap(T& other) {
    const T mine = copy();
    assign(other);
    other = mine;
  }

 private:
  std::array<std::atomic<Word>, kWords> words_;
};

// Room for any value; its user keeps readers and writers apart, and knows whether there is one.
template <class T>
class PlainCell {
 public:
  template <class U>
  void construct(U&& value) {
    std::construct_at(at(), std::forward<U>(value));
  }
  T copy() const { return get(); }
  T take() {
    T value = std::move(*at());
    std::destroy_at(at());
    return value;
  }
  const T& get() const { return *std::launder(reinterpret_cast<const T*>(bytes_)); }
  void swap(T& other) { std::swap(*at(), other); }

 private:
  T* at() { return std::launder(reinterpret_cast<T*>(bytes_)); }
  alignas(T) std::byte bytes_[sizeof(T)];
};

// How a cache of K and V is read.
template <class K, class V>
struct Reading {
  static constexpr std::size_t kMostBytes = 64;  // beyond that a torn read is too likely to be tried
  static constexpr bool kBySequence = kComparesBytesOnly<K> && std::is_trivially_copyable_v<K> &&
                                      std::is_trivially_copyable_v<V> && sizeof(V) <= kMostBytes;
  using Gate = std::conditional_t<kBySequence, SeqGate, ReaderGate>;
  template <class T>
  using Cell = std::conditional_t<kBySequence, AtomicCell<T>, PlainCell<T>>;
};

}  // namespace detail
}  // namespace weir::cache

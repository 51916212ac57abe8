// ZeroedArray: memory that begins as zeros, aligned to cache lines unless it is small, and costs nothing until it is
// touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weir::cache::detail {

// For types whose zero bytes are a valid beginning (integers, atomics of integers and pointers, and structs
// of them). Large arrays come from the kernel as untouched pages, so making one is O(1). Throws
// std::bad_alloc.
template <class T, bool kZeroed = true>
class ZeroedArray {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);

 public:
  ZeroedArray() = default;
  explicit ZeroedArray(std::size_t size) : size_(size) {
    if (size == 0) return;
    if (size > (SIZE_MAX - kLine) / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = size * sizeof(T);
    // A small array is in the nearest caches anyway, and a cache of a hundred has many of them.
    const std::size_t slack = bytes < kSmall && alignof(T) <= alignof(std::max_align_t) ? 0 : kLine;
    memory_ = kZeroed ? std::calloc(1, bytes + slack) : std::malloc(bytes + slack);
    if (memory_ == nullptr) throw std::bad_alloc();
    void* first = memory_;
    std::size_t space = bytes + slack;
    first_ = static_cast<T*>(slack == 0 ? first : std::align(kLine, bytes, first, space));
  }
  ~ZeroedArray() { std::free(memory_); }
  ZeroedArray(ZeroedArray&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        first_(std::exchange(other.first_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  ZeroedArray& operator=(ZeroedArray&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(first_, other.first_);
    std::swap(size_, other.size_);
    return *this;
  }

  T& operator[](std::size_t at) { return first_[at]; }
  const T& operator[](std::size_t at) const { return first_[at]; }
  T* data() { return first_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr std::size_t kLine = 64, kSmall = 1024;
  void* memory_ = nullptr;
  T* first_ = nullptr;
  std::size_t size_ = 0;
};

// The same with whatever was in it before: nothing is touched, so making a large one costs as little as a small one.
template <class T>
using UntouchedArray = ZeroedArray<T, false>;

}  // namespace weir::cache::detail

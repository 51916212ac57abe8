// ZeroedMemory: the bytes of a filter, all zero at first, aligned to a cache line.
//
// Where the system has it (Linux), a large one is a mapping of its own: it costs nothing until it is written
// to, however large, and is made of huge pages if it can be, so that a random look-up misses the cache but
// not the address translation too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace weir::filter {

class ZeroedMemory {
 public:
  // Throws std::bad_alloc.
  explicit ZeroedMemory(std::uint64_t bytes);
  ~ZeroedMemory();
  ZeroedMemory(ZeroedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ZeroedMemory& operator=(ZeroedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  void* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void* data_;
  std::uint64_t bytes_;
};

}  // namespace weir::filter

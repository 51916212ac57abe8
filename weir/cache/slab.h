// Slab: the entries of a shard, by number; they never move, and their memory stays until the shard goes.
//
// In chunks, so that growing never copies. A chunk is three columns: what look-ups read (key and value), so that
// as many of them as can be share a cache line; the policy's links; and a byte for the mark. What only some caches need of an entry (weight, times) is a second
// column that is allocated for the chunks where it is needed; zero means the ordinary. One writer at a time;
// entries may be looked at beside it.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weir/cache/place_group.h"
#include "weir/cache/zeroed_array.h"

namespace weir::cache::detail {

template <class Pair, class Links, class Extra>
class Slab {
 public:
  using Id = std::uint32_t;  // from 1; 0 is nobody

  using Mark = std::atomic<std::uint8_t>;

  // Where things of one entry are; null for a number that was never taken, as far as this thread has seen.
  struct Place {
    std::byte* chunk;
    std::size_t offset;
    unsigned shift;

    explicit operator bool() const { return chunk != nullptr; }
    Pair& pair() const { return reinterpret_cast<Pair*>(chunk)[offset]; }
    Links& links() const { return reinterpret_cast<Links*>(chunk + (sizeof(Pair) << shift))[offset]; }
    Mark& mark() const {
      return reinterpret_cast<Mark*>(chunk + ((sizeof(Pair) + sizeof(Links)) << shift))[offset];
    }
  };

  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // So many entries there can be at once from now on; O(chunks). May throw. The first call decides about the
  // size of chunks: many enough that little is spare, few enough that their list stays in a cache line or two.
  void set_most(std::size_t entries) {
    if (cold_->directories.empty())
      shift_ = static_cast<unsigned>(std::clamp(static_cast<int>(std::bit_width(entries)) - 4, 7, 12));
    const std::size_t chunks = (entries >> shift_) + 1;
    if (chunks <= cold_->chunks) return;
    // Half as much again, so that a bound that creeps up doesn't copy the list each time.
    const std::size_t room =
        cold_->chunks == 0 ? chunks : std::max(chunks, cold_->chunks + cold_->chunks / 2);
    Directory directory{ZeroedArray<std::atomic<std::byte*>>(room), ZeroedArray<std::atomic<Extra*>>(room)};
    for (std::size_t i = 0; i < cold_->chunks; ++i) {
      directory.chunks[i].store(chunks_.load()[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
      directory.extras[i].store(cold_->directories.back().extras[i].load(std::memory_order_relaxed),
                                std::memory_order_relaxed);
    }
    cold_->directories.reserve(cold_->directories.size() + 1);
    chunks_.store(directory.chunks.data(), std::memory_order_release);
    if (extras_.load(std::memory_order_relaxed) != nullptr)
      extras_.store(directory.extras.data(), std::memory_order_release);
    cold_->directories.push_back(std::move(directory));  // the old ones stay: somebody may be reading them
    cold_->chunks = room;
  }

  // The number of an entry that isn't in use (whose links are whatever they were); makes memory if it must, and may throw then.
  Id take() {
    if (free_ != 0) {
      const Id id = free_;
      free_ = at(id).links().next;
      return id;
    }
    auto& chunk = chunks_.load(std::memory_order_relaxed)[last_ >> shift_];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      cold_->memory.emplace_back((sizeof(Pair) + sizeof(Links) + sizeof(Mark)) << shift_);
      chunk.store(cold_->memory.back().data(), std::memory_order_release);
    }
    return ++last_;
  }
  void give_back(Id id) {
    at(id).links().next = free_;
    free_ = id;
  }

  WEIR_HOT Place at(Id id) const {
    const unsigned shift = shift_;
    return {chunks_.load(std::memory_order_acquire)[(id - 1) >> shift].load(std::memory_order_acquire),
            (id - 1) & ((std::size_t{1} << shift) - 1), shift};
  }
  // Null: everything ordinary.
  WEIR_HOT Extra* extra(Id id) const {
    std::atomic<Extra*>* const directory = extras_.load(std::memory_order_acquire);
    if (directory == nullptr) return nullptr;
    Extra* chunk = directory[(id - 1) >> shift_].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk + offset(id);
  }
  // Makes the column if it isn't there; may throw.
  Extra& want_extra(Id id) {
    if (extra(id) == nullptr) {
      extras_.store(cold_->directories.back().extras.data(), std::memory_order_release);
      cold_->extras.emplace_back(std::size_t{1} << shift_);
      extras_.load(std::memory_order_relaxed)[(id - 1) >> shift_].store(cold_->extras.back().data(),
                                                                        std::memory_order_release);
    }
    return *extra(id);
  }

  Id last() const { return last_; }  // the highest number ever taken

 private:
  struct Directory {
    ZeroedArray<std::atomic<std::byte*>> chunks;
    ZeroedArray<std::atomic<Extra*>> extras;
  };
  // What no look-up needs stays out of its cache line.
  struct Cold {
    std::size_t chunks = 0;
    std::vector<Directory> directories;
    std::vector<ZeroedArray<std::byte>> memory;
    std::vector<ZeroedArray<Extra>> extras;
  };

  std::size_t offset(Id id) const { return (id - 1) & ((std::size_t{1} << shift_) - 1); }

  std::atomic<std::atomic<std::byte*>*> chunks_{nullptr};
  std::atomic<std::atomic<Extra*>*> extras_{nullptr};  // null while nobody wants one
  unsigned shift_ = 7;
  Id free_ = 0, last_ = 0;
  const std::unique_ptr<Cold> cold_ = std::make_unique<Cold>();
};

}  // namespace weir::cache::detail

// Slab: the entries of a shard, by number; they never move, and their memory stays until the shard goes.
//
// In chunks, so that growing never copies. A chunk is three columns: what look-ups read (key and value), so that
// as many of them as can be share a cache line; the policy's links; and a byte for the mark, before them. What
// only some caches need of an entry (weight, times) is a column of its own that is allocated for the chunks where
// it is needed; zero means the ordinary. One writer at a time; entries may be looked at beside it.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "weir/cache/hot_path.h"
#include "weir/cache/zeroed_array.h"

namespace weir::cache::detail {

template <class Pair, class Links, class Extra>
class Slab {
 public:
  // The number of the chunk, then twelve bits of place in the chunk, which may be smaller than that. 0 is nobody.
  using Id = std::uint32_t;
  using Mark = std::atomic<std::uint8_t>;
  static constexpr std::size_t kMostEntries = std::size_t{1} << 24;

  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // So many entries there can be at once from now on, at most kMostEntries; O(chunks). May throw. The first call
  // decides about the size of chunks: many enough that little is spare, few enough that their list stays in a
  // cache line or two.
  void set_most(std::size_t entries) {
    if (cold_->directories.empty())
      shift_ =
          static_cast<unsigned>(std::clamp(static_cast<int>(std::bit_width(entries)) - 4, 7, kPlaceBits));
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

  // The number of an entry that isn't in use (whose links are whatever they were); makes memory if it must, and
  // may throw then.
  Id take() {
    if (free_ != 0) {
      const Id id = free_;
      free_ = links(id).next;
      return id;
    }
    auto& chunk = chunks_.load(std::memory_order_relaxed)[(taken_ + 1) >> shift_];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      cold_->memory.emplace_back(marks_bytes() + ((sizeof(Pair) + sizeof(Links)) << shift_));
      chunk.store(cold_->memory.back().data() + marks_bytes(), std::memory_order_release);
    }
    const Id id = nth(++taken_);
    clear(id);
    return id;
  }
  void give_back(Id id) {
    links(id).next = free_;
    free_ = id;
  }

  // Where things of one entry are.
  struct Place {
    std::byte* chunk;
    std::size_t at;

    WEIR_HOT Pair& pair() const { return reinterpret_cast<Pair*>(chunk)[at]; }
    // Marks grow downwards from the pairs, so that their place doesn't depend on the chunk's size.
    WEIR_HOT Mark& mark() const {
      return *(reinterpret_cast<Mark*>(chunk) - 1 - static_cast<std::ptrdiff_t>(at));
    }
  };
  // Of a number that was taken; who has it by SlotBucket::id sees its chunk.
  WEIR_HOT Place at(Id id) const {
    return {chunks_.load(std::memory_order_acquire)[id >> kPlaceBits].load(std::memory_order_acquire),
            place(id)};
  }
  WEIR_HOT Pair& pair(Id id) const { return at(id).pair(); }
  WEIR_HOT Mark& mark(Id id) const { return at(id).mark(); }
  Links& links(Id id) const {
    return reinterpret_cast<Links*>(at(id).chunk + (sizeof(Pair) << shift_))[place(id)];
  }
  bool all_ordinary() const { return extras_.load(std::memory_order_relaxed) == nullptr; }
  // Null: everything ordinary.
  WEIR_HOT Extra* extra(Id id) const {
    std::atomic<Extra*>* const directory = extras_.load(std::memory_order_acquire);
    if (directory == nullptr) return nullptr;
    Extra* const column = directory[id >> kPlaceBits].load(std::memory_order_acquire);
    return column == nullptr ? nullptr : column + place(id);
  }
  // Makes the column if it isn't there; may throw.
  Extra& want_extra(Id id) {
    if (extra(id) == nullptr) {
      cold_->extras.emplace_back(std::size_t{1} << shift_);
      const std::size_t first = (id >> kPlaceBits) << shift_;  // of the chunk
      const std::size_t taken = std::min<std::size_t>(taken_ + 1 - first, std::size_t{1} << shift_);
      std::memset(static_cast<void*>(cold_->extras.back().data()), 0, taken * sizeof(Extra));
      cold_->directories.back().extras[id >> kPlaceBits].store(cold_->extras.back().data(),
                                                               std::memory_order_release);
      extras_.store(cold_->directories.back().extras.data(), std::memory_order_release);
    }
    return *extra(id);
  }

  // Numbers that were ever taken: nth(1) .. nth(taken()).
  std::uint32_t taken() const { return taken_; }
  Id nth(std::uint32_t n) const { return (n >> shift_) << kPlaceBits | (n & ((1U << shift_) - 1)); }

 private:
  static constexpr int kPlaceBits = 12;

  struct Directory {
    ZeroedArray<std::atomic<std::byte*>> chunks;
    ZeroedArray<std::atomic<Extra*>> extras;
  };
  // What no look-up needs stays out of its cache line.
  struct Cold {
    std::size_t chunks = 0;
    std::vector<Directory> directories;
    std::vector<UntouchedArray<std::byte>> memory;
    std::vector<UntouchedArray<Extra>> extras;
  };

  // A place that is taken for the first time: zeros. Not when its chunk is made, since fetching 80 KiB of pages
  // takes 40 us, all for one put to wait for.
  void clear(Id id) {
    std::memset(static_cast<void*>(&pair(id)), 0, sizeof(Pair));
    std::memset(static_cast<void*>(&links(id)), 0, sizeof(Links));
    mark(id).store(0, std::memory_order_relaxed);
    if (Extra* const own = extra(id)) std::memset(static_cast<void*>(own), 0, sizeof(Extra));
  }

  static std::size_t place(Id id) { return id & ((1U << kPlaceBits) - 1); }
  std::size_t marks_bytes() const { return std::size_t{1} << shift_; }  // at least 128, so pairs are aligned

  std::atomic<std::atomic<std::byte*>*> chunks_{nullptr};
  std::atomic<std::atomic<Extra*>*> extras_{nullptr};  // null while nobody wants one
  unsigned shift_ = 7;
  Id free_ = 0;
  std::uint32_t taken_ = 0;
  const std::unique_ptr<Cold> cold_ = std::make_unique<Cold>();
};

}  // namespace weir::cache::detail

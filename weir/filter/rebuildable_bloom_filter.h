// RebuildableBloomFilter: a GrowingBloomFilter that is made anew while it is in use, to forget what is gone, to
// get back to one stage, or to another rate.
//
// A rebuild fills a second filter beside the living one, which goes on to answer; what is inserted meanwhile
// goes into both. The commit swaps the two at once: no look-up waits, and none sees a half-filled filter.
//
// Promise: a key whose insert ends after the rebuild began is in the new filter, too. A key from before is in
// it if the rebuild puts it there: read the keys from where they are kept after `rebuild` has returned, and
// insert a key here once it is there.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "weir/filter/growing_bloom_filter.h"
#include "weir/filter/reader_gate.h"

namespace weir::filter {

class RebuildableBloomFilter {
 public:
  class Rebuild;

  // As GrowingBloomFilter's; or around one that was loaded.
  RebuildableBloomFilter(std::uint64_t expected, double rate, std::uint64_t hashing = 0);
  explicit RebuildableBloomFilter(std::unique_ptr<GrowingBloomFilter> filter);
  RebuildableBloomFilter(const RebuildableBloomFilter&) = delete;
  RebuildableBloomFilter& operator=(const RebuildableBloomFilter&) = delete;

  // Thread-safe. Neither ever waits for a rebuild. Costs two atomic operations more than the filter inside.
  void insert(std::uint64_t hash);
  bool may_contain(std::uint64_t hash) const;

  // Begins to build the filter anew, for so many keys; nothing if a rebuild is under way. Waits for the
  // inserts that are running, microseconds. Throws as GrowingBloomFilter's constructor, and changes nothing.
  [[nodiscard]] std::optional<Rebuild> rebuild(std::uint64_t expected, double rate);

  // Of the living filter. A commit waits for a `save` that is running.
  void save(const std::filesystem::path& file) const;
  Statistics statistics() const;
  std::uint64_t bytes() const;  // during a rebuild, of both
  std::uint64_t inserted() const;
  int stages() const;

 private:
  // Read and replaced as one: so nobody sees the new filter living and yet misses it as the rising one.
  struct State {
    GrowingBloomFilter* living;
    GrowingBloomFilter* rising;  // during a rebuild
  };
  template <class Use>
  auto read(Use use) const {
    const auto pass = gate_.enter();
    return use(*state_.load());
  }
  // Returns when nobody uses the state from before.
  void replace(State next);
  void finish(bool commit);

  mutable ReaderGate gate_;
  std::unique_ptr<GrowingBloomFilter> living_, rising_;
  // One of the two; the other is free once its last readers have left.
  std::array<State, 2> states_;
  std::atomic<const State*> state_;
  std::atomic<bool> rebuilding_{false};
};

// A rebuild that is under way; it is given up when this goes without a commit. Belongs to one thread, but
// `insert` may be called from many. The filter must outlive it.
class RebuildableBloomFilter::Rebuild {
 public:
  Rebuild(Rebuild&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
  Rebuild& operator=(Rebuild&&) = delete;
  ~Rebuild() {
    if (owner_ != nullptr) owner_->finish(false);
  }

  // A key that the new filter should know.
  void insert(std::uint64_t hash) { owner_->rising_->insert(hash); }
  // The new filter takes the old one's place; waits for the look-ups that are running in the old one,
  // microseconds. Nothing may be called afterwards.
  void commit() { std::exchange(owner_, nullptr)->finish(true); }

 private:
  friend class RebuildableBloomFilter;
  explicit Rebuild(RebuildableBloomFilter& owner) : owner_(&owner) {}

  RebuildableBloomFilter* owner_;
};

}  // namespace weir::filter

// PolicyTuner: which window, and whether recency counts, by trying all choices in the small.
//
// Miniature simulation (Waldspurger, Saemundsson, Ahmad and Park, "Cache Modeling and Optimization using
// Miniature Simulations", USENIX ATC 2017): a shadow cache for each choice runs the cache's own policy on a
// sample of the keys, with a capacity scaled down alike, and keeps no values. The choice whose shadow has most
// hits is the cache's, once it leads by a margin: where two do equally well (a loop), a change would cost
// what it can't win.
//
// A cache has one, for all its shards. Thread-safe: a feed that finds another one busy is dropped, nobody
// waits. About 14 bytes a shadow entry, nine shadows of at most 512.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/cache/clock_policy.h"
#include "weir/cache/frequency_sketch.h"

namespace weir::cache::detail {

// A cache without values, of weight one an entry.
class ShadowCache {
 public:
  static constexpr std::size_t kMostEntries = 512;

  ShadowCache(std::size_t capacity, PolicyChoice choice, FrequencySketch& frequency, std::uint64_t seed);
  ShadowCache(const ShadowCache&) = delete;
  ShadowCache& operator=(const ShadowCache&) = delete;

  // Asks for the key and puts it if it isn't here; whether it was.
  bool access(std::uint32_t hash);
  std::size_t size() const { return policy_.entries(); }

 private:
  using Id = std::uint16_t;
  struct Node : PolicyLinks<std::uint16_t> {
    std::uint8_t mark = 0;
  };
  struct Nodes {
    using Id = std::uint16_t;
    std::unique_ptr<Node[]> all;  // all[0] isn't used
    PolicyLinks<Id>& links(Id id) const { return all[id]; }
    std::uint64_t weight(Id) const { return 1; }
    unsigned mark(Id id) const { return all[id].mark; }
    void set_mark(Id id, unsigned mark) { all[id].mark = static_cast<std::uint8_t>(mark); }
    bool dead(Id) const { return false; }
  };
  // All shadows ask one sketch, which counts each access once, whoever sweeps.
  struct Shared {
    FrequencySketch& sketch;
    void add(std::uint32_t, unsigned) {}
    unsigned estimate(std::uint32_t hash) { return sketch.estimate(hash); }
  };

  std::size_t place_of(std::uint32_t hash) const;  // in the index: where it is, or where it would go
  void drop(Id id);

  const std::size_t capacity_;
  Nodes nodes_;
  Shared frequency_;
  std::unique_ptr<Id[]> index_;  // open addressing, linear probing, no tombstones
  std::size_t index_mask_;
  Id last_used_ = 0;
  ClockPolicy<Nodes, Shared> policy_;
};

class PolicyTuner {
 public:
  static constexpr std::array<PolicyChoice, 9> kChoices{{{0, false},
                                                         {0.05, false},
                                                         {0.15, false},
                                                         {0.30, false},
                                                         {0.50, false},
                                                         {0.80, false},
                                                         {0, true},
                                                         {0.05, true},
                                                         {0.30, true}}};

  explicit PolicyTuner(std::uint64_t seed) : seed_(seed) {}

  // Whether an access to the key is worth a call of `feed`. Asked for misses and for hits that raise a mark:
  // the others would be hits in every shadow.
  bool samples(std::uint64_t hash) const {
    return ((hash >> 32) & sample_mask_.load(std::memory_order_relaxed)) == 0;
  }
  // An access. `entries`: about how many the whole cache holds when it is full; when that has changed much, new
  // shadows are made, but only if `may_build`. O(shadows). What can't be done for lack of memory isn't done.
  void feed(std::uint64_t hash, std::size_t entries, bool may_build) noexcept;

  PolicyChoice choice() const { return kChoices[chosen_.load(std::memory_order_relaxed)]; }

 private:
  static constexpr std::uint32_t kEpoch = 128;  // feeds between two looks at the scores
  static constexpr double kDecay = 0.974;       // of the scores at each look
  static constexpr double kMargin = 1.02;       // that a better choice must lead by

  void make_shadows(std::size_t entries);
  void compare();

  const std::uint64_t seed_;
  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> sample_mask_{0};
  std::atomic<std::uint32_t> chosen_{0};
  // What `busy_` guards.
  std::size_t entries_ = 0;
  std::uint32_t feeds_ = 0;
  FrequencySketch frequency_;
  std::array<std::unique_ptr<ShadowCache>, kChoices.size()> shadows_;
  std::array<double, kChoices.size()> scores_{};
};

}  // namespace weir::cache::detail

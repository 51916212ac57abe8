// LeaseTable: permissions to fill a cache, which a write takes away.
//
// Who loads a key takes a lease before it reads the store. Who writes the key cancels its leases after the
// commit. A fill is done only under a lease that is still good, and in one step with that check, so that a
// value read before a write can't come in after it ("Scaling Memcache at Facebook", Nishtala et al. 2013,
// section 3.2.1). The table holds only keys whose leases are out: O(loads under way). Thread-safe; plain
// C++20.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "weir/cache/key_hash.h"

namespace weir::cache {

template <class K, class Hash = KeyHash<K>>
class LeaseTable {
  struct State;

 public:
  // Movable; gives itself back when it goes. Outlives the table unharmed.
  class Lease {
   public:
    Lease() = default;  // one that was never good
    Lease(Lease&& other) noexcept { swap(other); }
    Lease& operator=(Lease&& other) noexcept {
      Lease(std::move(other)).swap(*this);
      return *this;
    }
    ~Lease();

   private:
    friend class LeaseTable;
    void swap(Lease& other) noexcept;
    std::shared_ptr<State> state_;
    K key_{};
    std::uint64_t generation_ = 0;
  };

  explicit LeaseTable(std::uint64_t seed);

  Lease take(const K& key);
  // Cancels the key's leases and runs `then` in the same step.
  template <class F>
  void cancel(const K& key, F then);
  // The same, but `own` stays good if it was.
  template <class F>
  void cancel_others(const K& key, Lease& own, F then);
  // Cancels all leases of all keys.
  void cancel_all();
  // Runs `fill` if the lease is good, in one step with the check; what it answers, or false.
  template <class F>
  bool use(const Lease& lease, F fill);
};

}  // namespace weir::cache

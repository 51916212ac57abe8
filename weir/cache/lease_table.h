// LeaseTable: permissions to fill a cache, which a write takes away.
//
// Who loads a key takes a lease before it reads the store. Who writes the key cancels its leases after the
// commit. A fill is done only under a lease that is still good, and in one step with that check, so that a
// value read before a write can't come in after it ("Scaling Memcache at Facebook", Nishtala et al. 2013,
// section 3.2.1). The table holds only keys whose leases are out: O(loads under way). Thread-safe; plain
// C++20.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/cache/key_hash.h"

namespace weir::cache {

template <class K, class Hash = KeyHash<K>>
class LeaseTable {
  struct State {
    std::uint64_t generation = 0;  // a lease is good while it has the current one
    std::uint64_t out = 0;         // leases; the key goes with the last one
  };
  struct Stripe {
    explicit Stripe(std::uint64_t seed) : leased(0, SeededHash<K, Hash>{seed}) {}
    std::mutex mutex;
    std::unordered_map<K, State, SeededHash<K, Hash>> leased;
  };
  using Entry = std::pair<const K, State>;  // stays where it is while the map grows

 public:
  // Gives itself back when it goes, even after the table. A default one, and one that was moved from, was
  // never good.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept { swap(other); }
    Lease& operator=(Lease&& other) noexcept {
      Lease taken(std::move(other));
      swap(taken);
      return *this;
    }
    ~Lease() {
      if (!stripe_) return;
      const std::lock_guard lock(stripe_->mutex);
      if (--entry_->second.out == 0)
        stripe_->leased.erase(stripe_->leased.find(entry_->first));  // copies no key: that may throw
    }

   private:
    friend class LeaseTable;
    void swap(Lease& other) noexcept {
      std::swap(stripe_, other.stripe_);
      std::swap(entry_, other.entry_);
      std::swap(generation_, other.generation_);
    }
    std::shared_ptr<Stripe> stripe_;
    Entry* entry_ = nullptr;
    std::uint64_t generation_ = 0;
  };

  explicit LeaseTable(std::uint64_t seed) : hash_{seed} {
    for (auto& stripe : stripes_) stripe = std::make_shared<Stripe>(seed);
  }

  // O(1).
  Lease take(const K& key) {
    const auto& stripe = stripe_of(key);
    Lease lease;
    const std::lock_guard lock(stripe->mutex);
    Entry& entry = *stripe->leased.try_emplace(key).first;
    ++entry.second.out;
    lease.stripe_ = stripe;
    lease.entry_ = &entry;
    lease.generation_ = entry.second.generation;
    return lease;
  }

  // Cancels the key's leases and runs `then` in the same step (under a lock: no calls into the table). O(1).
  template <class F>
  auto cancel(const K& key, F then) {
    const auto& stripe = stripe_of(key);
    const std::lock_guard lock(stripe->mutex);
    const auto entry = stripe->leased.find(key);
    if (entry != stripe->leased.end()) ++entry->second.generation;
    return then();
  }

  // The same, but `own`, a lease of this key, stays good if it was.
  template <class F>
  auto cancel_others(const K& key, Lease& own, F then) {
    const auto& stripe = stripe_of(key);
    const std::lock_guard lock(stripe->mutex);
    const auto entry = stripe->leased.find(key);
    if (entry != stripe->leased.end()) {
      const bool good = is_good(own, *entry);
      ++entry->second.generation;
      if (good) own.generation_ = entry->second.generation;
    }
    return then();
  }

  // Cancels all leases of all keys; `then` runs when they are, while no fill can. O(leases).
  template <class F>
  void cancel_all(F then) {
    std::vector<std::unique_lock<std::mutex>> locks;
    locks.reserve(kStripes);
    for (auto& stripe : stripes_) {
      locks.emplace_back(stripe->mutex);
      for (auto& [key, state] : stripe->leased) ++state.generation;
    }
    then();
  }

  // Runs `fill` if this is a good lease of the key, in one step with the check; its answer, or false.
  template <class F>
  bool use(const K& key, const Lease& lease, F fill) {
    const auto& stripe = stripe_of(key);
    const std::lock_guard lock(stripe->mutex);
    const auto entry = stripe->leased.find(key);
    return entry != stripe->leased.end() && is_good(lease, *entry) && fill();
  }

  // Keys whose leases are out.
  std::size_t size() const {
    std::size_t sum = 0;
    for (const auto& stripe : stripes_) {
      const std::lock_guard lock(stripe->mutex);
      sum += stripe->leased.size();
    }
    return sum;
  }

 private:
  static constexpr std::size_t kStripes = 16;

  // Upper bits: the stripe's map uses the lower ones.
  const std::shared_ptr<Stripe>& stripe_of(const K& key) const {
    return stripes_[(static_cast<std::uint64_t>(hash_(key)) >> 40) % kStripes];
  }
  static bool is_good(const Lease& lease, const Entry& entry) {
    return lease.entry_ == &entry && lease.generation_ == entry.second.generation;
  }

  SeededHash<K, Hash> hash_;
  std::array<std::shared_ptr<Stripe>, kStripes> stripes_;
};

}  // namespace weir::cache

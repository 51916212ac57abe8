// OwedDrops: the keys that a write should have dropped at the remote level, and that may still be there because the
// level failed. What stands under such a key isn't to be believed before it was dropped after all.
//
// Bounded: beyond kMost keys everything is owed, for as long as `ttl`, the longest that a value may stand there.
// Thread-safe. O(1) a key.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/clock.h"

namespace weir::cache {

class OwedDrops {
 public:
  static constexpr std::size_t kMost = 10'000;

  // A debt; one that was made anew meanwhile isn't paid by paying the old one.
  using Debt = std::pair<std::string, std::uint64_t>;

  OwedDrops(const Clock& clock, Duration ttl) : clock_(clock), ttl_(ttl) {}

  void add(const std::vector<std::string>& names) {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : names) debts_[name] = ++last_;
    if (debts_.size() > kMost) {
      debts_.clear();
      all_until_ = clock_.steady_now() + ttl_;
    }
    any_.store(true, std::memory_order_release);
  }
  // Those of the names that are owed.
  std::vector<Debt> among(const std::vector<std::string>& names) {
    std::vector<Debt> owed;
    const std::lock_guard lock(mutex_);
    const bool all = clock_.steady_now() < all_until_;
    for (const std::string& name : names) {
      const auto found = debts_.find(name);
      if (all || found != debts_.end()) owed.emplace_back(name, found == debts_.end() ? 0 : found->second);
    }
    settle(all);
    return owed;
  }
  // All that are known by name.
  std::vector<Debt> all() const {
    const std::lock_guard lock(mutex_);
    return {debts_.begin(), debts_.end()};
  }
  void paid(const std::vector<Debt>& debts) {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, number] : debts)
      if (const auto found = debts_.find(name); found != debts_.end() && found->second == number)
        debts_.erase(found);
    settle(clock_.steady_now() < all_until_);
  }
  // One load: whether `among` could find anything.
  bool any() const { return any_.load(std::memory_order_acquire); }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return debts_.size();
  }

 private:
  void settle(bool all) { any_.store(all || !debts_.empty(), std::memory_order_release); }

  const Clock& clock_;
  const Duration ttl_;
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t> debts_;
  std::uint64_t last_ = 0;
  SteadyTime all_until_{};
};

}  // namespace weir::cache

// DropListeners: who listens to a DropFeed in this process. A detail of its implementations.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weir/cache/drop_feed.h"

namespace weir::cache {

// Thread-safe. Its lock is held during a call, so that who stops listening waits for one under way.
class DropListeners : public std::enable_shared_from_this<DropListeners> {
 public:
  std::unique_ptr<DropFeed::Listening> add(std::string cache, DropFeed::Listener listener) {
    const std::lock_guard lock(mutex_);
    auto& all = listeners_[cache];
    const auto at = all.insert(all.end(), std::move(listener));
    return std::make_unique<Membership>(shared_from_this(), std::move(cache), at);
  }
  void heard(const std::string& cache, const std::vector<std::string>& keys) {
    const std::lock_guard lock(mutex_);
    if (const auto found = listeners_.find(cache); found != listeners_.end())
      for (const auto& listener : found->second) keys.empty() ? listener.missed() : listener.heard(keys);
  }
  void missed() {
    const std::lock_guard lock(mutex_);
    for (const auto& [cache, all] : listeners_)
      for (const auto& listener : all) listener.missed();
  }

 private:
  using All = std::list<DropFeed::Listener>;
  class Membership final : public DropFeed::Listening {
   public:
    Membership(std::shared_ptr<DropListeners> owner, std::string cache, All::iterator at)
        : owner_(std::move(owner)), cache_(std::move(cache)), at_(at) {}
    ~Membership() override {
      const std::lock_guard lock(owner_->mutex_);
      const auto all = owner_->listeners_.find(cache_);
      all->second.erase(at_);
      if (all->second.empty()) owner_->listeners_.erase(all);
    }

   private:
    const std::shared_ptr<DropListeners> owner_;
    const std::string cache_;
    const All::iterator at_;
  };

  std::mutex mutex_;
  std::map<std::string, All> listeners_;
};

}  // namespace weir::cache

// MemoryDropFeed: what the DropFeeds of several nodes of a simulation share, in this process.
//
//     auto air = std::make_shared<MemoryDropFeed::Air>();  // one for all nodes
//     auto feed = std::make_shared<MemoryDropFeed>(air);  // one for each
//
// News arrive before `tell` returns. After `air->lose()` they don't, and `tell` throws, until `air->mend()`; `air->interrupt()`
// is what a node sees that was cut off for a moment. Thread-safe.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/fault.h"
#include "weir/cache/drop_feed.h"
#include "weir/cache/drop_listeners.h"

namespace weir::cache {

class MemoryDropFeed final : public DropFeed {
 public:
  class Air {
   public:
    void lose() { set_lost(true); }
    void mend() { set_lost(false); }
    void interrupt() {
      for (const auto& node : nodes()) node->missed();
    }

   private:
    friend class MemoryDropFeed;
    using Nodes = std::vector<std::shared_ptr<DropListeners>>;
    void set_lost(bool lost) {
      const std::lock_guard lock(mutex_);
      lost_ = lost;
    }
    Nodes nodes() {
      const std::lock_guard lock(mutex_);
      return nodes_;
    }
    std::mutex mutex_;
    bool lost_ = false;
    Nodes nodes_;
  };

  explicit MemoryDropFeed(std::shared_ptr<Air> air) : air_(std::move(air)) {
    const std::lock_guard lock(air_->mutex_);
    air_->nodes_.push_back(listeners_);
  }
  ~MemoryDropFeed() override {
    const std::lock_guard lock(air_->mutex_);
    std::erase(air_->nodes_, listeners_);
  }
  MemoryDropFeed(const MemoryDropFeed&) = delete;
  MemoryDropFeed& operator=(const MemoryDropFeed&) = delete;

  boost::asio::awaitable<void> tell(std::string cache, std::vector<std::string> keys) override {
    Air::Nodes others;
    {
      const std::lock_guard lock(air_->mutex_);
      if (air_->lost_) throw Unavailable("the news are lost");
      others = air_->nodes_;
    }
    for (const auto& node : others)
      if (node != listeners_) node->heard(cache, keys);
    co_return;
  }
  std::unique_ptr<Listening> listen(std::string cache, Listener listener) override {
    return listeners_->add(std::move(cache), std::move(listener));
  }

 private:
  const std::shared_ptr<Air> air_;
  const std::shared_ptr<DropListeners> listeners_ = std::make_shared<DropListeners>();
};

}  // namespace weir::cache

// DropFeed: tells every node what was written on one, so that its local caches drop it.
//
// The door between ReadThrough and what carries the news: RedisDropFeed, and MemoryDropFeed in this process. What
// every one of them promises:
//  - What is told reaches each other listener of that cache, in the order told, soon; or its `missed` is called,
//    because it may have lost something: then it can believe nothing that it kept before. Unless `tell` has thrown:
//    then somebody may have heard of it, or nobody, and who told it has to tell it again.
//  - It doesn't reach who told it: he has dropped it himself.
//  - Calls of one listener come one at a time, and none once its Listening is gone; that waits for one under way.
//
// Thread-safe.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weir::cache {

class DropFeed {
 public:
  // Both are to be short, and must not throw, nor end a Listening.
  struct Listener {
    std::function<void(const std::vector<std::string>& keys)> heard;
    std::function<void()> missed;
  };
  // Listens as long as it lives. The feed must outlive it.
  class Listening {
   public:
    virtual ~Listening() = default;
  };

  virtual ~DropFeed() = default;

  // No keys: anything of that cache may have been written; that is heard as `missed`. Throws Unavailable when the
  // others couldn't be told, or that isn't known.
  virtual boost::asio::awaitable<void> tell(std::string cache, std::vector<std::string> keys) = 0;
  virtual std::unique_ptr<Listening> listen(std::string cache, Listener listener) = 0;
};

}  // namespace weir::cache

// RemoteLevels: gives each cache of a program its level in one Redis, and the feed of what other nodes write, all by the
// same rules.
//
//     redis::Client client(executor, {.address = redis::Address::parse(url), .fail_fast = true});
//     const RemoteLevels levels(client, {.lease = true});
//     ReadThroughOptions<Id, Article> options{.name = "article", .ttl = 10min};
//     levels.give(options, article_codec(), {.version = 1});
//     ReadThrough<Id, Article> articles(std::move(options), load_article, executor);
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "weir/cache/read_through_options.h"
#include "weir/cache/remote_cache.h"

namespace weir::cache {

class RemoteLevels {
 public:
  // See RemoteUse and RemoteCacheOptions.
  struct Rules {
    bool lease = true;
    OnRemoteError on_error = OnRemoteError::bulkhead;
    std::string prefix = "weir";
  };
  // What the values of one cache are like.
  struct Values {
    unsigned version = 1;  // of their format: another knows nothing of this one's
    std::size_t max_bytes = std::size_t{1} << 20;
  };

  // The client must outlive the caches. A client that fails fast keeps readers from waiting for a server that is
  // known to be away. Null as `feed`: nodes aren't told.
  RemoteLevels(redis::Client& client, Rules rules, std::shared_ptr<DropFeed> feed = nullptr)
      : client_(client), rules_(std::move(rules)), feed_(std::move(feed)) {}

  // The rest of the options must have been said before: name, TTLs and the load's time-out are taken from there.
  // Throws std::invalid_argument for a name that can't be used.
  template <class K, class V>
  void give(ReadThroughOptions<K, V>& options, Codec<K, V> codec, Values values) const {
    options.remote.level = level({.name = options.name,
                                  .prefix = rules_.prefix,
                                  .version = values.version,
                                  .ttl = options.ttl,
                                  .negative_ttl = options.negative_ttl,
                                  .jitter = options.jitter,
                                  .lease_ttl = options.load_timeout,
                                  .max_value_bytes = values.max_bytes});
    options.remote.codec = std::move(codec);
    options.remote.lease = rules_.lease;
    options.remote.on_error = rules_.on_error;
    give_feed(options);
  }
  // The feed alone: for what is cached on each node for itself. Keys are integers or texts.
  template <class K, class V>
  void give_feed(ReadThroughOptions<K, V>& options) const {
    if (feed_) options.feed = FeedUse<K>::of(feed_);
  }

 private:
  std::shared_ptr<RemoteLevel> level(RemoteCacheOptions options) const {
    return std::make_shared<RemoteCache>(client_, std::move(options));
  }

  redis::Client& client_;
  const Rules rules_;
  const std::shared_ptr<DropFeed> feed_;
};

}  // namespace weir::cache

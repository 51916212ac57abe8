// RedisDropFeed: the DropFeed of nodes that share a Redis: one channel, to which each node publishes and subscribes.
//
// News travel in about a round trip. A node whose subscription breaks learns of that within `silence_limit` and
// `ping_every` of the subscriber, connects again, and takes everything that it kept as missed: until then what it has
// may be old, for at most the time that it was cut off and no longer than its local TTLs.
//
// In a cluster the feed publishes at one node and listens at another; if that one dies it listens at the next, and takes
// what it kept as missed. Between the nodes Redis promises nothing: what is on its way when a node dies, or is cut off
// from the others, is lost without a sign, and then the local TTLs alone bound what is old.
//
// A message, for who looks with SUBSCRIBE: node, cache and keys (none: all), each as a netstring ("7:article,").
// Metrics: weir_cache_feed_messages_total{client,outcome} with heard|own|damaged, and the subscriber's.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/cache/drop_feed.h"
#include "weir/cache/drop_listeners.h"
#include "weir/redis/client.h"
#include "weir/redis/subscriber.h"

namespace weir::cache {

class RedisDropFeed final : public DropFeed {
 public:
  // What fits into one message; more are several.
  static constexpr std::size_t kMaxMessageBytes = std::size_t{64} << 10;

  // `subscriber.channel`: the same on all nodes, and part of nobody else's. The client publishes, and must outlive the
  // feed, as must the executor's context. The subscriber goes where the client goes, unless `subscriber.nodes` says
  // otherwise.
  RedisDropFeed(redis::Client& client, boost::asio::any_io_executor executor,
                redis::SubscriberOptions subscriber);

  boost::asio::awaitable<void> tell(std::string cache, std::vector<std::string> keys) override;
  std::unique_ptr<Listening> listen(std::string cache, Listener listener) override;

  // Hears nothing from here on.
  void stop() { subscriber_.stop(); }
  bool connected() const { return subscriber_.connected(); }

 private:
  redis::Client& client_;
  const std::string channel_;
  const std::string node_;  // who this is, new at each start
  const std::shared_ptr<DropListeners> listeners_ = std::make_shared<DropListeners>();
  redis::Subscriber subscriber_;
};

// The parts of a message. A detail, for its tests: `read` gives nothing when it is damaged.
std::string write_netstrings(const std::vector<std::string>& parts);
std::vector<std::string> read_netstrings(std::string_view message);

}  // namespace weir::cache

// Subscriber: a connection that hears what is published on one channel.
//
// Promises:
//  - `joined` is called each time when the subscription stands (again): what was published before may have been
//    missed, what is published from then on comes as a `message`, or the connection breaks and `joined` comes anew.
//  - Calls come one at a time, on the executor that was given, in the order of the server. None begins after `stop`
//    has returned; one that is under way is waited for.
//  - A server that is silent for `silence_limit` (it is sent a PING each `ping_every`) is given up, and the
//    connection made again with jittered backoff, for ever.
//
// In a cluster any node will do, and each attempt goes to another one. What is published travels from node to node then,
// without anybody's promise: a node that dies, or is cut off from the others, may keep a message from its subscribers,
// who aren't told.
//
// A message is lost when no connection stands, or when it is what breaks it; `joined` comes after both. What the calls
// throw is logged and swallowed. Thread-safe. RESP2.
//
//     redis::Subscriber news(io.get_executor(), {.address = address, .channel = "news"},
//                            {.message = [](std::string_view text) { .. }, .joined = [] { .. }});
//
// Metrics, by `client` = Options::name: weir_redis_connects_total{client,outcome} with ok|error,
// weir_redis_reconnects_total, weir_redis_connected{client}.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/redis/address.h"

namespace weir::redis {

struct SubscriberOptions {
  using Millis = std::chrono::milliseconds;

  Address address{};
  // Where else what is published is heard, of a cluster: all of its nodes (Client::nodes). Asked before each attempt,
  // from the subscriber's executor and never after `stop`; each attempt goes to another of them, while there are any,
  // and a node that is no longer among them is left.
  std::function<std::vector<Address>()> nodes{};
  std::string channel;
  std::string name = "subscriber";  // the label `client` of the metrics
  Millis connect_timeout{
      2000};  // of one attempt: TCP, AUTH, PING, SUBSCRIBE (a name's look-up ends by itself)
  Millis ping_every{1000};
  Millis silence_limit{3000};  // after the first PING without an answer; noticed at the second look
  Millis backoff_first{10};    // the longest wait before the first new attempt; doubles up to
  Millis backoff_max{2000};
  std::size_t max_message_bytes = std::size_t{16} << 20;  // a larger one breaks the connection
};

class Subscriber {
 public:
  using Options = SubscriberOptions;
  struct Calls {
    std::function<void(std::string_view)> message;
    std::function<void()> joined = [] {};
  };

  // Starts to connect. The executor's context must outlive the subscriber.
  Subscriber(boost::asio::any_io_executor executor, Options options, Calls calls);
  ~Subscriber() { stop(); }
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  // Any thread, within a call too. More than once is harmless.
  void stop();
  // Whether `joined` was called for the connection that stands.
  bool connected() const;

 private:
  class Listening;
  const std::shared_ptr<Listening> listening_;
};

}  // namespace weir::redis

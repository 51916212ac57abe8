// What a ReadThrough is made of: its options, its answers, and its use of a level that nodes share.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/cache/codec.h"
#include "weir/cache/drop_feed.h"
#include "weir/cache/membership.h"
#include "weir/cache/pause.h"
#include "weir/cache/remote_level.h"

namespace weir::cache {

// A value, or nothing: then there certainly is none.
template <class V>
struct Found {
  std::shared_ptr<const V> value;
  explicit operator bool() const { return value != nullptr; }
  const V& operator*() const { return *value; }
  const V* operator->() const { return value.get(); }
};

// What a read does that misses here while the remote level fails. Whatever is known here is served in any case.
enum class OnRemoteError : std::uint8_t {
  bulkhead,      // load, `bulkhead_loads` at once; the others wait for a place, shortly, then Unavailable
  availability,  // load, however many do
  protect,       // Unavailable at once: the store sees nothing of it
};

template <class K, class V>
struct RemoteUse {
  using Millis = std::chrono::milliseconds;

  // Null: there is none. A key that can't be used there (KeyFault) is loaded by each process for itself.
  std::shared_ptr<RemoteLevel> level{};
  Codec<K, V> codec{};
  // Whether to wait for another node's load, `patience` at most. Without it a miss that finds the lease taken loads
  // at once and shares nothing: a load for each process instead of one for all. What comes into the level is
  // under a lease in any case; what such a load leaves on this node may be older than another node's write that
  // came meanwhile, for the local TTL.
  bool lease = true;
  Millis patience{0};  // less than load_timeout; 0: half of it
  OnRemoteError on_error = OnRemoteError::bulkhead;
  std::size_t bulkhead_loads = 16;
  std::size_t bulkhead_waiting = 1'000;
  Millis bulkhead_wait{500};
  // After a failure the level isn't asked for retry_first, and for twice as long after each more, up to retry_last.
  Millis retry_first{100};
  Millis retry_last{2'000};
};

// News of what other nodes write, for what is cached here. With or without a remote level.
template <class K>
struct FeedUse {
  std::shared_ptr<DropFeed> feed{};  // null: there is none
  std::function<std::string(const K&)> key{};
  std::function<std::optional<K>(std::string_view)> parse{};  // what `key` has written; nothing: no such key

  // For integers and texts as keys.
  static FeedUse of(std::shared_ptr<DropFeed> feed) { return {std::move(feed), key_text<K>, key_of_text<K>}; }
};

template <class K, class V>
struct ReadThroughOptions {
  using Millis = std::chrono::milliseconds;
  // Reads many keys at once; those that it leaves out are absent.
  using BulkLoad = std::function<boost::asio::awaitable<std::vector<std::pair<K, V>>>(std::vector<K>)>;

  std::string name;                              // the label `cache` of the metrics; the same on all nodes
  std::size_t capacity = std::size_t{16} << 20;  // bytes of the local cache
  Millis ttl{std::chrono::minutes(10)};          // from the load, on all nodes
  double jitter = 0.1;                           // part of the TTL, both ways; 0: none
  Millis negative_ttl{std::chrono::seconds(5)};  // of an absence; at least a millisecond
  Millis soft_ttl{0};                            // when to refresh in the background; 0: never
  double early_refresh = 0;                      // beta of XFetch, see ttl.h; 0: off, 1: as in the paper
  // The longest that a load may take, from when the first asked for it. Nobody waits for it a sixteenth longer, not
  // even while its executor is blocked.
  Millis load_timeout{std::chrono::seconds(5)};
  std::size_t max_entry_weight = std::size_t{1} << 20;  // heavier values are served, not cached
  std::size_t max_bulk = 500;                           // keys in one call of the bulk loader
  std::size_t max_loads = 100'000;                      // at once; more are refused with Unavailable
  // Bytes of a value, sizeof(V) included. Without it: own_bytes, which knows strings and vectors; a type of your
  // own that owns memory needs one, or `capacity` doesn't bound that memory.
  std::function<std::size_t(const K&, const V&)> weigher{};
  // The filter, asked before a load, see membership.h; on a strand of the reader's executor, beside the reader, since for
  // its answer, too, nobody waits longer than load_timeout.
  std::function<boost::asio::awaitable<Membership>(const K&)> membership{};
  // What the filter can tell at once, which costs some microseconds less; nothing: `membership` is asked. Used only
  // where that is set.
  std::function<std::optional<Membership>(const K&)> membership_at_once{};
  // Single reads that miss at about the same time share a call of it too.
  BulkLoad bulk_load{};
  RemoteUse<K, V> remote{};
  FeedUse<K> feed{};
  const Clock* clock = &Clock::system();
  Pause pause = timer_pause;  // a simulation gives its own
};

}  // namespace weir::cache

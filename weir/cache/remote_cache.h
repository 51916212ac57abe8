// RemoteCache: what all nodes know of a kind of thing, in Redis.
//
// What it promises is said in remote_level.h. A lease that ran out, was evicted or flushed is void: whatever
// Redis forgets, it forgets to the safe side. TTLs are jittered, and never under a millisecond. Failures are the
// client's exceptions (weir/redis/error.h); of one key's type (WRONGTYPE) a KeyFault with the name in it, for
// `lease`, `release` and whatever reads. Writes (`put`, `take_over`, `remove`) replace or remove what is of another type.
//
// A Redis that keeps old snapshots may bring leases and values back from before a write; run it without
// persistence, or let the TTL bound the damage. The same goes for a write whose `remove` failed.
//
// Names: "prefix:vVERSION:NAME:{key}" and the same with ":lease". A new `version` (another serialization) knows
// nothing of the old one's values. The braces put both into one slot of a cluster; there, what is asked about many keys
// goes to their nodes side by side, and a node that doesn't answer is the fault of its own keys: Away, or, for `fill_many`
// and `remove_many`, thrown after the others were done. While a slot moves from node to node, a key of which nothing is
// known can't be asked for (Redis answers TRYAGAIN for its two names): it fails as if the node were away. What removes
// gets through, after its time-out.
//
//     RemoteCache remote(client, {.name = "article"});
//     auto answer = co_await remote.get_or_wait(key, 200ms);
//     if (auto* hit = std::get_if<RemoteCache::Hit>(&answer)) co_return hit->value;
//     auto value = co_await load(key);                             // and, if the lease is ours, share it
//     if (auto* lease = std::get_if<RemoteCache::Lease>(&answer)) co_await remote.fill(key, *lease, value);
//
// A write: `take_over` before the store is touched, if it wants to publish ahead; the commit; `remove`, which keeps
// its own lease good if no other write came between; `fill`.
//
// Thread-safe, as the client is. Each call is one round trip, `get_or_wait` one a look.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/cache/remote_level.h"
#include "weir/cache/remote_metrics.h"
#include "weir/redis/client.h"

namespace weir::cache {

struct RemoteCacheOptions {
  using Millis = std::chrono::milliseconds;
  std::string name;             // of the kind: in key names and as the label `cache`; [a-z0-9_], not empty
  std::string prefix = "weir";  // of all key names; without braces
  unsigned version = 1;         // of the values' format
  Millis ttl{std::chrono::minutes(10)};
  Millis negative_ttl{std::chrono::seconds(5)};
  double jitter = 0.1;  // part of a TTL, both ways; 0: none
  // How long a load may take: after that its lease is void, and another's turn.
  Millis lease_ttl{std::chrono::seconds(5)};
  Millis timeout{250};   // of a call
  Millis look_first{4};  // between the looks of who waits, about; doubles up to
  Millis look_last{64};
  std::size_t max_value_bytes = std::size_t{1} << 20;  // heavier values aren't kept
  // Longer keys are refused, and so are those that begin with a closing brace: std::invalid_argument.
  std::size_t max_key_bytes = 512;
};

class RemoteCache final : public RemoteLevel {
 public:
  using Options = RemoteCacheOptions;

  // The client must outlive the cache. Throws std::invalid_argument for names that can't be used.
  RemoteCache(redis::Client& client, Options options);

  Awaitable<std::optional<Hit>> get(std::string key) override;
  // The same for many, in the keys' order: what is there, Unknown, or why that key can't be told of. Each value and
  // what is left of its TTL are of one moment; on one server all of them are, in a cluster those of each slot.
  struct Unknown {};
  using Look = std::variant<Unknown, Hit, KeyFault, Away>;
  Awaitable<std::vector<Look>> get_many(std::vector<std::string> keys);
  Awaitable<Sight> peek(std::string key) override;

  // What is there, or the lease to load it, or who else has that.
  Awaitable<Answer> get_or_lease(std::string key);
  Awaitable<std::vector<Answer>> get_or_lease_many(std::vector<std::string> keys) override;
  // Looks again while another has the lease, at a pace between `look_first` and `look_last`.
  Awaitable<Answer> get_or_wait(std::string key, Millis patience) override;

  Awaitable<std::optional<Lease>> lease(std::string key) override;
  Awaitable<Lease> take_over(std::string key) override;

  Awaitable<std::vector<bool>> fill_many(std::vector<Fill> fills) override;
  Awaitable<void> release(std::string key, Lease lease) override;

  // Keeps the value whatever is there, and voids the lease. Of two who put the same key side by side the last
  // wins, which may be the older: for keys with one writer. Too heavy a value: removes the key.
  Awaitable<void> put(std::string key, std::string value, std::optional<Millis> ttl = {});
  Awaitable<void> put_absent(std::string key, std::optional<Millis> ttl = {});

  // Repeated by the client when its connection breaks.
  using RemoteLevel::remove;
  Awaitable<void> remove_many(std::vector<std::string> keys) override;
  Awaitable<bool> remove(std::string key, Lease own) override;

  Millis lease_ttl() const override { return options_.lease_ttl; }
  std::size_t max_value_bytes() const override { return options_.max_value_bytes; }
  const Options& options() const { return options_; }
  // The key's name in Redis, for people who look there.
  std::string value_name(std::string_view key) const;
  std::string lease_name(std::string_view key) const;

 private:
  std::optional<std::string> fault_of(std::string_view key) const;
  void check(std::string_view key) const;
  Awaitable<redis::Reply> run(const redis::Script& script, std::string key, std::vector<std::string> names,
                              std::vector<std::string> arguments);
  void throw_if_failed(const redis::Reply& reply, std::string_view what, std::string_view key) const;
  std::optional<KeyFault> key_fault(const redis::Reply& reply, std::string_view what,
                                    std::string_view key) const;
  Awaitable<std::vector<Look>> look_at(std::vector<std::string> names);
  Awaitable<std::vector<Look>> look_in_groups(std::vector<std::string> names);
  Awaitable<void> remove_apart(std::vector<std::string> keys);  // while their slot moves
  Awaitable<std::vector<Answer>> ask(std::vector<std::string> keys);
  std::string encoded(std::optional<std::string> value) const;
  std::string ttl_text(bool absent, std::optional<Millis> asked) const;
  Awaitable<void> put_encoded(std::string key, std::string bytes, std::string ttl);

  redis::Client& client_;
  const Options options_;
  const std::string names_;  // what they begin with
  RemoteMetrics metrics_;
};

}  // namespace weir::cache

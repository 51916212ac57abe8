// RemoteCache: what all nodes know of a kind of thing, in Redis.
//
// Promises:
//  - Value, absence and failure never share a type: a Hit with a value, a Hit without one (certainly absent),
//    nothing (not known here), and exceptions, which are the client's (weir/redis/error.h).
//  - A fill can't overwrite a newer write. Who loads a key takes its lease first; a write drops the key and
//    voids the lease in one step; a fill is done only under a lease that is still good, in one step with that
//    check ("Scaling Memcache at Facebook", Nishtala et al. 2013, section 3.2.1). A lease that ran out, was
//    evicted or flushed is void too: whatever Redis forgets, it forgets to the safe side.
//  - One lease a key: who misses while another loads is told so (Held) and may wait, so that a cluster loads a
//    key once.
//  - Everything has a TTL, jittered, of at least a millisecond.
//
// A Redis that keeps old snapshots may bring leases and values back from before a write; run it without
// persistence, or let the TTL bound the damage. The same goes for a write whose `remove` failed.
//
// Names: "prefix:vVERSION:NAME:{key}" and the same with ":lease". A new `version` (another serialization) knows
// nothing of the old one's values. The braces put both on one node of a cluster.
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
#include <utility>
#include <variant>
#include <vector>

#include "weir/redis/client.h"
#include "weir/redis/script.h"
#include "weir/telemetry/metrics.h"

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
  std::size_t max_key_bytes = 512;                     // longer keys are refused: std::invalid_argument
};

class RemoteCache {
 public:
  using Millis = std::chrono::milliseconds;
  using Options = RemoteCacheOptions;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  // What is known; no value: certainly absent. `left`: of its TTL; what is kept elsewhere should end by then.
  struct Hit {
    std::optional<std::string> value;
    Millis left;
  };
  // A permission to fill a key, while it lasts. To be given back by `fill` or `release`; else it runs out.
  struct Lease {
    std::string token;
  };
  // Another has the lease; it runs out in `left` at the latest.
  struct Held {
    Millis left;
  };
  using Answer = std::variant<Hit, Lease, Held>;
  struct Fill {
    std::string key;
    Lease lease;
    std::optional<std::string> value;  // none: absent
  };

  // The client must outlive the cache. Throws std::invalid_argument for names that can't be used.
  RemoteCache(redis::Client& client, Options options);

  // What is there; nothing when it isn't known.
  Awaitable<std::optional<Hit>> get(std::string key);
  // The same for many, in the keys' order.
  Awaitable<std::vector<std::optional<Hit>>> get_many(std::vector<std::string> keys);

  // What is there, or the lease to load it, or who else has that.
  Awaitable<Answer> get_or_lease(std::string key);
  // The same for many, in the keys' order: a bulk load takes its leases so.
  Awaitable<std::vector<Answer>> get_or_lease_many(std::vector<std::string> keys);
  // The same as get_or_lease, but while another has the lease it looks again, for `patience` at most: until the
  // value is there, or the lease is free and the caller's. Held: the patience has ended.
  Awaitable<Answer> get_or_wait(std::string key, Millis patience);

  // The lease although a value may be there: for a refresh in the background. Nothing: another has it.
  Awaitable<std::optional<Lease>> lease(std::string key);
  // The lease, whoever has it; theirs is void then. For a write, before the store is touched.
  Awaitable<Lease> take_over(std::string key);

  // Keeps the value under the lease. False: refused, because a write came between, the lease ran out, or the
  // value is too heavy. When the outcome is unknown (UnknownOutcome, TimedOut) it may be there, and is right.
  Awaitable<bool> fill(std::string key, Lease lease, std::string value, std::optional<Millis> ttl = {});
  Awaitable<bool> fill_absent(std::string key, Lease lease, std::optional<Millis> ttl = {});
  // Many at once, with the TTLs of the options: how many weren't refused.
  Awaitable<std::size_t> fill_many(std::vector<Fill> fills);
  // Gives the lease back without a fill: the load failed. Who waits needn't wait for its end.
  Awaitable<void> release(std::string key, Lease lease);

  // Keeps the value whatever is there, and voids the lease. Of two who put the same key side by side the last
  // wins, which may be the older: for keys with one writer. Too heavy a value: removes the key.
  Awaitable<void> put(std::string key, std::string value, std::optional<Millis> ttl = {});
  Awaitable<void> put_absent(std::string key, std::optional<Millis> ttl = {});

  // After the store's commit: forgets the keys, absences too, and voids their leases. Repeated by the client when
  // its connection breaks.
  Awaitable<void> remove(std::string key);
  Awaitable<void> remove_many(std::vector<std::string> keys);
  // The same but for the caller's own lease; whether that is still good.
  Awaitable<bool> remove(std::string key, Lease own);

  const Options& options() const { return options_; }
  // The key's name in Redis, for people who look there.
  std::string value_name(std::string_view key) const;
  std::string lease_name(std::string_view key) const;

 private:
  // weir_cache_lookups_total{cache,level="remote",result}, and the leases' and fills' own.
  struct Metrics {
    explicit Metrics(const std::string& cache);
    telemetry::Counter hit, negative_hit, miss, error;
    telemetry::Counter granted, held;
    telemetry::Counter filled, refused;
  };

  Awaitable<std::vector<Answer>> ask(std::vector<std::string> keys);
  std::string encoded(std::optional<std::string> value) const;
  std::string ttl_text(bool absent, std::optional<Millis> asked) const;
  Awaitable<bool> fill_encoded(std::string key, Lease lease, std::string bytes, std::string ttl);
  Awaitable<void> put_encoded(std::string key, std::string bytes, std::string ttl);
  void count(const Hit& hit);
  void count(const Answer& answer);

  redis::Client& client_;
  const Options options_;
  const std::string names_;  // what they begin with
  Metrics metrics_;
};

}  // namespace weir::cache

// RemoteLevel: what all nodes know of a kind of thing, whoever keeps it. The door between ReadThrough and a
// cache that nodes share: RemoteCache (Redis) and MemoryRemote (this process).
//
// What every one of them promises:
//  - Value, absence, "not known here" and failure never share a type. Failures are Unavailable (TimedOut among
//    them); then it isn't known whether it was done.
//  - One lease a key. A fill is done only under a lease that is still good, in one step with that check; a
//    `remove` drops the key and voids its lease in one step. So what was read before a write can't come in
//    after it ("Scaling Memcache at Facebook", Nishtala et al. 2013, section 3.2.1).
//  - Every call ends: within a time-out of its own, and at once when its coroutine is cancelled.
//  - Everything has a TTL, of at least a millisecond.
//
// Keys are short texts, not empty; values any bytes. Thread-safe. A key that can't be used is a
// std::invalid_argument.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace weir::cache {

class RemoteLevel {
 public:
  using Millis = std::chrono::milliseconds;
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
    std::optional<Millis> ttl = {};    // none: that of the level
  };
  // What `peek` sees: the value, and what is left of the lease that somebody has.
  struct Sight {
    std::optional<Hit> hit;
    std::optional<Millis> leased;
  };

  virtual ~RemoteLevel() = default;

  // What is there; nothing when it isn't known.
  virtual Awaitable<std::optional<Hit>> get(std::string key) = 0;
  // The same for people: it counts nothing and changes nothing.
  virtual Awaitable<Sight> peek(std::string key) = 0;

  // What is there, or the lease to load it. While another has the lease: waits, `patience` at most, until the
  // value is there, or the lease is free and the caller's. Held: the patience has ended.
  virtual Awaitable<Answer> get_or_wait(std::string key, Millis patience) = 0;
  // The same without any patience for many, in the keys' order: a bulk load takes its leases so.
  virtual Awaitable<std::vector<Answer>> get_or_lease_many(std::vector<std::string> keys) = 0;

  // The lease although a value may be there: for a refresh in the background. Nothing: another has it.
  virtual Awaitable<std::optional<Lease>> lease(std::string key) = 0;
  // The lease, whoever has it; theirs is void then. For a write, before the store is touched.
  virtual Awaitable<Lease> take_over(std::string key) = 0;

  // Keeps the value under the lease. False: refused, because a write came between, the lease ran out, or the
  // value is too heavy. When the outcome is unknown it may be there, and is right.
  virtual Awaitable<bool> fill(std::string key, Lease lease, std::string value,
                               std::optional<Millis> ttl = {}) = 0;
  virtual Awaitable<bool> fill_absent(std::string key, Lease lease, std::optional<Millis> ttl = {}) = 0;
  // Many at once: for each, in their order, whether it was done.
  virtual Awaitable<std::vector<bool>> fill_many(std::vector<Fill> fills) = 0;
  // Gives the lease back without a fill: the load failed. Who waits needn't wait for its end.
  virtual Awaitable<void> release(std::string key, Lease lease) = 0;

  // After the store's commit: forgets the keys, absences too, and voids their leases.
  virtual Awaitable<void> remove(std::string key) = 0;
  virtual Awaitable<void> remove_many(std::vector<std::string> keys) = 0;
  // The same but for the caller's own lease; whether that is still good.
  virtual Awaitable<bool> remove(std::string key, Lease own) = 0;

  virtual Millis lease_ttl() const = 0;             // how long a load may take
  virtual std::size_t max_value_bytes() const = 0;  // heavier values aren't kept
};

}  // namespace weir::cache

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
// Keys are short texts, not empty; values any bytes. Thread-safe. One key among many spoils nothing for the others:
//  - A key whose name can't be used is a std::invalid_argument. Among many a look answers KeyFault for it, it isn't
//    filled, and it is told after the others were removed.
//  - What lies under a key's names and isn't the level's (a Redis key of another type) is a KeyFault for who asks for
//    that key: never a miss, and no sign of how the level is. Nothing is filled under a lease that is such a thing.
//    Writes mend it: what takes over, removes or fills under a good lease replaces it, so that no old value stays.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "weir/base/fault.h"

namespace weir::cache {

// One key can't be used, or what is under it isn't the level's own: it says nothing about other keys, or about the
// level's health. The text has the key in it, if that isn't too long to be one.
class KeyFault : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

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
  // Of one key among many: the part of the level that has it doesn't answer, others do. Why: what is thrown when all
  // don't.
  struct Away {
    std::exception_ptr why;
  };
  using Answer = std::variant<Hit, Lease, Held, KeyFault, Away>;
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
  // value is there, or the lease is free and the caller's. Held: the patience has ended. A KeyFault is thrown.
  virtual Awaitable<Answer> get_or_wait(std::string key, Millis patience) = 0;
  // The same without any patience for many, in the keys' order: a bulk load takes its leases so. KeyFaults are answers,
  // and so is Away, as long as not all are.
  virtual Awaitable<std::vector<Answer>> get_or_lease_many(std::vector<std::string> keys) = 0;

  // The lease although a value may be there: for a refresh in the background. Nothing: another has it.
  virtual Awaitable<std::optional<Lease>> lease(std::string key) = 0;
  // The lease, whoever has it; theirs is void then. For a write, before the store is touched.
  virtual Awaitable<Lease> take_over(std::string key) = 0;

  // Keeps the values under their leases: for each, in their order, whether it was done. False: refused, because a
  // write came between, the lease ran out or was never given (a key that can't be used has none), or the value is
  // too heavy. When the outcome is unknown (it throws) a value may be there, and is right.
  virtual Awaitable<std::vector<bool>> fill_many(std::vector<Fill> fills) = 0;
  // One value, one absence.
  Awaitable<bool> fill(std::string key, Lease lease, std::string value, std::optional<Millis> ttl = {});
  Awaitable<bool> fill_absent(std::string key, Lease lease, std::optional<Millis> ttl = {});
  // Gives the lease back without a fill: the load failed. Who waits needn't wait for its end.
  virtual Awaitable<void> release(std::string key, Lease lease) = 0;

  // After the store's commit: forgets the keys, absences too, and voids their leases.
  virtual Awaitable<void> remove_many(std::vector<std::string> keys) = 0;
  Awaitable<void> remove(std::string key);
  // The same but for the caller's own lease; whether that is still good.
  virtual Awaitable<bool> remove(std::string key, Lease own) = 0;

  virtual Millis lease_ttl() const = 0;             // how long a load may take
  virtual std::size_t max_value_bytes() const = 0;  // heavier values aren't kept
};

}  // namespace weir::cache

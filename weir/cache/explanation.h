// Explanation: what the next read of a key would do and why, for people who wonder.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "weir/cache/membership.h"

namespace weir::cache {

struct Explanation {
  using Millis = std::chrono::milliseconds;

  enum class Local : std::uint8_t { unknown, fresh, stale, absent };
  enum class Remote : std::uint8_t {
    none,     // the cache has no such level
    value,    // it has the value
    absent,   // it knows that there is none
    damaged,  // what it has is no value of ours: as good as nothing
    leased,   // somebody loads the key
    nothing,  // it doesn't know the key
    away,     // it failed a moment ago and isn't asked
    failed,   // it fails now: `remote_error`
    unusable  // the key can't be used there, or what is under it: `remote_error`
  };
  // What the read would do.
  enum class Then : std::uint8_t {
    serve,              // what is here; `stale` and `under_way`: it is being refreshed already
    serve_and_refresh,  // the same, and start a refresh, unless one that has ended was started just before
    answer_absent,      // by the membership filter
    fail,               // the filter can't tell, or the store is protected while the remote level is away
    join,               // wait for the load that is under way here
    take_remote,        // what the remote level has
    wait_for_other,     // for another node's load, `patience` at most
    load,               // from the store, and share it if there is a remote level
    load_in_bulkhead,   // from the store, if there is a place in the bulkhead in time
    load_alone,         // from the store, and share it with nobody
  };

  Local local = Local::unknown;
  std::optional<Millis> local_left{};      // of its TTL here; none: it has none, or isn't known
  std::optional<Membership> membership{};  // if the cache has a filter and the read would ask it
  std::string membership_error{};
  bool under_way = false;  // a load of the key, here
  Remote remote = Remote::none;
  std::optional<Millis> remote_left{};   // of the value's TTL there
  std::optional<Millis> remote_age{};    // of the value, since it was loaded
  std::optional<Millis> remote_lease{};  // what is left of the lease that somebody has
  std::optional<Millis> asked_again{};   // `away`: when it is asked again
  std::string remote_error{};
  Then then = Then::load;
};

// A line for each step, and the last one for what follows; lines end with a newline.
std::string to_string(const Explanation& explanation);

}  // namespace weir::cache

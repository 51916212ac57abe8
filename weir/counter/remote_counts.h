// RemoteCounts: counts that all nodes show, in Redis, beside the store in which they are counted.
//
// A hash for each resource, with a field for each count, the row's version, and a TTL. Counts come there in two ways:
//  - A reader that misses gets a lease, reads the store and fills. One lease a resource.
//  - After each commit the writer tells the row's counts and version (`update_many`): they replace older ones. Where none
//    are there none are made, but the lease is void then, so that who has read the store before the commit can't fill.
// So what is shown is never older than an update that was told, in whatever order and however often updates come. An
// update that never came is made up for by the next one, by CountsFollower, or by the end of the TTL.
//
// (HINCRBY behind EXISTS, the simpler way, adds twice what is repeated, and never what is lost in a crash.)
//
// Names: "prefix:vVERSION:NAME:{key}" and the same with ":lease"; the braces put both into one slot of a cluster. A
// resource whose names hold another type is a KeyFault for readers; an update mends it. Failures are the client's
// exceptions; those of a part of a cluster are told for their own keys (Away, Told::unknown) as long as others answer.
//
//     RemoteCounts counts(client, {.name = "article_counts", .fields = {"reads", "likes"}});
//     auto answers = co_await counts.find_or_lease_many({"article:7"});
//     if (auto* lease = std::get_if<RemoteCounts::Lease>(&answers[0]))
//       co_await counts.fill_many({{"article:7", *lease, {.version = row.version, .values = {row.reads, row.likes}}}});
//     co_await counts.update_many({{"article:7", {.version = row.version, .values = {row.reads, row.likes}}}});
//
// Metrics: those of a remote cache for lookups, leases and fills; weir_remote_counts_updates_total{cache,outcome} with
// written|newer|absent|unknown. Thread-safe, as the client is. Each call is one round trip to each node that it concerns.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/cache/remote_level.h"
#include "weir/cache/remote_metrics.h"
#include "weir/redis/client.h"

namespace weir::counter {

struct RemoteCountsOptions {
  using Millis = std::chrono::milliseconds;
  std::string name;  // of the kind: in key names and as the label `cache`; [a-z0-9_], not empty
  std::vector<std::string>
      fields;  // of the counts, in the order of Counts::values; names as `name`, not "version"
  std::string prefix = "weir";  // of all key names; without braces
  unsigned version = 1;         // of the fields' meaning
  Millis ttl{15'000};           // since the last fill or update
  Millis lease_ttl{5'000};      // how long a load may take; less than `ttl`
  Millis timeout{250};          // of a call
  std::size_t max_key_bytes =
      512;  // longer keys are unusable, and so are those that begin with a closing brace
};

class RemoteCounts {
 public:
  using Options = RemoteCountsOptions;
  using Millis = std::chrono::milliseconds;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  // Versions of a resource only grow, from 0 to 10^15 (Lua counts exactly a little further); values have at most 18
  // digits, else they are never found.
  struct Counts {
    std::int64_t version = 0;
    std::vector<std::int64_t> values;
    bool operator==(const Counts&) const = default;
  };
  struct Hit {
    Counts counts;
    Millis left;  // of the TTL
  };
  using Lease = cache::RemoteLevel::Lease;
  using Held = cache::RemoteLevel::Held;
  using Away = cache::RemoteLevel::Away;
  using Answer = std::variant<Hit, Lease, Held, cache::KeyFault, Away>;
  struct Fill {
    std::string key;
    Lease lease;
    Counts counts;
  };
  struct Update {
    std::string key;
    Counts counts;
  };
  enum class Told {
    written,
    newer,    // or the same were there
    absent,   // none were there; a fill's lease is void
    unknown,  // whether it was done
    unusable  // the key
  };

  // The client must outlive it. Throws std::invalid_argument for names, fields or TTLs that can't be used.
  RemoteCounts(redis::Client& client, Options options);

  // For each key, in its order: what is there, or the lease to load it, or that another has it.
  Awaitable<std::vector<Answer>> find_or_lease_many(std::vector<std::string> keys);
  // For each whether it was done: not, when an update came between, the lease ran out, or newer counts are there. Throws
  // std::invalid_argument when the counts' number isn't that of the fields, and, after the others were filled, what a part
  // of a cluster fails with.
  Awaitable<std::vector<bool>> fill_many(std::vector<Fill> fills);
  // After a load that failed.
  Awaitable<void> release(std::string key, Lease lease);
  // After a commit. Of Redis' failures it throws nothing: they are `unknown`. May be repeated. Throws
  // std::invalid_argument as `fill_many`.
  Awaitable<std::vector<Told>> update_many(std::vector<Update> updates);

  const Options& options() const { return options_; }
  // The name of the hash, for people who look there. Throws std::invalid_argument for a key that can't be used.
  std::string hash_name(std::string_view key) const;
  std::string lease_name(std::string_view key) const;

 private:
  bool usable(std::string_view key) const;
  Answer answer_from(const std::string& key, redis::Reply reply, std::string token) const;
  void append(std::vector<std::string>& arguments, const Counts& counts) const;

  redis::Client& client_;
  const Options options_;
  const std::string names_;  // what they begin with
  cache::RemoteMetrics metrics_;
  telemetry::Counter written_, newer_, absent_, unknown_;
};

}  // namespace weir::counter

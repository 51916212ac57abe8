// MemoryRemote: the level that nodes share, in this process, under the same contract as the one in Redis.
//
// For tests, for the lab, and for simulations of several nodes: with a SimulatedTime nothing in it waits for
// the machine's clock. It can be told to refuse, to hang, to be slow, and to lose its answers. Thread-safe, for
// coroutines whose executor runs one handler at a time (a strand, or a context of one thread).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/random.h"
#include "weir/cache/pause.h"
#include "weir/cache/remote_level.h"
#include "weir/cache/remote_metrics.h"

namespace weir::cache {

struct MemoryRemoteOptions {
  using Millis = std::chrono::milliseconds;
  std::string name = "memory";  // the label `cache` of the metrics
  Millis ttl{std::chrono::minutes(10)};
  Millis negative_ttl{std::chrono::seconds(5)};
  double jitter = 0.1;  // part of a TTL, both ways; 0: none
  Millis lease_ttl{std::chrono::seconds(5)};
  Millis timeout{250};  // of a call, while it hangs
  std::size_t max_value_bytes = std::size_t{1} << 20;
  std::size_t max_key_bytes = 512;
  std::size_t max_keys =
      1'000'000;           // with a value or a lease; what needs one more is refused with Unavailable
  std::uint64_t seed = 0;  // of the jitter; 0: a secret one
  const Clock* clock = &Clock::system();
  Pause pause = timer_pause;
};

class MemoryRemote : public RemoteLevel {
 public:
  using Options = MemoryRemoteOptions;

  // What is wrong with it. Calls that are under way see the change too.
  struct Trouble {
    Millis latency{0};           // of each call, before it is done
    bool refuses = false;        // Unavailable at once; nothing is done
    bool hangs = false;          // nothing until the time-out, then TimedOut; nothing is done
    bool loses_replies = false;  // it is done, and the caller is told Unavailable
  };

  explicit MemoryRemote(Options options = {});
  ~MemoryRemote() override;
  MemoryRemote(const MemoryRemote&) = delete;
  MemoryRemote& operator=(const MemoryRemote&) = delete;

  void set_trouble(Trouble trouble);

  Awaitable<std::optional<Hit>> get(std::string key) override;
  Awaitable<Sight> peek(std::string key) override;
  Awaitable<Answer> get_or_wait(std::string key, Millis patience) override;
  Awaitable<std::vector<Answer>> get_or_lease_many(std::vector<std::string> keys) override;
  Awaitable<std::optional<Lease>> lease(std::string key) override;
  Awaitable<Lease> take_over(std::string key) override;
  Awaitable<std::vector<bool>> fill_many(std::vector<Fill> fills) override;
  Awaitable<void> release(std::string key, Lease lease) override;
  using RemoteLevel::remove;
  Awaitable<void> remove_many(std::vector<std::string> keys) override;
  Awaitable<bool> remove(std::string key, Lease own) override;
  Millis lease_ttl() const override { return options_.lease_ttl; }
  std::size_t max_value_bytes() const override { return options_.max_value_bytes; }

  // Accidents of a server: it makes room, it is flushed, somebody else writes there. At once, in any trouble.
  void evict_value(const std::string& key);
  void evict_lease(const std::string& key);
  void flush();
  void plant(const std::string& key, std::string bytes);  // as a value, under no lease
  void plant_foreign(const std::string& key);  // things of another type, in the places of value and lease
  std::uint64_t calls() const;                 // that came, done or not

 private:
  struct Entry {
    bool known = false;
    std::optional<std::string> value;  // none, and known: absent
    SteadyTime expires;
    std::string token;  // empty: no lease
    SteadyTime lease_expires;
    bool foreign_value = false, foreign_lease = false;  // see plant_foreign
    std::vector<std::weak_ptr<Gate>> waiting;           // for its next change
  };

  // The way there, with the trouble on it, and back. `looks`: for how many keys it is a look, for the metrics.
  Awaitable<void> arrive(std::size_t looks = 0);
  void leave(std::size_t looks = 0);
  std::optional<std::string> fault_of(const std::string& key) const;
  void check(const std::string& key) const;
  static void refuse_foreign(const std::string& key, bool is_foreign);
  Entry* find(const std::string& key);
  void make_room(std::span<const std::string> keys);
  Entry& entry_of(const std::string& key);
  void forget(const std::string& key);
  Answer ask(const std::string& key);
  Lease new_lease(Entry& entry);
  bool put(const std::string& key, const Lease& lease, std::optional<std::string> value,
           std::optional<Millis> ttl);
  std::optional<Hit> hit_of(const Entry& entry) const;
  bool is_leased(const Entry& entry) const;
  static void clear(Entry& entry);
  static void wake(Entry& entry);
  void purge();

  const Options options_;
  RemoteMetrics metrics_;
  mutable std::mutex mutex_;
  Random random_;
  Trouble trouble_;
  std::shared_ptr<Gate> mended_;  // those who hang wait for it
  std::uint64_t calls_ = 0, last_token_ = 0;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace weir::cache

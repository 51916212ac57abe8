// EndedSessions: which page sessions were ended before their cookies expired, kept in memory, so that a
// request with a cookie is checked without asking the store.
//
// A cookie lives for refresh_ttl; a session that was ended longer ago has no live cookie left and is
// forgotten. At most kMaxEntries are kept: when more end within refresh_ttl, the oldest are forgotten and, to
// stay on the safe side, every cookie issued before the youngest of those is refused from then on (its owner
// signs in again). So memory is bounded (about 12 MiB) and no ended session ever comes back.
//
// It knows what it is told: by this process as sessions end, and by the store at start. Thread-safe; `has` is
// one look-up under a shared lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <shared_mutex>
#include <string>
#include <unordered_set>

#include "weir/base/clock.h"

namespace weir::site::user {

class EndedSessions {
 public:
  static constexpr std::size_t kMaxEntries = 100'000;

  explicit EndedSessions(std::chrono::seconds refresh_ttl, std::size_t max_entries = kMaxEntries);

  // Sessions should come in the order in which they ended; a few out of order do no harm.
  void add(const std::string& session, WallTime ended_at);

  // Whether a cookie of the session that was issued then must be refused.
  bool has(const std::string& session, WallTime issued_at) const;

  std::size_t size() const;

 private:
  struct Entry {
    std::string session;
    WallTime ended_at;
  };
  void forget_oldest();

  const std::chrono::seconds refresh_ttl_;
  const std::size_t max_entries_;
  mutable std::shared_mutex mutex_;
  std::unordered_set<std::string> sessions_;
  std::deque<Entry> in_order_;
  WallTime refuse_up_to_ = WallTime::min();
};

}  // namespace weir::site::user

#include "site/user/ended_sessions.h"

#include <algorithm>
#include <mutex>

namespace weir::site::user {
namespace {

// A cookie's time is taken before its row is written, and has whole seconds: a session may seem to have ended
// a little before its last cookie was issued.
constexpr std::chrono::minutes kSlack{1};

}  // namespace

EndedSessions::EndedSessions(std::chrono::seconds refresh_ttl, std::size_t max_entries)
    : refresh_ttl_(refresh_ttl), max_entries_(max_entries) {}

void EndedSessions::add(const std::string& session, WallTime ended_at) {
  const std::unique_lock lock(mutex_);
  if (!sessions_.insert(session).second) return;
  in_order_.push_back({session, ended_at});
  while (in_order_.front().ended_at + refresh_ttl_ + kSlack < ended_at) forget_oldest();
  while (in_order_.size() > max_entries_) {
    refuse_up_to_ = std::max(refuse_up_to_, in_order_.front().ended_at + kSlack);
    forget_oldest();
  }
}

bool EndedSessions::has(const std::string& session, WallTime issued_at) const {
  const std::shared_lock lock(mutex_);
  return issued_at <= refuse_up_to_ || sessions_.contains(session);
}

std::size_t EndedSessions::size() const {
  const std::shared_lock lock(mutex_);
  return sessions_.size();
}

void EndedSessions::forget_oldest() {
  sessions_.erase(in_order_.front().session);
  in_order_.pop_front();
}

}  // namespace weir::site::user

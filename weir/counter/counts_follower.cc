#include "weir/counter/counts_follower.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weir/telemetry/metrics.h"

namespace weir::counter {

CountsFollower::CountsFollower(RemoteCounts& counts, Load load, Options options)
    : counts_(counts),
      load_(std::move(load)),
      options_(options),
      owed_now_(telemetry::gauge("weir_remote_counts_owed", "Counts that Redis couldn't be told yet",
                                 {{"cache", counts.options().name}})),
      forgotten_(telemetry::counter("weir_remote_counts_forgotten_total",
                                    "Counts that Redis couldn't be told and won't be told again",
                                    {{"cache", counts.options().name}})) {}

auto CountsFollower::versions_of(const Updates& updates) -> Versions {
  Versions versions;
  versions.reserve(updates.size());
  for (const auto& one : updates) versions.emplace_back(one.key, one.counts.version);
  return versions;
}

auto CountsFollower::committed(Updates updates) -> Awaitable<void> {
  const auto versions = versions_of(updates);
  owe(versions);  // before: whoever is cancelled while he waits still owes them
  forgotten_.add(static_cast<double>(pay(versions, co_await counts_.update_many(std::move(updates)))));
}

void CountsFollower::owe(const Versions& versions) {
  // An older update that is still on its way may begin the TTL anew, within its own time-out.
  const auto until = options_.clock->steady_now() + counts_.options().ttl + counts_.options().timeout;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, version] : versions) {
    const auto at = debts_.find(key);
    if (at != debts_.end()) {
      at->second = {std::max(at->second.version, version), until};
    } else if (debts_.size() < options_.max_owed) {
      debts_.emplace(key, Debt{version, until});
    }
  }
  owed_now_.set(static_cast<double>(debts_.size()));
}

std::size_t CountsFollower::pay(const Versions& versions, const std::vector<RemoteCounts::Told>& told) {
  std::size_t forgotten = 0;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const auto at = debts_.find(versions[i].first);
    if (told[i] == RemoteCounts::Told::unknown) forgotten += at == debts_.end() ? 1 : 0;
    if (told[i] == RemoteCounts::Told::unknown || at == debts_.end()) continue;
    if (at->second.version <= versions[i].second) debts_.erase(at);
  }
  owed_now_.set(static_cast<double>(debts_.size()));
  return forgotten;
}

// Those to be told now, each in its turn; what has ended by itself is owed no more.
std::vector<std::string> CountsFollower::due() {
  const auto now = options_.clock->steady_now();
  std::vector<std::string> keys;
  const std::lock_guard lock(mutex_);
  std::erase_if(debts_, [&](const auto& debt) { return debt.second.until <= now; });
  auto at = debts_.lower_bound(next_);
  while (keys.size() < std::min(options_.at_once, debts_.size())) {
    if (at == debts_.end()) at = debts_.begin();
    keys.push_back((at++)->first);
  }
  next_ = at == debts_.end() ? std::string() : at->first;
  owed_now_.set(static_cast<double>(debts_.size()));
  return keys;
}

auto CountsFollower::repair() -> Awaitable<std::size_t> {
  auto keys = due();
  if (keys.empty()) co_return 0;
  try {
    auto rows = co_await load_(keys);
    const auto versions = versions_of(rows);
    Versions gone;  // what has no row has nothing to tell
    for (auto& key : keys) {
      const bool there = std::ranges::any_of(versions, [&](const auto& one) { return one.first == key; });
      if (!there) gone.emplace_back(std::move(key), std::numeric_limits<std::int64_t>::max());
    }
    pay(gone, std::vector<RemoteCounts::Told>(gone.size(), RemoteCounts::Told::absent));
    pay(versions, co_await counts_.update_many(std::move(rows)));
  } catch (const Unavailable& error) {
    telemetry::swallowed("telling the counts " + counts_.options().name + " again", error);
  }
  co_return owed();
}

std::size_t CountsFollower::owed() const {
  const std::lock_guard lock(mutex_);
  return debts_.size();
}

}  // namespace weir::counter

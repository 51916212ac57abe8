// The jobs of the rankings: what computes the hot list, and what looks for lists that other processes
// computed.
#pragma once

#include <chrono>

#include "site/ranking/ranking_service.h"
#include "weir/scheduler/job.h"
#include "weir/scheduler/ticker.h"

namespace weir::site::ranking {

// What one run may take.
inline constexpr std::chrono::seconds kHotBudget{30};
// How often a serving process looks for a newer list.
inline constexpr std::chrono::seconds kLookEvery{1};

// `ranking:hot`, to be run by hand or by a Ticker. The service must outlive it.
scheduler::Job make_hot_job(RankingService& rankings, const Clock& clock = Clock::system());

// Shows newer lists as they appear in the store, from a thread of its own.
class BoardWatch {
 public:
  explicit BoardWatch(RankingService& rankings, const Clock& clock = Clock::system());
  void stop() { ticker_.stop(); }

 private:
  scheduler::Ticker ticker_;
};

}  // namespace weir::site::ranking

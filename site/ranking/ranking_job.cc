#include "site/ranking/ranking_job.h"

#include <string>

namespace weir::site::ranking {

scheduler::Job make_hot_job(RankingService& rankings, const Clock& clock) {
  return scheduler::Job(
      std::string(kHotJob), kHotBudget,
      [&rankings](scheduler::JobRun& run) {
        rankings.refresh_hot_now([&run] { run.check(); });
        return scheduler::JobOutcome::ok;
      },
      clock);
}

BoardWatch::BoardWatch(RankingService& rankings, const Clock& clock)
    : ticker_(
          "board-watch", kLookEvery, [&rankings](const std::stop_token&) { rankings.look_now(); }, clock) {}

}  // namespace weir::site::ranking

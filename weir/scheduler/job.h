// Job: a piece of background work with a name, a time budget, and a metric by name and outcome.
//
// Every run ends in exactly one outcome and is observed in weir_job_duration_seconds{job,outcome}; the series
// of all outcomes are there, at 0, from the moment the Job is made. A run never throws: what the work throws
// becomes its outcome, is logged, and is told in the result. How many runs failed in a row is kept and shown
// as weir_job_consecutive_failures{job}.
//
// The budget is cooperative: C++ threads can't be stopped from outside, so the work asks `run.check()`
// between its batches. Thread-safe; of two runs at once in one process, the second is skipped.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/telemetry/metrics.h"

namespace weir::scheduler {

enum class JobOutcome {
  ok,
  error,    // the work threw
  timeout,  // the time budget was used up
  lost,     // the right to run was taken away: the process stops, or another one has taken over
  skipped,  // there was nothing to do, or another run was under way
};
inline constexpr std::array kJobOutcomes{JobOutcome::ok, JobOutcome::error, JobOutcome::timeout,
                                         JobOutcome::lost, JobOutcome::skipped};
std::string_view to_string(JobOutcome outcome);

// What the work sees of its run.
class JobRun {
 public:
  JobRun(SteadyTime deadline, std::stop_token stop, const Clock& clock)
      : deadline_(deadline), stop_(std::move(stop)), clock_(clock) {}

  // Throws TimedOut past the deadline, and what ends the run as `lost` when it is asked to stop.
  void check() const;
  // How much of the budget is left; never negative.
  std::chrono::nanoseconds remaining() const;
  const std::stop_token& stop_token() const { return stop_; }

 private:
  SteadyTime deadline_;
  std::stop_token stop_;
  const Clock& clock_;
};

struct JobResult {
  JobOutcome outcome = JobOutcome::skipped;
  std::chrono::nanoseconds duration{0};
  std::string error;  // what the work threw, or why it didn't run; empty when it went well
  WallTime started_at{};
};

class Job {
 public:
  // Ends as `ok` unless it throws, or returns another outcome.
  using Work = std::function<JobOutcome(JobRun&)>;

  Job(std::string name, std::chrono::milliseconds budget, Work work, const Clock& clock = Clock::system());

  // One run, in the calling thread.
  JobResult run(std::stop_token stop = {});

  const std::string& name() const { return name_; }
  std::chrono::milliseconds budget() const { return budget_; }
  // Runs that ended as error or timeout since the last that was ok.
  int consecutive_failures() const { return failures_.load(); }
  // The last run that was not skipped.
  std::optional<JobResult> last() const;

 private:
  JobResult attempt(const std::stop_token& stop);
  void record(const JobResult& result);

  const std::string name_;
  const std::chrono::milliseconds budget_;
  const Work work_;
  const Clock& clock_;
  std::vector<telemetry::Histogram> durations_;  // one for each of kJobOutcomes
  telemetry::Gauge failures_gauge_;
  std::atomic<bool> running_{false};
  std::atomic<int> failures_{0};
  mutable std::mutex mutex_;
  std::optional<JobResult> last_;
};

}  // namespace weir::scheduler

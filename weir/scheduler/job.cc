#include "weir/scheduler/job.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "weir/base/fault.h"
#include "weir/telemetry/log.h"

namespace weir::scheduler {
namespace {

// Ends a run that was asked to stop. Nobody outside needs to catch it.
struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

std::string_view to_string(JobOutcome outcome) {
  switch (outcome) {
    case JobOutcome::ok:
      return "ok";
    case JobOutcome::error:
      return "error";
    case JobOutcome::timeout:
      return "timeout";
    case JobOutcome::lost:
      return "lost";
    case JobOutcome::skipped:
      return "skipped";
  }
  return "error";
}

void JobRun::check() const {
  if (stop_.stop_requested()) throw Stopped("asked to stop");
  if (clock_.steady_now() >= deadline_) throw TimedOut("the time budget is used up");
}

std::chrono::nanoseconds JobRun::remaining() const {
  return std::max<std::chrono::nanoseconds>(deadline_ - clock_.steady_now(),
                                            std::chrono::nanoseconds::zero());
}

Job::Job(std::string name, std::chrono::milliseconds budget, Work work, const Clock& clock)
    : name_(std::move(name)),
      budget_(budget),
      work_(std::move(work)),
      clock_(clock),
      failures_gauge_(telemetry::gauge("weir_job_consecutive_failures",
                                       "Runs of the job that failed since the last that went well",
                                       {{"job", name_}})) {
  for (const JobOutcome outcome : kJobOutcomes)
    durations_.push_back(
        telemetry::histogram("weir_job_duration_seconds", "How long runs of jobs took, by outcome",
                             {{"job", name_}, {"outcome", std::string(to_string(outcome))}}));
}

JobResult Job::run(std::stop_token stop) {
  if (running_.exchange(true)) {
    JobResult result{JobOutcome::skipped, {}, "a run is under way", clock_.now()};
    record(result);
    return result;
  }
  JobResult result = attempt(stop);
  record(result);
  running_.store(false);
  return result;
}

JobResult Job::attempt(const std::stop_token& stop) {
  JobResult result;
  result.started_at = clock_.now();
  const SteadyTime start = clock_.steady_now();
  JobRun run(start + budget_, stop, clock_);
  try {
    result.outcome = work_(run);
  } catch (const Stopped& e) {
    result.outcome = JobOutcome::lost;
    result.error = e.what();
  } catch (const TimedOut& e) {
    result.outcome = JobOutcome::timeout;
    result.error = e.what();
  } catch (const std::exception& e) {
    result.outcome = JobOutcome::error;
    result.error = e.what();
  }
  result.duration = clock_.steady_now() - start;
  return result;
}

void Job::record(const JobResult& result) {
  const auto which =
      static_cast<std::size_t>(std::ranges::find(kJobOutcomes, result.outcome) - kJobOutcomes.begin());
  const double seconds = std::chrono::duration<double>(result.duration).count();
  durations_[which].observe(seconds);
  if (result.outcome == JobOutcome::skipped) return;
  {
    const std::lock_guard lock(mutex_);
    last_ = result;
  }
  if (result.outcome == JobOutcome::ok) failures_.store(0);
  if (result.outcome == JobOutcome::error || result.outcome == JobOutcome::timeout) {
    const int failures = failures_.fetch_add(1) + 1;
    log::warn("job {}: {} after {:.3f} s, {} in a row: {}", name_, to_string(result.outcome), seconds,
              failures, result.error);
  }
  failures_gauge_.set(failures_.load());
}

std::optional<JobResult> Job::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace weir::scheduler

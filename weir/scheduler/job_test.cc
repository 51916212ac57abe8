#include "weir/scheduler/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "weir/base/fault.h"

namespace weir::scheduler {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string count_line(const std::string& job, const std::string& outcome, int count) {
  return "weir_job_duration_seconds_count{job=\"" + job + "\",outcome=\"" + outcome + "\"} " +
         std::to_string(count) + "\n";
}

TEST(Job, EverySeriesIsThereFromTheStart) {
  const Job job("quiet", 1s, [](JobRun&) { return JobOutcome::ok; });
  const std::string text = telemetry::scrape();
  for (const char* outcome : {"ok", "error", "timeout", "lost", "skipped"})
    EXPECT_THAT(text, HasSubstr(count_line("quiet", outcome, 0)));
  EXPECT_FALSE(job.last());
}

TEST(Job, TellsHowARunWentAndHowLongItTook) {
  ManualClock clock;
  Job job(
      "worker", 10s,
      [&](JobRun& run) {
        clock.advance(3s);
        run.check();
        EXPECT_EQ(run.remaining(), 7s);
        return JobOutcome::ok;
      },
      clock);
  const WallTime started = clock.now();
  const JobResult result = job.run();
  EXPECT_EQ(result.outcome, JobOutcome::ok);
  EXPECT_EQ(result.duration, 3s);
  EXPECT_EQ(result.started_at, started);
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(telemetry::scrape(), HasSubstr(count_line("worker", "ok", 1)));
}

TEST(Job, CountsFailuresInARow) {
  ManualClock clock;
  int runs = 0;
  Job job(
      "moody", 10s,
      [&](JobRun& run) {
        switch (++runs) {
          case 1:
            throw std::runtime_error("the store is away");
          case 2:
            clock.advance(10s);
            run.check();
            return JobOutcome::ok;
          case 3:
            return JobOutcome::skipped;
          default:
            return JobOutcome::ok;
        }
      },
      clock);
  EXPECT_EQ(job.run().outcome, JobOutcome::error);
  EXPECT_EQ(job.last()->error, "the store is away");
  EXPECT_EQ(job.consecutive_failures(), 1);
  const JobResult late = job.run();
  EXPECT_EQ(late.outcome, JobOutcome::timeout);
  EXPECT_EQ(late.duration, 10s);
  EXPECT_EQ(job.consecutive_failures(), 2);
  EXPECT_THAT(telemetry::scrape(), HasSubstr("weir_job_consecutive_failures{job=\"moody\"} 2\n"));
  EXPECT_EQ(job.run().outcome, JobOutcome::skipped);
  EXPECT_EQ(job.consecutive_failures(), 2) << "a run that was skipped says nothing";
  EXPECT_EQ(job.last()->outcome, JobOutcome::timeout);
  EXPECT_EQ(job.run().outcome, JobOutcome::ok);
  EXPECT_EQ(job.consecutive_failures(), 0);
  EXPECT_THAT(telemetry::scrape(), HasSubstr("weir_job_consecutive_failures{job=\"moody\"} 0\n"));
}

TEST(Job, IsLostWhenAskedToStop) {
  Job job("stopped", 10s, [&](JobRun& run) {
    run.check();
    return JobOutcome::ok;
  });
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(job.run(stop.get_token()).outcome, JobOutcome::lost);
  EXPECT_EQ(job.consecutive_failures(), 0);
}

TEST(JobConcurrency, TheSecondOfTwoRunsAtOnceIsSkipped) {
  std::promise<void> entered, may_leave;
  Job job("single", 10s, [&](JobRun&) {
    entered.set_value();
    may_leave.get_future().wait();
    return JobOutcome::ok;
  });
  auto first = std::async(std::launch::async, [&] { return job.run(); });
  entered.get_future().wait();
  EXPECT_EQ(job.run().outcome, JobOutcome::skipped);
  may_leave.set_value();
  EXPECT_EQ(first.get().outcome, JobOutcome::ok);
  EXPECT_EQ(job.last()->outcome, JobOutcome::ok);
}

}  // namespace
}  // namespace weir::scheduler

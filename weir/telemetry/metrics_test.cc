#include "weir/telemetry/metrics.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "weir/telemetry/log.h"

namespace weir::telemetry {
namespace {

TEST(Metrics, TheSameNameAndLabelsAreTheSameSeries) {
  counter("test_same_total", "help", {{"a", "1"}}).add(2);
  counter("test_same_total", "help", {{"a", "1"}}).add(3);
  counter("test_same_total", "help", {{"a", "2"}}).add(7);
  EXPECT_EQ(counter("test_same_total", "help", {{"a", "1"}}).value(), 5);
}

TEST(Metrics, AScrapeShowsSeriesAtZeroAndCallsItsHooks) {
  counter("test_zero_total", "nothing yet", {{"kind", "x"}});
  Gauge depth = gauge("test_depth", "set when asked");
  {
    const ScrapeHook hook = on_scrape([&] { depth.set(42); });
    const std::string text = scrape();
    EXPECT_NE(text.find("test_zero_total{kind=\"x\"} 0"), std::string::npos) << text;
    EXPECT_NE(text.find("test_depth 42"), std::string::npos) << text;
  }
  depth.set(1);
  EXPECT_NE(scrape().find("test_depth 1\n"), std::string::npos);
}

TEST(Metrics, WhatIsSwallowedIsCounted) {
  for (int i = 0; i < 3; ++i) swallowed("test.place", std::runtime_error("no luck"));
  EXPECT_EQ(counter("weir_swallowed_errors_total", "", {{"where", "test.place"}}).value(), 3);
}

TEST(MetricsConcurrency, NoIncrementIsLost) {
  Counter hits = counter("test_hits_total", "help");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) hits.add();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(hits.value(), 40'000);
}

TEST(Log, JsonStringsAreValidWhateverTheBytes) {
  EXPECT_EQ(log::json_string("a\"b\\c\n堰"), "\"a\\\"b\\\\c\\u000a堰\"");
  EXPECT_EQ(log::json_string("\xff"), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace weir::telemetry

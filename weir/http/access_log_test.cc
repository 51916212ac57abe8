#include "weir/http/access_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <thread>

namespace weir::http {
namespace {

TEST(AccessLogConcurrency, WritesEveryLine) {
  testing::internal::CaptureStderr();
  {
    AccessLog log(2);
    std::vector<std::thread> writers;
    writers.reserve(2);
    for (std::size_t lane = 0; lane < 2; ++lane) {
      writers.emplace_back([&, lane] {
        for (int i = 0; i < 100; ++i) {
          log.add(lane, {.method = "GET",
                         .path = "/\"quoted\"/" + std::to_string(i),
                         .peer = "127.0.0.1",
                         .request_id = "id",
                         .route = "/{name}",
                         .status = 200,
                         .bytes = 12,
                         .seconds = 0.0015,
                         .user_id = 7});
        }
      });
    }
    for (auto& writer : writers) writer.join();
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(lines, '\n'), 200);
  const auto fields = boost::json::parse("{" +
                                         to_log_fields({.method = "GET",
                                                        .path = "/\"x\"",
                                                        .peer = "127.0.0.1",
                                                        .request_id = "id",
                                                        .route = "/{name}",
                                                        .status = 200,
                                                        .bytes = 12,
                                                        .seconds = 0.0015,
                                                        .user_id = 7}) +
                                         "}");
  EXPECT_EQ(fields.at("path").as_string(), "/\"x\"");
  EXPECT_EQ(fields.at("duration_ms").as_double(), 1.5);
  EXPECT_EQ(fields.at("user_id").as_string(), "7");
}

TEST(AccessLogConcurrency, CountsWhatItDrops) {
  auto dropped =
      telemetry::counter("weir_http_access_log_dropped_total", "Access log lines dropped: too many waited");
  const double before = dropped.value();
  constexpr std::size_t kLines = AccessLog::kMaxWaiting + 1000;
  testing::internal::CaptureStderr();
  {
    AccessLog log(1);
    for (std::size_t i = 0; i < kLines; ++i) log.add(0, {});
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(static_cast<double>(std::ranges::count(lines, '\n')) + dropped.value() - before, kLines);
}

}  // namespace
}  // namespace weir::http

// Metrics: counters, gauges and histograms of the process, shown at /metrics in Prometheus' text format.
//
// A handle is made once and kept: using it costs 10 to 40 ns, looking it up by name and labels about half a
// microsecond. Making the same name and labels twice gives the same series. Handles are copied freely, are
// valid until the program ends, and are thread-safe. A series is there, at 0, from the moment its handle is
// made.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

// From prometheus-cpp, whose headers stay out of everybody's way.
namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace weir::telemetry {

using Labels = std::map<std::string, std::string>;

class Counter {
 public:
  explicit Counter(prometheus::Counter& series) : series_(&series) {}
  // n >= 0.
  void add(double n = 1);
  double value() const;

 private:
  prometheus::Counter* series_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge& series) : series_(&series) {}
  void set(double value);
  void add(double n);
  double value() const;

 private:
  prometheus::Gauge* series_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram& series) : series_(&series) {}
  void observe(double seconds);

 private:
  prometheus::Histogram* series_;
};

// The label names of one metric must be the same at every call. Names and labels must be valid for
// Prometheus.
Counter counter(const std::string& name, const std::string& help, const Labels& labels = {});
Gauge gauge(const std::string& name, const std::string& help, const Labels& labels = {});
// Buckets from 100 us to 10 s: durations, in seconds.
Histogram histogram(const std::string& name, const std::string& help, const Labels& labels = {});

// Calls `refresh` before each scrape until the returned guard is gone: for figures that are computed when
// asked.
class ScrapeHook {
 public:
  ScrapeHook() = default;
  explicit ScrapeHook(std::function<void()> refresh);
  ~ScrapeHook();
  ScrapeHook(ScrapeHook&& other) noexcept;
  ScrapeHook& operator=(ScrapeHook&& other) noexcept;

 private:
  std::uint64_t id_ = 0;
};
[[nodiscard]] ScrapeHook on_scrape(std::function<void()> refresh);

// All series as Prometheus' text format 0.0.4. Takes milliseconds: not for I/O threads under load.
std::string scrape();

// A failure that the caller decided to live with: it is counted in weir_swallowed_errors_total{where} and
// logged, at most once a second for each `where`. Never throws.
void swallowed(std::string_view where, const std::exception& error) noexcept;

}  // namespace weir::telemetry

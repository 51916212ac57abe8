#include "weir/telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "weir/telemetry/log.h"

namespace weir::telemetry {
namespace {

// Never destroyed: threads that outlive main's statics may still count.
prometheus::Registry& registry() {
  static auto* all = new prometheus::Registry();
  return *all;
}

const prometheus::Histogram::BucketBoundaries& duration_buckets() {
  static const auto* bounds = new prometheus::Histogram::BucketBoundaries{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  return *bounds;
}

struct Hooks {
  std::mutex mutex;
  std::uint64_t last_id = 0;
  std::map<std::uint64_t, std::function<void()>> refresh;
};

Hooks& hooks() {
  static auto* all = new Hooks();
  return *all;
}

// How often one place may log what it swallowed.
constexpr std::chrono::seconds kLogEvery{1};

bool may_log(const std::string& where) {
  static auto* mutex = new std::mutex();
  static auto* last = new std::map<std::string, std::chrono::steady_clock::time_point>();
  const std::lock_guard lock(*mutex);
  const auto now = std::chrono::steady_clock::now();
  const auto [at, fresh] = last->try_emplace(where, now);
  if (fresh) return true;
  if (now - at->second < kLogEvery) return false;
  at->second = now;
  return true;
}

}  // namespace

void Counter::add(double n) {
  series_->Increment(n);
}
double Counter::value() const {
  return series_->Value();
}
void Gauge::set(double value) {
  series_->Set(value);
}
void Gauge::add(double n) {
  series_->Increment(n);
}
double Gauge::value() const {
  return series_->Value();
}
void Histogram::observe(double seconds) {
  series_->Observe(seconds);
}

Counter counter(const std::string& name, const std::string& help, const Labels& labels) {
  return Counter(prometheus::BuildCounter().Name(name).Help(help).Register(registry()).Add(labels));
}

Gauge gauge(const std::string& name, const std::string& help, const Labels& labels) {
  return Gauge(prometheus::BuildGauge().Name(name).Help(help).Register(registry()).Add(labels));
}

Histogram histogram(const std::string& name, const std::string& help, const Labels& labels) {
  return Histogram(prometheus::BuildHistogram()
                       .Name(name)
                       .Help(help)
                       .Register(registry())
                       .Add(labels, duration_buckets()));
}

ScrapeHook::ScrapeHook(std::function<void()> refresh) {
  const std::lock_guard lock(hooks().mutex);
  id_ = ++hooks().last_id;
  hooks().refresh.emplace(id_, std::move(refresh));
}

ScrapeHook::ScrapeHook(ScrapeHook&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

ScrapeHook& ScrapeHook::operator=(ScrapeHook&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

ScrapeHook::~ScrapeHook() {
  if (id_ == 0) return;
  const std::lock_guard lock(hooks().mutex);
  hooks().refresh.erase(id_);
}

ScrapeHook on_scrape(std::function<void()> refresh) {
  return ScrapeHook(std::move(refresh));
}

std::string scrape() {
  {
    const std::lock_guard lock(hooks().mutex);
    for (const auto& [id, refresh] : hooks().refresh) refresh();
  }
  return prometheus::TextSerializer().Serialize(registry().Collect());
}

void swallowed(std::string_view where, const std::exception& error) noexcept {
  try {
    const std::string name(where);
    counter("weir_swallowed_errors_total", "Failures that were logged and lived with", {{"where", name}})
        .add();
    if (may_log(name)) log::warn("{}: {}", name, error.what());
  } catch (const std::exception&) {
    // Out of memory while reporting a failure: there is nobody left to tell.
  }
}

}  // namespace weir::telemetry

#include "weir/cache/cache_metrics.h"

namespace weir::cache {
namespace {

telemetry::Counter lookups(const std::string& cache, const char* level, const char* result) {
  return telemetry::counter("weir_cache_lookups_total", "What was found where the guarded read looked",
                            {{"cache", cache}, {"level", level}, {"result", result}});
}

telemetry::Counter loads(const std::string& cache, const char* outcome) {
  return telemetry::counter("weir_cache_loads_total", "Loads from the store",
                            {{"cache", cache}, {"outcome", outcome}});
}

void carry(telemetry::Counter& counter, std::uint64_t now, std::uint64_t told) {
  counter.add(static_cast<double>(now - told));
}

}  // namespace

CacheMetrics::CacheMetrics(const std::string& cache)
    : local_hit(lookups(cache, "local", "hit")),
      local_negative_hit(lookups(cache, "local", "negative_hit")),
      local_stale_hit(lookups(cache, "local", "stale_hit")),
      local_miss(lookups(cache, "local", "miss")),
      filtered(lookups(cache, "filter", "filtered")),
      filter_error(lookups(cache, "filter", "error")),
      store_hit(lookups(cache, "store", "hit")),
      store_miss(lookups(cache, "store", "miss")),
      store_error(lookups(cache, "store", "error")),
      load_ok(loads(cache, "ok")),
      load_absent(loads(cache, "absent")),
      load_error(loads(cache, "error")),
      load_timeout(loads(cache, "timeout")),
      coalesced(telemetry::counter("weir_cache_coalesced_total", "Reads that joined a load under way",
                                   {{"cache", cache}})),
      refused_fills(telemetry::counter(
          "weir_cache_refused_fills_total",
          "Values that weren't cached: a write came between, or they are too heavy", {{"cache", cache}})),
      evictions(
          telemetry::counter("weir_cache_evictions_total", "Entries that made room", {{"cache", cache}})),
      entries(telemetry::gauge("weir_cache_entries", "Entries of the local cache", {{"cache", cache}})),
      weight(telemetry::gauge("weir_cache_weight_bytes", "Memory of the local cache", {{"cache", cache}})) {}

void StatsPublisher::publish(const LocalCacheStats& now, std::size_t entries, std::size_t weight) {
  const std::lock_guard lock(mutex_);
  carry(metrics_.local_hit, now.hits, told_.hits);
  carry(metrics_.local_negative_hit, now.negative_hits, told_.negative_hits);
  carry(metrics_.local_stale_hit, now.stale_hits, told_.stale_hits);
  carry(metrics_.evictions, now.evictions, told_.evictions);
  told_ = now;
  metrics_.entries.set(static_cast<double>(entries));
  metrics_.weight.set(static_cast<double>(weight));
}

}  // namespace weir::cache

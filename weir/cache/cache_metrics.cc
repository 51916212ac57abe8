#include "weir/cache/cache_metrics.h"

#include <stdexcept>

namespace weir::cache {
namespace {

// One of the cache's own, with one label more or none.
telemetry::Counter counted(const std::string& cache, const char* name, const char* help,
                           const char* label = nullptr, const char* value = "") {
  telemetry::Labels labels{{"cache", cache}};
  if (label != nullptr) labels[label] = value;
  return telemetry::counter(name, help, labels);
}
telemetry::Counter loads(const std::string& cache, const char* outcome) {
  return counted(cache, "weir_cache_loads_total", "Loads from the store", "outcome", outcome);
}
telemetry::Counter told(const std::string& cache, const char* outcome) {
  return counted(cache, "weir_cache_told_total", "Keys written here that other nodes were told of", "outcome",
                 outcome);
}
telemetry::Counter refreshes(const std::string& cache, const char* outcome) {
  return counted(cache, "weir_cache_refreshes_total", "Refreshes in the background", "outcome", outcome);
}
telemetry::Counter fallbacks(const std::string& cache, const char* answer) {
  return counted(cache, "weir_cache_remote_fallbacks_total", "Answers to a remote level that fails", "answer",
                 answer);
}
telemetry::Counter drops(const std::string& cache, const char* outcome) {
  return counted(cache, "weir_cache_remote_drops_total", "Keys dropped at the remote level after a write",
                 "outcome", outcome);
}
telemetry::Counter codec_failures(const std::string& cache, const char* operation) {
  return counted(cache, "weir_cache_codec_failures_total", "Keys and values that can't be used as bytes",
                 "operation", operation);
}

void carry(telemetry::Counter& counter, std::uint64_t now, std::uint64_t told) {
  counter.add(static_cast<double>(now - told));
}

}  // namespace

telemetry::Counter lookups(const std::string& cache, const char* level, const char* result) {
  return telemetry::counter("weir_cache_lookups_total", "What was found where the guarded read looked",
                            {{"cache", cache}, {"level", level}, {"result", result}});
}

void swallowed(std::string_view where, const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    telemetry::swallowed(where, error);
  } catch (...) {
    telemetry::swallowed(where, std::runtime_error("what was thrown is no std::exception"));
  }
}

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
      refresh_ok(refreshes(cache, "ok")),
      refresh_error(refreshes(cache, "error")),
      refresh_adopted(refreshes(cache, "adopted")),
      refresh_skipped(refreshes(cache, "skipped")),
      batches(counted(cache, "weir_cache_batches_total", "Calls of the bulk loader")),
      batched_keys(counted(cache, "weir_cache_batched_keys_total", "Keys asked of the bulk loader")),
      remote_skipped(counted(cache, "weir_cache_remote_skipped_total",
                             "Reads that didn't ask the remote level, which is known to fail")),
      fallback_availability(fallbacks(cache, "availability")),
      fallback_protect(fallbacks(cache, "protect")),
      fallback_bulkhead(fallbacks(cache, "bulkhead")),
      bulkhead_refused(
          counted(cache, "weir_cache_bulkhead_refused_total", "Loads that found no place in the bulkhead")),
      unleased_loads(counted(cache, "weir_cache_unleased_loads_total",
                             "Loads beside another node's, which took too long")),
      drop_ok(drops(cache, "ok")),
      drop_error(drops(cache, "error")),
      told_ok(told(cache, "ok")),
      told_error(told(cache, "error")),
      heard(counted(cache, "weir_cache_heard_total", "Keys that other nodes have written")),
      missed(counted(cache, "weir_cache_missed_total",
                     "Times that all was dropped, since news of others' writes may have been missed")),
      key_failed(codec_failures(cache, "key")),
      encode_failed(codec_failures(cache, "encode")),
      decode_failed(codec_failures(cache, "decode")),
      owed_drops(telemetry::gauge("weir_cache_owed_drops",
                                  "Drops at the remote level that failed and weren't made up yet",
                                  {{"cache", cache}})),
      remote_away(telemetry::gauge("weir_cache_remote_away", "1 while the remote level is known to fail",
                                   {{"cache", cache}})),
      bulkhead_loads(
          telemetry::gauge("weir_cache_bulkhead_loads", "Loads inside the bulkhead", {{"cache", cache}})),
      bulkhead_waiting(telemetry::gauge("weir_cache_bulkhead_waiting",
                                        "Loads that wait for a place in the bulkhead", {{"cache", cache}})),
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

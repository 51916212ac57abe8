// CacheMetrics: what a ReadThrough tells about itself. All series are there, at 0, from the start.
//
// What the hot path counts (hits of the local cache) is kept by the local cache, a line a thread, and carried
// over before each scrape.
#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <string_view>

#include "weir/cache/local_cache.h"
#include "weir/telemetry/metrics.h"

namespace weir::cache {

// A handle of weir_cache_lookups_total{cache,level,result}.
telemetry::Counter lookups(const std::string& cache, const char* level, const char* result);

// As telemetry::swallowed, for what a caller's function threw, which may be no std::exception.
void swallowed(std::string_view where, const std::exception_ptr& thrown) noexcept;

// The handles, weir_cache_lookups_total{cache,level,result} by level and result.
struct CacheMetrics {
  explicit CacheMetrics(const std::string& cache);

  telemetry::Counter local_hit, local_negative_hit, local_stale_hit, local_miss;
  telemetry::Counter filtered, filter_error;
  telemetry::Counter store_hit, store_miss, store_error;
  telemetry::Counter load_ok, load_absent, load_error, load_timeout;  // weir_cache_loads_total{cache,outcome}
  telemetry::Counter coalesced;  // weir_cache_coalesced_total{cache}: reads that joined another's load
  telemetry::Counter
      refused_fills;             // weir_cache_refused_fills_total{cache}: a write came between, or too heavy
  telemetry::Counter evictions;  // weir_cache_evictions_total{cache}
  // weir_cache_refreshes_total{cache,outcome}: in the background; adopted: another node had done it; skipped:
  // another node does it, or the remote level is away
  telemetry::Counter refresh_ok, refresh_error, refresh_adopted, refresh_skipped;
  telemetry::Counter batches, batched_keys;  // weir_cache_batches_total, weir_cache_batched_keys_total{cache}

  // Of the remote level, beside what that counts itself (remote_metrics.h).
  telemetry::Counter
      remote_skipped;  // weir_cache_remote_skipped_total{cache}: not asked, it is known to fail
  // weir_cache_remote_fallbacks_total{cache,answer}: what was done without it
  telemetry::Counter fallback_availability, fallback_protect, fallback_bulkhead;
  telemetry::Counter bulkhead_refused;  // weir_cache_bulkhead_refused_total{cache}
  telemetry::Counter unleased_loads;    // weir_cache_unleased_loads_total{cache}: another node took too long
  telemetry::Counter drop_ok, drop_error;  // weir_cache_remote_drops_total{cache,outcome}: after a write
  // weir_cache_told_total{cache,outcome}: after a write; weir_cache_heard_total{cache}: keys that others wrote;
  // weir_cache_missed_total{cache}: all was dropped, since something may have been missed
  telemetry::Counter told_ok, told_error, heard, missed;
  // weir_cache_codec_failures_total{cache,operation}: key, encode, decode (damaged and foreign values too)
  telemetry::Counter key_failed, encode_failed, decode_failed;
  // weir_cache_remote_away, weir_cache_bulkhead_loads, weir_cache_bulkhead_waiting{cache}
  telemetry::Gauge
      owed_drops;  // weir_cache_owed_drops{cache}: failed, and to be made up before the key is read
  telemetry::Gauge remote_away, bulkhead_loads, bulkhead_waiting;
  telemetry::Gauge entries, weight;  // weir_cache_entries, weir_cache_weight_bytes{cache}
};

// Carries a local cache's own sums over into the metrics. Thread-safe.
class StatsPublisher {
 public:
  explicit StatsPublisher(CacheMetrics& metrics) : metrics_(metrics) {}
  void publish(const LocalCacheStats& now, std::size_t entries, std::size_t weight);

 private:
  CacheMetrics& metrics_;
  std::mutex mutex_;
  LocalCacheStats told_;
};

}  // namespace weir::cache

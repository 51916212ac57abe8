#include "weir/cache/remote_metrics.h"

#include "weir/cache/cache_metrics.h"

namespace weir::cache {
namespace {

telemetry::Counter leases(const std::string& cache, const char* outcome) {
  return telemetry::counter("weir_cache_remote_leases_total",
                            "Asked for the permission to load for all nodes",
                            {{"cache", cache}, {"outcome", outcome}});
}
telemetry::Counter fills(const std::string& cache, const char* outcome) {
  return telemetry::counter("weir_cache_remote_fills_total", "Values offered to the remote cache",
                            {{"cache", cache}, {"outcome", outcome}});
}

}  // namespace

RemoteMetrics::RemoteMetrics(const std::string& cache)
    : hit(lookups(cache, "remote", "hit")),
      negative_hit(lookups(cache, "remote", "negative_hit")),
      miss(lookups(cache, "remote", "miss")),
      error(lookups(cache, "remote", "error")),
      granted(leases(cache, "granted")),
      held(leases(cache, "held")),
      filled(fills(cache, "filled")),
      refused(fills(cache, "refused")) {}

void RemoteMetrics::count(const RemoteLevel::Answer& answer) {
  if (const auto* found = std::get_if<RemoteLevel::Hit>(&answer)) return count(*found);
  if (std::holds_alternative<KeyFault>(answer) || std::holds_alternative<RemoteLevel::Away>(answer))
    return error.add();
  miss.add();
  (std::holds_alternative<RemoteLevel::Lease>(answer) ? granted : held).add();
}

void RemoteMetrics::count_fills(std::size_t offered, std::size_t done) {
  filled.add(static_cast<double>(done));
  refused.add(static_cast<double>(offered - done));
}

}  // namespace weir::cache

// RemoteMetrics: what a remote level counts, whichever keeps it: level `remote` of weir_cache_lookups_total,
// and the leases' and fills' own. All series are there, at 0, from the start.
#pragma once

#include <cstddef>
#include <string>

#include "weir/cache/remote_level.h"
#include "weir/telemetry/metrics.h"

namespace weir::cache {

struct RemoteMetrics {
  explicit RemoteMetrics(const std::string& cache);

  void count(const RemoteLevel::Hit& found) { (found.value ? hit : negative_hit).add(); }
  void count(const RemoteLevel::Answer& answer);
  void count_fills(std::size_t offered, std::size_t done);

  telemetry::Counter hit, negative_hit, miss, error;
  telemetry::Counter granted, held;    // weir_cache_remote_leases_total{cache,outcome}
  telemetry::Counter filled, refused;  // weir_cache_remote_fills_total{cache,outcome}
};

}  // namespace weir::cache

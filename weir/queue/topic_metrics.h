// The metrics of a topic, the same whichever queue it is in.
#pragma once

#include <cstdint>
#include <string>

#include "weir/telemetry/metrics.h"

namespace weir::queue::topic_metrics {

inline telemetry::Counter published(const std::string& topic) {
  return telemetry::counter("weir_queue_published_total", "Events that the queue has taken",
                            {{"topic", topic}});
}

inline telemetry::Counter dropped(const std::string& topic) {
  return telemetry::counter("weir_queue_dropped_total", "Events that the journal could not take",
                            {{"topic", topic}});
}

inline telemetry::Gauge lag(const std::string& topic, const std::string& group, std::uint32_t partition) {
  return telemetry::gauge("weir_queue_lag", "Events published and not yet committed by the group",
                          {{"topic", topic}, {"group", group}, {"partition", std::to_string(partition)}});
}

}  // namespace weir::queue::topic_metrics

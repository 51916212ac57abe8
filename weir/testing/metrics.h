// What the metrics of this process say, for tests: they compare a figure before and after.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/telemetry/metrics.h"

namespace weir {

// The sum of the metric's series whose line has all these words in it. A metric that nobody has made is a
// std::logic_error: a misspelt name would be 0 before and after.
inline double metric(const std::string& name, const std::vector<std::string>& words) {
  std::istringstream lines(telemetry::scrape());
  double sum = 0;
  bool known = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + "{") && !line.starts_with(name + " ")) continue;
    bool all = known = true;
    for (const auto& word : words) all = all && line.find(word) != std::string::npos;
    if (all) sum += std::stod(line.substr(line.rfind(' ')));
  }
  if (!known) throw std::logic_error("no metric " + name);
  return sum;
}

// How many statements stores were given for the module.
inline double statements(const std::string& module) {
  return metric("weir_store_queries_total", {"module=\"" + module + "\""});
}
// And how often for one of its operations.
inline double statements(const std::string& module, const std::string& operation) {
  return metric("weir_store_queries_total", {"module=\"" + module + "\"", "operation=\"" + operation + "\""});
}

}  // namespace weir

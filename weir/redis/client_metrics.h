// ClientMetrics: what a Client tells about itself.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "weir/telemetry/metrics.h"

namespace weir::redis {

// How a call ended.
enum class Ending { ok, error, timeout, not_done, unknown, cancelled };

struct CommandMetrics {
  CommandMetrics(const std::string& client, const std::string& command);
  void count(Ending ending);

  telemetry::Counter ok, error, timeout, not_done, unknown, cancelled;
  telemetry::Histogram duration;
};

// Not thread-safe, but for what its handles are.
class ClientMetrics {
 public:
  explicit ClientMetrics(std::string client);

  // The command's, made when it is first asked for; stays where it is. After kMaxCommands others, "OTHER".
  CommandMetrics& of(const std::string& command);

 private:
  static constexpr std::size_t kMaxCommands = 64;
  const std::string client_;
  std::map<std::string, CommandMetrics> commands_;

 public:
  telemetry::Counter connects_ok, connects_failed, reconnects;
  telemetry::Gauge connected, waiting, waiting_bytes;
};

}  // namespace weir::redis

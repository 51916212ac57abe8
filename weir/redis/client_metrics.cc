#include "weir/redis/client_metrics.h"

#include <utility>

namespace weir::redis {
namespace {

telemetry::Counter commands_total(const std::string& client, const std::string& command,
                                  const char* outcome) {
  return telemetry::counter("weir_redis_commands_total", "Commands to Redis by how they ended",
                            {{"client", client}, {"command", command}, {"outcome", outcome}});
}
telemetry::Counter connects(const std::string& client, const char* outcome) {
  return telemetry::counter("weir_redis_connects_total", "Attempts to connect to Redis",
                            {{"client", client}, {"outcome", outcome}});
}

}  // namespace

CommandMetrics::CommandMetrics(const std::string& client, const std::string& command)
    : ok(commands_total(client, command, "ok")),
      error(commands_total(client, command, "error")),
      timeout(commands_total(client, command, "timeout")),
      not_done(commands_total(client, command, "not_done")),
      unknown(commands_total(client, command, "unknown")),
      cancelled(commands_total(client, command, "cancelled")),
      duration(telemetry::histogram("weir_redis_command_duration_seconds",
                                    "From the call to its reply, waiting in the queue included",
                                    {{"client", client}, {"command", command}})) {}

void CommandMetrics::count(Ending ending) {
  switch (ending) {
    case Ending::ok:
      return ok.add();
    case Ending::error:
      return error.add();
    case Ending::timeout:
      return timeout.add();
    case Ending::not_done:
      return not_done.add();
    case Ending::unknown:
      return unknown.add();
    case Ending::cancelled:
      return cancelled.add();
  }
}

ClientMetrics::ClientMetrics(std::string client)
    : client_(std::move(client)),
      connects_ok(connects(client_, "ok")),
      connects_failed(connects(client_, "error")),
      reconnects(telemetry::counter("weir_redis_reconnects_total",
                                    "Connections to Redis that replaced a broken one",
                                    {{"client", client_}})),
      connected(
          telemetry::gauge("weir_redis_connected", "1 while connected to Redis", {{"client", client_}})),
      waiting(telemetry::gauge("weir_redis_waiting", "Calls to Redis that are queued or not answered yet",
                               {{"client", client_}})),
      waiting_bytes(telemetry::gauge("weir_redis_waiting_bytes", "Bytes of the commands that wait",
                                     {{"client", client_}})) {}

CommandMetrics& ClientMetrics::of(const std::string& command) {
  const auto known = commands_.find(command);
  if (known != commands_.end()) return known->second;
  const std::string& label = commands_.size() < kMaxCommands ? command : std::string("OTHER");
  return commands_.try_emplace(label, client_, label).first->second;
}

}  // namespace weir::redis

#include "weir/queue/kafka_client.h"

#include <array>
#include <atomic>
#include <string_view>

#include "weir/base/fault.h"
#include "weir/telemetry/log.h"

namespace weir::queue::detail {
namespace {

// librdkafka repeats itself while a broker is away, for each broker and client.
constexpr int kLogLinesPerSecond = 5;

// Whether one more line may be logged now; `hushed` is how many may not since the last that could.
bool may_log(int& hushed) {
  static std::atomic<std::int64_t> second{0};
  static std::atomic<int> lines{0}, dropped{0};
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count();
  if (second.exchange(now) != now) lines = 0;
  if (lines.fetch_add(1) >= kLogLinesPerSecond) {
    dropped.fetch_add(1);
    return false;
  }
  hushed = dropped.exchange(0);
  return true;
}

log::Level level_of(int syslog_level) {
  constexpr int kCritical = 2, kWarning = 4, kInfo = 6;
  if (syslog_level <= kCritical) return log::Level::error;
  // What it calls an error is a broker that can't be reached, which is tried again.
  if (syslog_level <= kWarning) return log::Level::warn;
  return syslog_level <= kInfo ? log::Level::info : log::Level::debug;
}

}  // namespace

void log_kafka(int syslog_level, const char* facility, const char* text) {
  const std::string_view about(facility);
  log::Level mine = level_of(syslog_level);
  // That a setting is experimental is no news for who runs Weir, and a producer that ends rather than leave a gap is
  // replaced by another.
  if (about == "CONFWARN") mine = log::Level::debug;
  if (about == "FATAL") mine = log::Level::warn;
  int hushed = 0;
  if (!log::enabled(mine) || !may_log(hushed)) return;
  std::string line = fmt::format("kafka: {}: {}", facility, text);
  if (hushed > 0) line += fmt::format(" ({} more lines were left out)", hushed);
  log::write(mine, line);
}

KafkaConfig::KafkaConfig(const std::string& bootstrap, const std::string& client_id)
    : conf_(rd_kafka_conf_new()) {
  rd_kafka_conf_set_log_cb(conf_.get(), [](const rd_kafka_t*, int level, const char* facility,
                                           const char* text) { log_kafka(level, facility, text); });
  set("bootstrap.servers", bootstrap);
  set("client.id", client_id);
  set("client.software.name", "weir");
  set("log.connection.close", "false");
  // A broker that is back is used again soon.
  set("reconnect.backoff.ms", 50);
  set("reconnect.backoff.max.ms", 1'000);
  set("socket.timeout.ms", 10'000);
  set("socket.connection.setup.timeout.ms", 5'000);
  set("socket.nagle.disable", "true");
  // So are partitions that a topic has got.
  set("topic.metadata.refresh.interval.ms", 30'000);
  set("topic.metadata.refresh.fast.interval.ms", 100);
}

void KafkaConfig::set(const char* name, const std::string& value) {
  std::array<char, 512> why;
  if (rd_kafka_conf_set(conf_.get(), name, value.c_str(), why.data(), why.size()) != RD_KAFKA_CONF_OK)
    throw Unusable(why.data());
}

KafkaHandle KafkaConfig::make(rd_kafka_type_t type) {
  std::array<char, 512> why;
  KafkaHandle handle(rd_kafka_new(type, conf_.get(), why.data(), why.size()));
  if (!handle) throw_away("make a Kafka client", why.data());
  [[maybe_unused]] const rd_kafka_conf_t* theirs = conf_.release();  // the client has it now
  return handle;
}

void throw_away(const std::string& what, const std::string& why) {
  throw Unavailable("can't " + what + ": " + why);
}

void throw_unless_done(const std::string& what, rd_kafka_resp_err_t error) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw_away(what, rd_kafka_err2str(error));
}

}  // namespace weir::queue::detail

#include "weir/telemetry/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>

#include "weir/base/clock.h"
#include "weir/base/rfc3339.h"
#include "weir/base/utf8.h"

namespace weir::log {
namespace {

std::atomic<Level> level_now{Level::info};
constexpr std::array<std::string_view, 4> kNames{"debug", "info", "warn", "error"};

bool on_terminal() {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  return terminal;
}

// Never destroyed, so that the last threads may still log.
spdlog::logger& logger() {
  static auto* const the_logger = [] {
    spdlog::sink_ptr sink;
    if (on_terminal()) {
      sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
      sink->set_pattern("%H:%M:%S.%e %^%-5l%$ %v");
    } else {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
      sink->set_pattern("%v");
    }
    auto* made = new spdlog::logger("weir", sink);
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *the_logger;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
    case Level::off:
      break;
  }
  return spdlog::level::off;
}

std::string json_line(Level level, std::string_view message, std::string_view fields) {
  std::string line = R"({"time":")" + to_rfc3339(Clock::system().now()) + R"(","level":")";
  line += kNames[static_cast<std::size_t>(level)];
  line += R"(","message":)" + json_string(message);
  if (!fields.empty()) {
    line += ',';
    line += fields;
  }
  return line + '}';
}

}  // namespace

void set_level(Level level) {
  level_now.store(level, std::memory_order_relaxed);
}
bool enabled(Level level) {
  return level >= level_now.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view message, std::string_view fields) {
  if (!enabled(level) || level == Level::off) return;
  if (!on_terminal()) {
    logger().log(to_spdlog(level), json_line(level, message, fields));
  } else if (fields.empty()) {
    logger().log(to_spdlog(level), message);
  } else {
    logger().log(to_spdlog(level), "{} {}", message, fields);
  }
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  const bool valid = utf8_length(text).has_value();
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else if (byte >= 0x80 && !valid) {
      out += "\xef\xbf\xbd";
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace weir::log

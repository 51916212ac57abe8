// Logs: one line an event to standard error; text for people on a terminal, JSON lines for machines
// otherwise. Thread-safe. A line that is below the level costs a comparison.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <string>
#include <string_view>
#include <utility>

namespace weir::log {

enum class Level { debug, info, warn, error, off };

// Messages below it are dropped; `info` at start.
void set_level(Level level);
bool enabled(Level level);

// Writes the message as it is. A line has time, level and message; in JSON also what `fields` holds: a text
// of the form `"key":value,"key":value` that the caller has made valid JSON.
void write(Level level, std::string_view message, std::string_view fields = {});

template <class... A>
void debug(fmt::format_string<A...> format, A&&... args) {
  if (enabled(Level::debug)) write(Level::debug, fmt::format(format, std::forward<A>(args)...));
}
template <class... A>
void info(fmt::format_string<A...> format, A&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<A>(args)...));
}
template <class... A>
void warn(fmt::format_string<A...> format, A&&... args) {
  if (enabled(Level::warn)) write(Level::warn, fmt::format(format, std::forward<A>(args)...));
}
template <class... A>
void error(fmt::format_string<A...> format, A&&... args) {
  if (enabled(Level::error)) write(Level::error, fmt::format(format, std::forward<A>(args)...));
}

// The text as a JSON string, quotes included: for `fields`. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace weir::log

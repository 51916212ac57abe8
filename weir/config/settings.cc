#include "weir/config/settings.h"

#include <toml++/toml.h>
#include <algorithm>
#include <charconv>

#include "weir/base/units.h"

extern char** environ;

namespace weir::config {
namespace {

std::string in_quotes(const std::string& text) {
  return '"' + text + '"';
}

// Hides too much rather than too little: what stands before the last "@" of something that is no URL, too, and what
// some write behind a "?".
std::string without_credentials(const std::string& url) {
  const std::size_t query = url.find_first_of("?#");
  const std::string plain = url.substr(0, query),
                    rest = query == std::string::npos ? "" : url[query] + std::string("***");
  const std::size_t end = url.rfind('@');
  if (end == std::string::npos) return plain + rest;
  const std::size_t scheme = url.find("://");
  const std::string begin = scheme < end ? url.substr(0, scheme + 3) : "";
  return begin + "***" + (end < plain.size() ? plain.substr(end) + rest : "");
}

std::string shown_of(const Key& key, const std::string& value) {
  if (value.empty() || key.secrecy == Secrecy::none) return value;
  return key.secrecy == Secrecy::whole ? "***" : without_credentials(value);
}

std::optional<std::int64_t> parse_integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool fits_kind(Kind kind, const std::string& value) {
  switch (kind) {
    case Kind::text:
    case Kind::list:
      return true;
    case Kind::integer:
      return parse_integer(value).has_value();
    case Kind::boolean:
      return value == "true" || value == "false";
    case Kind::duration:
      return parse_duration(value).has_value();
    case Kind::size:
      return parse_size(value).has_value();
  }
  return false;
}

// "http.max_body" is WEIR_HTTP_MAX_BODY.
std::string variable_of(const std::string& name) {
  std::string variable = "WEIR_";
  for (const char c : name)
    variable += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

// A TOML value in the form that the environment would have; nothing for tables, dates and the like.
std::optional<std::string> as_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  const auto* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::string joined;
  for (const auto& element : *array) {
    const auto* text = element.as_string();
    if (text == nullptr || text->get().find(',') != std::string::npos) return std::nullopt;
    joined += (joined.empty() ? "" : ",") + text->get();
  }
  return joined;
}

std::string place(const std::filesystem::path& path, const toml::source_region& region) {
  return path.string() + ':' + std::to_string(region.begin.line);
}

}  // namespace

Settings Settings::load(std::vector<Key> keys, const std::optional<std::filesystem::path>& file,
                        const Variables& environment, const Variables& flags) {
  Settings settings;
  for (Key& key : keys) {
    std::string initial = key.initial;
    settings.entries_.push_back({std::move(key), std::move(initial), "default"});
  }
  if (file) {
    settings.read_file(*file);
  } else if (std::filesystem::exists("weir.toml")) {
    settings.read_file("weir.toml");
  }
  settings.read_environment(environment);
  for (const auto& [name, value] : flags) settings.set(name, value, "flag");
  return settings;
}

Settings::Entry& Settings::known(const std::string& name, const std::string& origin) {
  const auto found = std::ranges::find(entries_, name, [](const Entry& e) { return e.key.name; });
  if (found != entries_.end()) return *found;
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.key.name);
  throw BadSetting("unknown key " + in_quotes(name) + " in " + origin + did_you_mean(name, names));
}

void Settings::set(const std::string& name, std::string value, const std::string& origin) {
  Entry& entry = known(name, origin);
  std::string fault;
  if (!fits_kind(entry.key.kind, value)) {
    fault = "it isn't";
  } else if (entry.key.fault) {
    fault = entry.key.fault(value);
  }
  if (!fault.empty()) {
    const std::string shown = in_quotes(shown_of(entry.key, value));
    throw BadSetting(name + " = " + shown + " (from " + origin + ") can't be used: allowed is " +
                     entry.key.allowed + (fault == "it isn't" ? "" : "; " + fault));
  }
  entry.value = std::move(value);
  entry.origin = origin;
}

void Settings::read_file(const std::filesystem::path& path) {
  toml::table table;
  try {
    table = toml::parse_file(path.string());
  } catch (const toml::parse_error& error) {
    throw BadSetting(place(path, error.source()) + ": " + std::string(error.description()));
  }
  const auto take = [&](const std::string& name, const toml::node& node) {
    const std::string origin = place(path, node.source());
    const Entry& entry = known(name, origin);
    const auto value = as_text(node);
    if (!value)
      throw BadSetting(name + " (from " + origin + ") can't be used: allowed is " + entry.key.allowed);
    set(name, *value, origin);
  };
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const auto* section = node.as_table();
    if (section == nullptr) {
      take(name, node);
    } else {
      for (const auto& [inner, value] : *section) take(name + '.' + std::string(inner.str()), value);
    }
  }
}

void Settings::read_environment(const Variables& environment) {
  std::vector<std::string> variables;
  for (const Entry& entry : entries_) variables.push_back(variable_of(entry.key.name));
  for (const auto& [variable, value] : environment) {
    if (!variable.starts_with("WEIR_")) continue;
    const auto found = std::ranges::find(variables, variable);
    if (found == variables.end()) {
      warnings_.push_back("unknown variable " + variable + did_you_mean(variable, variables));
    } else {
      set(entries_[static_cast<std::size_t>(found - variables.begin())].key.name, value, variable);
    }
  }
}

const Settings::Entry& Settings::at(std::string_view name) const {
  const auto found =
      std::ranges::find(entries_, name, [](const Entry& e) -> std::string_view { return e.key.name; });
  if (found == entries_.end()) throw std::logic_error("no such setting: " + std::string(name));
  return *found;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from <= text.size() && !text.empty()) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    parts.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

std::string Settings::text(std::string_view name) const {
  return at(name).value;
}
std::int64_t Settings::integer(std::string_view name) const {
  return parse_integer(at(name).value).value();
}
bool Settings::boolean(std::string_view name) const {
  return at(name).value == "true";
}
std::chrono::milliseconds Settings::duration(std::string_view name) const {
  return parse_duration(at(name).value).value();
}
std::uint64_t Settings::size(std::string_view name) const {
  return parse_size(at(name).value).value();
}
std::vector<std::string> Settings::list(std::string_view name) const {
  return split_list(at(name).value);
}

std::string Settings::origin(std::string_view name) const {
  return at(name).origin;
}

std::vector<Shown> Settings::all() const {
  std::vector<Shown> shown;
  for (const Entry& entry : entries_) {
    shown.push_back({entry.key.name, shown_of(entry.key, entry.value), entry.origin});
  }
  return shown;
}

Settings::Variables environment() {
  Settings::Variables variables;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view line = *at;
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return variables;
}

}  // namespace weir::config

// Settings: every value that a program can be given, each with a default, a check, and where it came from.
//
// A program declares its keys once. A value is taken from the last of these that has it: the default, the
// file, the environment, the flags. What can't be used stops the start with the key, the value, what is
// allowed and where it was read from; an unknown key in the file stops it too, an unknown variable of the
// environment is a warning. Settings are plain values after `load`: copied freely, read from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/fault.h"

namespace weir::config {

enum class Kind { text, integer, boolean, duration, size, list };

// What is shown of a value, in messages and by `all`.
enum class Secrecy {
  none,
  whole,        // "***" instead of it
  credentials,  // of a URL: "redis://***@host"
};

struct Key {
  std::string name;  // "http.max_body": section and key; a key without a section has no dot
  Kind kind = Kind::text;
  std::string initial;  // the default, as one writes it in the environment
  std::string allowed;  // what may be said, for people: "a size such as 64KiB or 2MiB"
  // Further demands: what is wrong with the value, or an empty text. May be empty.
  std::function<std::string(const std::string&)> fault;
  Secrecy secrecy = Secrecy::none;
};

// A value that can't be used, an unknown key, a file that can't be read.
class BadSetting : public Unusable {
 public:
  using Unusable::Unusable;
};

// The parts between the commas; an empty text has none.
std::vector<std::string> split_list(const std::string& text);

struct Shown {
  std::string name, value, origin;
};

class Settings {
 public:
  using Variables = std::map<std::string, std::string>;

  // `file`: a path that must exist, or nothing for ./weir.toml if it is there. `environment`: all variables;
  // those that begin with "WEIR_" count: WEIR_<SECTION>_<KEY>. `flags`: key name to value, with the flag's
  // spelling as origin. Throws BadSetting.
  static Settings load(std::vector<Key> keys, const std::optional<std::filesystem::path>& file,
                       const Variables& environment, const Variables& flags);

  std::string text(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::chrono::milliseconds duration(std::string_view name) const;
  std::uint64_t size(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;
  // Where the value was said: a file with its line, a variable, a flag, or "default".
  std::string origin(std::string_view name) const;

  // Every key with its value (secrets hidden) and where it came from, in the order of declaration.
  std::vector<Shown> all() const;
  // Oddities that don't stop the start, such as an unknown WEIR_* variable.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Entry {
    Key key;
    std::string value, origin;
  };
  Entry& known(const std::string& name, const std::string& origin);
  const Entry& at(std::string_view name) const;
  void set(const std::string& name, std::string value, const std::string& origin);
  void read_file(const std::filesystem::path& path);
  void read_environment(const Variables& environment);

  std::vector<Entry> entries_;
  std::vector<std::string> warnings_;
};

// The variables of this process, for `load`.
Settings::Variables environment();

// The known word that is nearest to `word` by Damerau-Levenshtein distance (at most a third of its length
// away), for "did you mean".
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known);

// " (did you mean \"x\"?)" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace weir::config

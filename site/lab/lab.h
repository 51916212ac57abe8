// The lab: accidents that happen to caches, each beside its cure, over the library's own code. For people who
// learn how such systems work.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::site {

// One row of what an accident shows: the same thing measured on both sides.
struct Figure {
  using Value = std::variant<bool, std::uint64_t, std::string>;
  std::string key;    // in JSON
  std::string label;  // for people
  Value without, with;
};

struct Outcome {
  // The accident happened without the cure, and not with it: both, or nothing has been shown.
  bool held = false;
  std::vector<Figure> figures;
};

struct Accident {
  std::string name, title;
  std::string before;         // one sentence: what is about to happen
  std::string without, with;  // what stands on each side
  std::string after;          // one sentence: what one has seen
  std::string header;         // where to read on
  // Ends within seconds, needs nothing but memory, leaves nothing behind; held or not is the same each time.
  Outcome (*run)();
};

// In the order in which to read them.
std::span<const Accident> accidents();
// Null when there is none of that name.
const Accident* find_accident(std::string_view name);

// {name, held, without: {key: value, ..}, with: {..}}
std::string to_json(const Accident& accident, const Outcome& outcome);
// The sentences and the table between them; lines end with a newline.
std::string to_text(const Accident& accident, const Outcome& outcome);

}  // namespace weir::site

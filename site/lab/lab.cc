#include "site/lab/lab.h"

#include <algorithm>
#include <array>

#include "site/lab/accidents.h"
#include "weir/http/json_writer.h"

namespace weir::site {
namespace {

constexpr std::size_t kWidth = 100;

std::string text_of(const Figure::Value& value) {
  if (const auto* yes = std::get_if<bool>(&value)) return *yes ? "yes" : "no";
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
  return std::get<std::string>(value);
}

void write(http::JsonWriter& json, const Figure::Value& value) {
  if (const auto* yes = std::get_if<bool>(&value)) {
    json.boolean(*yes);
  } else if (const auto* number = std::get_if<std::uint64_t>(&value)) {
    json.integer(static_cast<std::int64_t>(*number));
  } else {
    json.string(std::get<std::string>(value));
  }
}

void write_side(http::JsonWriter& json, const Outcome& outcome, Figure::Value Figure::* side) {
  json.begin_object();
  for (const Figure& figure : outcome.figures) {
    json.key(figure.key);
    write(json, figure.*side);
  }
  json.end_object();
}

// The text in lines of at most kWidth, broken at spaces.
std::string wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > kWidth) {
    const std::size_t space = text.rfind(' ', kWidth);
    if (space == std::string_view::npos) break;
    lines.append(text.substr(0, space)) += '\n';
    text.remove_prefix(space + 1);
  }
  return lines.append(text) += '\n';
}

std::string row(const std::array<std::string, 3>& cells, const std::array<std::size_t, 3>& widths) {
  std::string line = "  " + cells[0] + std::string(widths[0] - cells[0].size(), ' ');
  for (std::size_t i = 1; i < cells.size(); ++i)
    line += "   " + std::string(widths[i] - cells[i].size(), ' ') + cells[i];
  return line += '\n';
}

std::string table(const Outcome& outcome) {
  std::vector<std::array<std::string, 3>> rows{{"", "without", "with"}};
  for (const Figure& figure : outcome.figures)
    rows.push_back({figure.label, text_of(figure.without), text_of(figure.with)});
  std::array<std::size_t, 3> widths{};
  for (const auto& cells : rows)
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  std::string lines;
  for (const auto& cells : rows) lines += row(cells, widths);
  return lines;
}

}  // namespace

std::span<const Accident> accidents() {
  static const std::array all{stampede(),     penetration(),  avalanche(),   stale_fill(),
                              double_write(), long_absence(), lost_wakeup(), cache_down()};
  return all;
}

const Accident* find_accident(std::string_view name) {
  const auto found = std::ranges::find(accidents(), name, &Accident::name);
  return found == accidents().end() ? nullptr : &*found;
}

std::string to_json(const Accident& accident, const Outcome& outcome) {
  http::JsonWriter json;
  json.begin_object().key("name").string(accident.name).key("held").boolean(outcome.held);
  json.key("without");
  write_side(json, outcome, &Figure::without);
  json.key("with");
  write_side(json, outcome, &Figure::with);
  json.end_object();
  return std::move(json).take();
}

std::string to_text(const Accident& accident, const Outcome& outcome) {
  std::string text = accident.name + ": " + accident.title + "\n\n" + wrapped(accident.before) + '\n';
  text += table(outcome);
  text += "\n  without: " + accident.without + "\n  with:    " + accident.with + "\n\n";
  text += wrapped((outcome.held ? "The cure held. " : "THE CURE DID NOT HOLD. What should have been seen: ") +
                  accident.after);
  return text + "Read " + accident.header + ".\n";
}

}  // namespace weir::site

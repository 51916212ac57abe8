#include "site/pages/words.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <stdexcept>

#include "site/pages/assets.h"
#include "weir/base/fault.h"
#include "weir/base/rfc3339.h"

namespace weir::site::pages {
namespace {

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;

std::int64_t whole_number(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "12,345": how far a string goes to its next comma.
std::string_view item_at(std::string_view list, unsigned index) {
  for (; index > 0; --index) list.remove_prefix(std::min(list.find(',') + 1, list.size()));
  return list.substr(0, list.find(','));
}

}  // namespace

Words::Words(Language language, std::string_view json) : language_(language) {
  boost::system::error_code failed;
  const auto parsed = boost::json::parse(json, failed);
  if (failed || !parsed.is_object()) throw Unusable("the messages are not a JSON object");
  for (const auto& section : parsed.as_object()) {
    if (!section.value().is_object()) throw Unusable("a section of the messages is not an object");
    for (const auto& text : section.value().as_object()) {
      if (!text.value().is_string()) throw Unusable("a message is not a text");
      std::string key(section.key());
      key.append(".").append(text.key());
      texts_.emplace(std::move(key), std::string(text.value().as_string()));
    }
  }
}

const Words& Words::of(Language language) {
  static const Words english(Language::en, embedded_text("messages/en.json"));
  static const Words chinese(Language::zh, embedded_text("messages/zh.json"));
  return language == Language::zh ? chinese : english;
}

const std::string& Words::operator()(std::string_view key) const {
  const auto found = texts_.find(key);
  if (found == texts_.end()) throw std::logic_error("no message is called " + std::string(key));
  return found->second;
}

std::string Words::operator()(
    std::string_view key, std::initializer_list<std::pair<std::string_view, std::string_view>> values) const {
  std::string_view rest = (*this)(key);
  std::string out;
  while (!rest.empty()) {
    const auto open = std::min(rest.find('{'), rest.size());
    out.append(rest.substr(0, open));
    rest.remove_prefix(open);
    const auto close = rest.find('}');
    if (close == rest.npos) return out.append(rest);
    const auto name = rest.substr(1, close - 1);
    for (const auto& [known, value] : values)
      if (known == name) out.append(value);
    rest.remove_prefix(close + 1);
  }
  return out;
}

std::string Words::for_script(std::span<const std::string_view> sections) const {
  boost::json::object texts;
  for (const auto section : sections) {
    const std::string prefix = std::string(section) + ".";
    for (auto at = texts_.lower_bound(prefix); at != texts_.end() && at->first.starts_with(prefix); ++at)
      texts[at->first] = at->second;
  }
  const auto json = boost::json::serialize(texts);
  // "</script" and "<!--" would end or change the element that holds it.
  std::string safe;
  for (const char c : json) {
    if (c == '<') {
      safe.append("\\u003c");
    } else {
      safe.push_back(c);
    }
  }
  return safe;
}

std::string Words::short_number(std::int64_t n) const {
  auto text = std::to_string(n);
  for (const auto* key : {"words.unit_1", "words.unit_2", "words.unit_3"}) {
    const std::string_view unit = (*this)(key);
    const auto colon = unit.find(':');
    const auto size = whole_number(unit.substr(0, colon));
    if (size < 10 || n < size) break;
    const auto tenths = n / (size / 10);
    text = std::to_string(tenths / 10);
    if (tenths < 1000 && tenths % 10 > 0) text.append(".").append(std::to_string(tenths % 10));
    text.append(unit.substr(colon + 1));
  }
  return text;
}

std::string Words::counted(std::string_view what, std::int64_t n) const {
  const auto key = "words." + std::string(what);
  if (n == 1) return (*this)(key + "_one");
  return (*this)(key, {{"n", short_number(n)}});
}

std::string Words::when(WallTime time, WallTime now) const {
  const auto age = (to_micros(now) - to_micros(time)) / 1'000'000;
  if (age < kMinute) return (*this)("words.just_now");
  if (age < kHour) return counted("minutes", age / kMinute);
  if (age < kDay) return counted("hours", age / kHour);
  if (age < 7 * kDay) return counted("days", age / kDay);
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(time));
  const auto month = item_at((*this)("words.months"), static_cast<unsigned>(date.month()) - 1);
  return (*this)("words.date", {{"year", std::to_string(static_cast<int>(date.year()))},
                                {"name", month},
                                {"day", std::to_string(static_cast<unsigned>(date.day()))}});
}

std::string exact_number(std::int64_t n) {
  auto text = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string exact_time(WallTime time) {
  auto text = to_rfc3339(time).substr(0, 16);
  text[10] = ' ';
  return text.append(" UTC");
}

}  // namespace weir::site::pages

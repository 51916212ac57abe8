// Words: what the pages say in one language, and how it says numbers and times.
//
// The texts are ui/messages/*.json, "section": {"key": "text"}, the same files that the scripts use. Scripts
// say numbers and times alike (ui/src/words.ts): both are held to ui/tests/words.json. Immutable and so
// thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "site/pages/language.h"
#include "weir/base/clock.h"

namespace weir::site::pages {

class Words {
 public:
  // Throws weir::Unusable for a text that isn't such a file.
  Words(Language language, std::string_view json);
  // What is built into the program.
  static const Words& of(Language language);

  Language language() const { return language_; }
  // The text of "section.key". A key that isn't there is a std::logic_error.
  const std::string& operator()(std::string_view key) const;
  // The text with each {name} replaced.
  std::string operator()(std::string_view key,
                         std::initializer_list<std::pair<std::string_view, std::string_view>> values) const;
  const std::map<std::string, std::string, std::less<>>& all() const { return texts_; }

  // {"section.key": "text"} of the sections, for a page's scripts; safe inside a <script> element.
  std::string for_script(std::span<const std::string_view> sections) const;

  // 12345 -> "12.3k" or "1.2 万": one decimal below a hundred of the unit, cut and never rounded up.
  std::string short_number(std::int64_t n) const;
  // `n` of "reads", "likes" or "collects": "12.3k reads".
  std::string counted(std::string_view what, std::int64_t n) const;
  // "3 hours ago" within a week, else the day (UTC; a script puts the reader's zone in). What is ahead of the
  // clock is "just now".
  std::string when(WallTime time, WallTime now) const;

 private:
  Language language_;
  std::map<std::string, std::string, std::less<>> texts_;
};

// 1234567 -> "1,234,567".
std::string exact_number(std::int64_t n);
// "2026-03-05 14:30 UTC".
std::string exact_time(WallTime time);

}  // namespace weir::site::pages

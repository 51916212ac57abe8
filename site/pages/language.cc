#include "site/pages/language.h"

#include <algorithm>
#include <cstdint>

namespace weir::site::pages {
namespace {

constexpr std::string_view kSpace = " \t";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// "zh", "zh-CN", "ZH-hant" and the like.
bool names(std::string_view range, std::string_view language) {
  if (range.size() < language.size() || (range.size() > language.size() && range[language.size()] != '-'))
    return false;
  return std::equal(language.begin(), language.end(), range.begin(),
                    [](char a, char b) { return a == lower(b); });
}

// The q of "zh;q=0.8" in thousandths; 1000 without one, 0 for what can't be read.
int quality_of(std::string_view parameters) {
  const auto at = parameters.find("q=");
  if (at == parameters.npos) return 1000;
  const auto text = trimmed(parameters.substr(at + 2));
  if (text.empty() || (text[0] != '0' && text[0] != '1')) return 0;
  int quality = (text[0] - '0') * 1000;
  int unit = 100;
  for (std::size_t i = 2; i < text.size() && text[1] == '.' && unit > 0; ++i, unit /= 10) {
    if (text[i] < '0' || text[i] > '9') break;
    quality += (text[i] - '0') * unit;
  }
  return std::min(quality, 1000);
}

// The code point at `at`, which moves behind it. The text is valid UTF-8; for broken bytes it returns them.
std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0xC0) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  std::uint32_t point = lead & (0x3FU >> more);
  for (int i = 0; i < more && at < text.size(); ++i)
    point = point << 6 | (static_cast<unsigned char>(text[at++]) & 0x3FU);
  return point;
}

struct Scripts {
  int han = 0, kana = 0, hangul = 0, latin = 0;

  void count(std::uint32_t point) {
    if ((point >= 0x4E00 && point <= 0x9FFF) || (point >= 0x3400 && point <= 0x4DBF) ||
        (point >= 0x20000 && point <= 0x3FFFF)) {
      ++han;
    } else if (point >= 0x3040 && point <= 0x30FF) {
      ++kana;
    } else if (point >= 0xAC00 && point <= 0xD7A3) {
      ++hangul;
    } else if ((point >= 'A' && point <= 'Z') || (point >= 'a' && point <= 'z') ||
               (point >= 0xC0 && point <= 0x24F)) {
      ++latin;
    }
  }
};

}  // namespace

std::string_view tag_of(Language language) {
  return language == Language::zh ? "zh-CN" : "en";
}

Language choose_language(std::optional<std::string_view> cookie, std::optional<std::string_view> accept) {
  if (cookie == "zh") return Language::zh;
  if (cookie == "en") return Language::en;
  int best_quality = 0;
  auto best = Language::en;
  auto rest = accept.value_or("");
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto item = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto semicolon = std::min(item.find(';'), item.size());
    const auto range = trimmed(item.substr(0, semicolon));
    const bool chinese = names(range, "zh");
    if (!chinese && !names(range, "en")) continue;
    const int quality = quality_of(item.substr(semicolon));
    if (quality <= best_quality) continue;
    best_quality = quality;
    best = chinese ? Language::zh : Language::en;
  }
  return best;
}

std::string_view language_of_text(std::string_view text) {
  constexpr std::size_t kLookedAt = 3000;  // bytes
  Scripts scripts;
  for (std::size_t at = 0; at < std::min(text.size(), kLookedAt);) scripts.count(next_code_point(text, at));
  // A letter of a syllabary or an ideograph says about as much as three Latin letters do.
  if (scripts.hangul * 3 > scripts.latin && scripts.hangul > scripts.han + scripts.kana) return "ko";
  const int east = scripts.han + scripts.kana;
  if (east == 0 || east * 3 < scripts.latin) return "en";
  return scripts.kana * 10 > east ? "ja" : "zh-CN";
}

}  // namespace weir::site::pages

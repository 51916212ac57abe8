// The two languages of the pages, and which one a reader or a text wants.
#pragma once

#include <optional>
#include <string_view>

namespace weir::site::pages {

enum class Language { en, zh };

// The value of the `lang` attribute: "en" or "zh-CN".
std::string_view tag_of(Language language);

// The cookie's choice ("en" or "zh") if there is one, else what Accept-Language prefers (by its q values, the
// first named of equals), else English.
Language choose_language(std::optional<std::string_view> cookie, std::optional<std::string_view> accept);

// The language that a text is written in, as a `lang` value: "zh-CN", "ja", "ko" or "en", by the scripts of
// its first 1,000 or so code points. The browser chooses glyphs, line breaks and voices by it. `text` is
// UTF-8.
std::string_view language_of_text(std::string_view text);

}  // namespace weir::site::pages

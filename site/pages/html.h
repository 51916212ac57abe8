// Html: builds HTML so that what people wrote can't become markup.
//
// Strings are escaped, always. Markup goes in as a literal with the suffix _html, or as another Html, and in
// no other way: a string that somebody typed has no way in unescaped, by its type.
//
//   Html row;
//   row("<a href=\"/articles/"_html, id, "\">"_html, title, "</a>"_html);
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weir::site::pages {

// A piece of the program's own text that is HTML.
class Markup {
 public:
  consteval Markup(const char* text, std::size_t size) : text_(text, size) {}
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

consteval Markup operator""_html(const char* text, std::size_t size) {
  return Markup(text, size);
}

// Appends the text with & < > " ' escaped: right for text and for attribute values in double quotes. O(n).
void append_escaped(std::string& out, std::string_view text);

class Html {
 public:
  Html() = default;
  // HTML that a trusted renderer made, such as the safe Markdown renderer. Named, so that it is seen.
  static Html rendered(std::string html) {
    Html made;
    made.out_ = std::move(html);
    return made;
  }

  // Appends the parts: markup as it is, strings escaped, whole numbers in digits.
  template <class... Parts>
  Html& operator()(const Parts&... parts) {
    (append(parts), ...);
    return *this;
  }

  const std::string& str() const& { return out_; }
  std::string str() && { return std::move(out_); }
  bool empty() const { return out_.empty(); }
  void reserve(std::size_t bytes) { out_.reserve(bytes); }

 private:
  void append(Markup markup) { out_.append(markup.text()); }
  void append(const Html& html) { out_.append(html.out_); }
  void append(std::string_view text) { append_escaped(out_, text); }
  template <class Number>
    requires std::is_integral_v<Number> && (!std::is_same_v<Number, char>)
  void append(Number number) {
    out_.append(std::to_string(number));
  }

  std::string out_;
};

}  // namespace weir::site::pages

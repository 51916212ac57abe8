#include "site/pages/html.h"

namespace weir::site::pages {

void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kSpecial = "&<>\"'";
  std::size_t from = 0;
  for (auto at = text.find_first_of(kSpecial); at != text.npos; at = text.find_first_of(kSpecial, from)) {
    out.append(text, from, at - from);
    switch (text[at]) {
      case '&':
        out.append("&amp;");
        break;
      case '<':
        out.append("&lt;");
        break;
      case '>':
        out.append("&gt;");
        break;
      case '"':
        out.append("&quot;");
        break;
      default:
        out.append("&#39;");
    }
    from = at + 1;
  }
  out.append(text, from);
}

}  // namespace weir::site::pages

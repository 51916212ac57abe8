// abstract_of: what a list shows of an article, as plain text.
#include <cmark-gfm.h>

#include <algorithm>
#include <memory>

#include "site/article/article.h"
#include "weir/base/utf8.h"

namespace weir::site::article {
namespace {

constexpr std::size_t kLookedAtBytes = 16 << 10;

struct Free {
  void operator()(cmark_node* node) const { cmark_node_free(node); }
  void operator()(cmark_iter* iter) const { cmark_iter_free(iter); }
  void operator()(cmark_parser* parser) const { cmark_parser_free(parser); }
};

// The text's beginning, not cut within a code point.
std::string_view beginning_of(std::string_view text) {
  if (text.size() <= kLookedAtBytes) return text;
  std::size_t end = kLookedAtBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

// Without cmark-gfm's extensions: of 16 KiB its tables make millions of cells, for which it takes gigabytes
// or ends the process, and attaching one changes tables that all threads share.
std::unique_ptr<cmark_node, Free> parse(std::string_view markdown) {
  const std::unique_ptr<cmark_parser, Free> parser(cmark_parser_new(CMARK_OPT_DEFAULT));
  cmark_parser_feed(parser.get(), markdown.data(), markdown.size());
  return std::unique_ptr<cmark_node, Free>(cmark_parser_finish(parser.get()));
}

bool is_space(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
}

// Appends words with one space between them, whatever white space and control characters they came with.
class Words {
 public:
  void space() { space_ = true; }
  void add(std::string_view text) {
    for (const char c : text) {
      if (is_space(c)) {
        space_ = true;
        continue;
      }
      if (space_ && !text_.empty()) text_ += ' ';
      space_ = false;
      text_ += c;
    }
  }
  // A code point has at most 4 bytes: so many are enough for certain.
  bool enough() const { return text_.size() >= 4 * kAbstractCodePoints; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool space_ = false;
};

// What a table's cells and struck words are written with is no text: "|a|b|", "|:--|--|", "~~a~~".
void add_unmarked(Words& words, std::string_view text) {
  const bool ruler = text.find_first_not_of("|:- ") == text.npos &&
                     (text.find("-|") != text.npos || text.find("--") != text.npos);
  if (ruler) return words.space();
  for (std::size_t at = 0; at < text.size();) {
    const auto mark = std::min({text.find('|', at), text.find("~~", at), text.size()});
    words.add(text.substr(at, mark - at));
    if (mark == text.size()) return;
    if (text[mark] == '|') words.space();
    at = mark + (text[mark] == '|' ? 1 : 2);
  }
}

bool has_text(cmark_node_type type) {
  return type == CMARK_NODE_TEXT || type == CMARK_NODE_CODE || type == CMARK_NODE_CODE_BLOCK;
}

}  // namespace

std::string abstract_of(std::string_view markdown) {
  const auto document = parse(beginning_of(markdown));
  const std::unique_ptr<cmark_iter, Free> walk(cmark_iter_new(document.get()));
  Words words;
  for (auto event = cmark_iter_next(walk.get()); event != CMARK_EVENT_DONE && !words.enough();
       event = cmark_iter_next(walk.get())) {
    cmark_node* node = cmark_iter_get_node(walk.get());
    const auto type = cmark_node_get_type(node);
    // Blocks, table cells too, stand apart; emphasis within a word doesn't.
    const bool apart = (type & CMARK_NODE_TYPE_MASK) == CMARK_NODE_TYPE_BLOCK ||
                       type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK;
    if (apart) words.space();
    const char* literal = has_text(type) ? cmark_node_get_literal(node) : nullptr;
    if (!literal) continue;
    if (type == CMARK_NODE_TEXT) {
      add_unmarked(words, literal);
    } else {
      words.add(literal);
    }
  }
  return std::string(utf8_prefix(words.text(), kAbstractCodePoints));
}

}  // namespace weir::site::article

#include "site/pages/markdown.h"

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "site/pages/html.h"
#include "site/pages/render_arena.h"

namespace weir::site::pages {
namespace {

constexpr int kOptions = CMARK_OPT_VALIDATE_UTF8 | CMARK_OPT_STRIKETHROUGH_DOUBLE_TILDE;

// What the steps of cmark work on; plain, since a step may be left by longjmp.
struct Work {
  std::string_view markdown;
  bool autolink = true;
  cmark_parser* parser = nullptr;
  cmark_node* root = nullptr;
  const char* html = nullptr;
};

void parse(void* context) {
  auto& work = *static_cast<Work*>(context);
  work.parser = cmark_parser_new_with_mem(kOptions, RenderArena::mem());
  for (const auto* name : {"table", "strikethrough", "tagfilter", "tasklist", "autolink"}) {
    auto* extension = cmark_find_syntax_extension(name);
    if (extension && (work.autolink || name != std::string_view("autolink")))
      cmark_parser_attach_syntax_extension(work.parser, extension);
  }
  cmark_parser_feed(work.parser, work.markdown.data(), work.markdown.size());
  work.root = cmark_parser_finish(work.parser);
}

void render(void* context) {
  auto& work = *static_cast<Work*>(context);
  work.html = cmark_render_html_with_mem(work.root, kOptions, cmark_parser_get_syntax_extensions(work.parser),
                                         RenderArena::mem());
}

// The extension for bare links looks at a whole word again for each ")" at its end and for each "@" in it,
// without an allocation that would let the budget step in. A text that has a word with more of them than
// people write does without.
bool may_autolink(std::string_view markdown) {
  constexpr std::size_t kMaxInWord = 100;
  std::size_t seen = 0;
  for (const char c : markdown) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') seen = 0;
    if ((c == ')' || c == '@') && ++seen > kMaxInWord) return false;
  }
  return true;
}

// Calls visit(node) for each node when it is entered. The tree must not change meanwhile.
template <class Visit>
void walk(cmark_node* root, Visit visit) {
  auto* iter = cmark_iter_new(root);
  for (auto event = cmark_iter_next(iter); event != CMARK_EVENT_DONE; event = cmark_iter_next(iter))
    if (event == CMARK_EVENT_ENTER) visit(cmark_iter_get_node(iter));
  cmark_iter_free(iter);
}

std::string plain_text(cmark_node* node) {
  std::string text;
  walk(node, [&](cmark_node* part) {
    const auto type = cmark_node_get_type(part);
    if (type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK) text.push_back(' ');
    if (type != CMARK_NODE_TEXT && type != CMARK_NODE_CODE) return;
    if (const auto* literal = cmark_node_get_literal(part)) text.append(literal);
  });
  return text;
}

// General punctuation, CJK punctuation and full-width forms, of which slugs keep none.
bool is_wide_punctuation(std::string_view three) {
  const auto first = static_cast<unsigned char>(three[0]);
  const auto second = static_cast<unsigned char>(three[1]);
  return (first == 0xE2 && (second == 0x80 || second == 0x81)) || (first == 0xE3 && second == 0x80) ||
         (first == 0xEF && second >= 0xBC);
}

// ASCII letters in lower case, digits, letters of other scripts; what stands between them becomes one "-".
std::string slug_of(std::string_view text) {
  std::string slug;
  bool gap = false;
  const auto add = [&](std::string_view letter) {
    if (slug.size() + letter.size() + 1 > kMaxSlugBytes) return;
    if (gap && !slug.empty()) slug.push_back('-');
    gap = false;
    slug.append(letter);
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    const auto letter = text.substr(at, size);
    at += size;
    if (lead >= 'A' && lead <= 'Z') {
      const char small = static_cast<char>(lead - 'A' + 'a');
      add(std::string_view(&small, 1));
    } else if ((lead >= 'a' && lead <= 'z') || (lead >= '0' && lead <= '9') ||
               (size > 1 && letter.size() == size && !(size == 3 && is_wide_punctuation(letter)))) {
      add(letter);
    } else {
      gap = true;
    }
  }
  return "s-" + (slug.empty() ? "section" : slug);
}

class Slugs {
 public:
  std::string take(std::string slug) {
    if (taken_.insert(slug).second) return slug;
    for (auto& n = next_.try_emplace(slug, 2).first->second;; ++n)
      if (auto numbered = slug + "-" + std::to_string(n); taken_.insert(numbered).second) return numbered;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;
};

// Puts a block of our own markup before `node`.
cmark_node* frame(cmark_node* node, const std::string& before, const std::string& after) {
  auto* block = cmark_node_new_with_mem(CMARK_NODE_CUSTOM_BLOCK, RenderArena::mem());
  cmark_node_set_on_enter(block, before.c_str());
  cmark_node_set_on_exit(block, after.c_str());
  cmark_node_insert_before(node, block);
  return block;
}

// Puts the block in the place of `node`. The emptied node lives on in the arena: the texts of its children
// point into it.
void replace(cmark_node* node, const std::string& before, const std::string& after) {
  auto* block = frame(node, before, after);
  while (auto* child = cmark_node_first_child(node)) cmark_node_append_child(block, child);
  cmark_node_unlink(node);
}

void anchor(cmark_node* node, const Heading& heading) {
  Html before;
  before("<h"_html, heading.level, " id=\""_html, heading.slug, "\">"_html);
  Html after;
  after(" <a class=\"anchor\" href=\"#"_html, heading.slug, "\" aria-labelledby=\""_html, heading.slug,
        "\">#</a></h"_html, heading.level, ">\n"_html);
  replace(node, before.str(), after.str());
}

std::vector<Heading> anchor_headings(cmark_node* root) {
  std::vector<cmark_node*> found;
  walk(root, [&](cmark_node* node) {
    if (cmark_node_get_type(node) == CMARK_NODE_HEADING) found.push_back(node);
  });
  int top = 6;  // of the text's own levels, the one that becomes h2
  for (auto* node : found) top = std::min(top, cmark_node_get_heading_level(node));
  std::vector<Heading> headings;
  Slugs slugs;
  for (auto* node : found) {
    const int level = std::min(cmark_node_get_heading_level(node) - top + 2, 6);
    cmark_node_set_heading_level(node, level);
    if (headings.size() == kMaxHeadings) continue;
    auto text = plain_text(node);
    auto slug = slugs.take(slug_of(text));
    headings.push_back({level, std::move(slug), std::move(text)});
    anchor(node, headings.back());
  }
  return headings;
}

bool is_lone_picture(cmark_node* node) {
  if (cmark_node_get_type(node) != CMARK_NODE_PARAGRAPH) return false;
  auto* parent = cmark_node_parent(node);
  auto* child = cmark_node_first_child(node);
  return parent && cmark_node_get_type(parent) == CMARK_NODE_DOCUMENT && child &&
         cmark_node_get_type(child) == CMARK_NODE_IMAGE && !cmark_node_next(child);
}

// Pictures that stand alone become figures, tables get a frame to scroll in.
void frame_blocks(cmark_node* root) {
  std::vector<cmark_node*> pictures, tables;
  walk(root, [&](cmark_node* node) {
    if (is_lone_picture(node)) pictures.push_back(node);
    if (cmark_node_get_type_string(node) == std::string_view("table")) tables.push_back(node);
  });
  for (auto* node : pictures) replace(node, "<figure>", "</figure>\n");
  for (auto* node : tables) {
    auto* block = frame(node, "<div class=\"wide\">\n", "</div>\n");
    cmark_node_append_child(block, node);
  }
}

// What stands for a picture whose address was refused or is missing: its description, which is escaped.
std::string_view description_of(std::string_view tag) {
  constexpr std::string_view kDescription = " alt=\"";
  const auto begin = tag.find(kDescription);
  if (begin == tag.npos) return {};
  tag.remove_prefix(begin + kDescription.size());
  return tag.substr(0, tag.find('"'));
}

// Links tell search engines that they are not ours, pictures load when they are near or, without an address,
// are their description. The author's text holds
// no "<" at this point that isn't an escape, so that these openings are the renderer's own.
std::string with_attributes(std::string_view html) {
  constexpr std::string_view kLink = "<a href=\"";
  constexpr std::string_view kPicture = "<img src=\"";
  constexpr std::string_view kNoPicture = "<img src=\"\"";
  std::string out;
  out.reserve(html.size() + html.size() / 16);
  for (auto at = html.find('<'); at != html.npos; at = html.find('<')) {
    out.append(html.substr(0, at));
    html.remove_prefix(at);
    std::size_t copied = 1;
    if (html.starts_with(kLink)) {
      out.append("<a rel=\"nofollow ugc\" href=\"");
      copied = kLink.size();
    } else if (html.starts_with(kNoPicture)) {
      const auto tag = html.substr(0, html.find('>') + 1);
      out.append(description_of(tag));
      copied = tag.size();
    } else if (html.starts_with(kPicture)) {
      out.append("<img loading=\"lazy\" decoding=\"async\" src=\"");
      copied = kPicture.size();
    } else {
      out.push_back('<');
    }
    html.remove_prefix(copied);
  }
  return out.append(html);
}

Rendered as_written(std::string_view markdown) {
  Html html;
  html("<pre class=\"as-written\">"_html, markdown, "</pre>\n"_html);
  return {std::move(html).str(), {}, false};
}

std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

std::size_t Rendered::weight() const {
  std::size_t bytes = sizeof(*this) + html.capacity();
  for (const auto& heading : headings)
    bytes += sizeof(heading) + heading.slug.capacity() + heading.text.capacity();
  return bytes;
}

Rendered render_markdown(std::string_view markdown, const RenderBudget& budget, const Clock& clock) {
  const std::lock_guard lock(one_at_a_time());
  cmark_gfm_core_extensions_ensure_registered();
  RenderArena arena(budget.bytes, budget.time, clock);
  Work work{.markdown = markdown, .autolink = may_autolink(markdown)};
  if (!arena.guarded(parse, &work)) return as_written(markdown);
  Rendered rendered;
  rendered.headings = anchor_headings(work.root);
  frame_blocks(work.root);
  if (!arena.guarded(render, &work)) return as_written(markdown);
  rendered.html = with_attributes(work.html);
  return rendered;
}

}  // namespace weir::site::pages

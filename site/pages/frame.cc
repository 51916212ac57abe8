#include "site/pages/frame.h"

#include <zlib.h>

#include <new>

#include "site/pages/assets.h"
#include "weir/base/rfc3339.h"

namespace weir::site::pages {
namespace {

// Everything comes from this server; only pictures in articles may come from elsewhere, by TLS.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; connect-src "
    "'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

constexpr std::size_t kWorthCompressing = 1024;  // bytes

void head(Html& out, const Visit& visit, const Page& page) {
  const bool home = page.title.empty();
  out("<meta charset=\"utf-8\">\n<title>"_html, page.title, home ? "Weir" : " · Weir",
      "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"_html);
  if (visit.theme == Theme::system) {
    out("<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<meta name=\"theme-color\" content=\"#fbf9f4\" media=\"(prefers-color-scheme: light)\">\n"
        "<meta name=\"theme-color\" content=\"#14181a\" media=\"(prefers-color-scheme: dark)\">\n"_html);
  } else {
    out("<meta name=\"color-scheme\" content=\""_html, to_text(visit.theme),
        "\">\n<meta name=\"theme-color\" content=\""_html, visit.theme == Theme::dark ? "#14181a" : "#fbf9f4",
        "\">\n"_html);
  }
  if (!page.description.empty())
    out("<meta name=\"description\" content=\""_html, page.description, "\">\n"_html);
}

void open_graph(Html& out, const Visit& visit, const Page& page) {
  if (page.canonical.empty()) return void(out("<meta name=\"robots\" content=\"noindex\">\n"_html));
  const auto property = [&](std::string_view name, std::string_view value) {
    out("<meta property=\""_html, name, "\" content=\""_html, value, "\">\n"_html);
  };
  out("<link rel=\"canonical\" href=\""_html, visit.origin, page.canonical, "\">\n"_html);
  property("og:site_name", "Weir");
  property("og:type", page.type);
  property("og:title", page.title.empty() ? "Weir" : page.title);
  property("og:description", page.description);
  property("og:url", visit.origin + page.canonical);
  property("og:image", visit.origin + std::string(static_address("card.png")));
  property("og:locale", visit.language == Language::zh ? "zh_CN" : "en_US");
  if (page.published) property("article:published_time", to_rfc3339(*page.published));
}

void links(Html& out, const Page& page) {
  out("<link rel=\"icon\" type=\"image/svg+xml\" href=\""_html, static_address("favicon.svg"), "\">\n"_html);
  std::vector<const Entry*> entries{&entry_of("site")};
  if (!page.entry.empty()) entries.push_back(&entry_of(page.entry));
  std::vector<std::string_view> imports;
  for (const auto* entry : entries) {
    for (const auto& style : entry->styles) out("<link rel=\"stylesheet\" href=\""_html, style, "\">\n"_html);
    for (const auto& import : entry->imports)
      if (std::ranges::find(imports, import) == imports.end()) imports.push_back(import);
  }
  for (const auto import : imports) out("<link rel=\"modulepreload\" href=\""_html, import, "\">\n"_html);
  for (const auto* entry : entries)
    out("<script type=\"module\" src=\""_html, entry->script, "\"></script>\n"_html);
}

void nav_link(Html& out, const Words& words, std::string_view here, std::string_view name,
              std::string_view href) {
  out("<a href=\""_html, href, "\""_html);
  if (here == name) out(" aria-current=\"page\""_html);
  out(">"_html, words("layout." + std::string(name)), "</a>"_html);
}

Html choice(std::string_view href, std::string_view text, bool current) {
  Html out;
  out("<a href=\""_html, href, "\" aria-current=\""_html, current ? "true" : "false", "\""_html);
  out(">"_html, text, "</a>"_html);
  return out;
}

void menu_choices(Html& out, const Visit& visit) {
  const Words& words = visit.words();
  const auto back = "?back=" + percent_encoded(visit.address);
  out("<div class=\"menu-part\" role=\"group\" aria-labelledby=\"theme-label\"><p class=\"menu-label\" "
      "id=\"theme-label\">"_html,
      words("layout.theme"), "</p><div class=\"choice\">"_html);
  for (const auto theme : {Theme::system, Theme::light, Theme::dark}) {
    const auto name = std::string(to_text(theme));
    out("<a data-theme-choice=\""_html, name, "\" href=\"/pages/theme/"_html, name, back,
        "\" aria-current=\""_html, visit.theme == theme ? "true" : "false", "\">"_html,
        words("layout.theme_" + name), "</a>"_html);
  }
  out("</div></div>\n<div class=\"menu-part\" role=\"group\" aria-labelledby=\"language-label\"><p "
      "class=\"menu-label\" id=\"language-label\">"_html,
      words("layout.language"), "</p><div class=\"choice\"><span lang=\"zh-CN\">"_html,
      choice("/pages/language/zh" + back, "中文", visit.language == Language::zh),
      "</span><span lang=\"en\">"_html,
      choice("/pages/language/en" + back, "English", visit.language == Language::en),
      "</span></div></div>\n"_html);
}

void menu(Html& out, const Visit& visit) {
  const Words& words = visit.words();
  out("<details class=\"menu\" data-testid=\"menu\"><summary>"_html);
  if (visit.reader && !visit.nickname.empty()) {
    out("<span class=\"who\" data-testid=\"who\">"_html, visit.nickname, "</span><span class=\"sr\"> · "_html,
        words("layout.menu"), "</span>"_html);
  } else {
    out("<svg viewBox=\"0 0 20 20\" aria-hidden=\"true\"><circle cx=\"10\" cy=\"10\" r=\"7.25\" "
        "fill=\"none\" "
        "stroke=\"currentColor\" stroke-width=\"1.5\"/><path d=\"M10 2.75a7.25 7.25 0 0 1 0 14.5z\" "
        "fill=\"currentColor\"/></svg><span class=\"sr\">"_html,
        words("layout.menu"), "</span>"_html);
  }
  out("</summary>\n<div class=\"menu-body\">\n"_html);
  if (visit.reader) {
    out("<div class=\"menu-part\"><a href=\"/me/articles\">"_html, words("layout.my_articles"),
        "</a><a href=\"/me/collections\">"_html, words("layout.my_collections"),
        "</a><a href=\"/me/history\">"_html, words("layout.my_history"), "</a></div>\n"_html);
  }
  menu_choices(out, visit);
  if (visit.reader) {
    out("<div class=\"menu-part\"><button type=\"button\" id=\"sign-out\" data-testid=\"sign-out\">"_html,
        words("layout.sign_out"), "</button></div>\n"_html);
  }
  out("</div></details>\n"_html);
}

void header(Html& out, const Visit& visit, const Page& page) {
  const Words& words = visit.words();
  out("<a class=\"skip\" href=\"#main\">"_html, words("layout.skip"),
      "</a>\n<header class=\"bar\"><div class=\"bar-in\">\n<a class=\"brand\" href=\"/\" "
      "aria-label=\"Weir\"><svg "
      "viewBox=\"0 0 30 20\" aria-hidden=\"true\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" "
      "stroke-linecap=\"round\"><path d=\"M1 3h10c6 0 5 12 11 12h7\"/><path d=\"M1 8.5h7c5.5 0 4.5 10 10.5 "
      "10H29\" opacity=\".55\"/></svg><span>Weir</span></a>\n<nav aria-label=\""_html,
      words("layout.main_nav"), "\">"_html);
  nav_link(out, words, page.here, "hot", "/");
  nav_link(out, words, page.here, "newest", "/newest");
  out("<a class=\"push\" data-testid=\"write-link\" href=\"/write\""_html);
  if (page.here == "write") out(" aria-current=\"page\""_html);
  out(">"_html, words("layout.write"), "</a></nav>\n"_html);
  if (!visit.reader) {
    const bool already = visit.address.starts_with("/signin") || visit.address.starts_with("/signup");
    out("<a class=\"button-like\" data-testid=\"sign-in-link\" href=\""_html,
        already ? std::string("/signin") : visit.sign_in_address(), "\">"_html, words("layout.sign_in"),
        "</a>\n"_html);
  }
  menu(out, visit);
  out("</div></header>\n"_html);
}

void footer(Html& out, const Words& words) {
  out("<footer class=\"foot\"><div class=\"foot-in\"><p>"_html, words("layout.foot"),
      "</p><div class=\"foot-links\"><button type=\"button\" id=\"show-keys\">"_html, words("layout.keys"),
      "</button><a href=\"/docs\">"_html, words("layout.api"), "</a></div></div></footer>\n"_html);
}

}  // namespace

std::string frame(const Visit& visit, const Page& page) {
  const Words& words = visit.words();
  Html out;
  out.reserve(page.body.str().size() + 8192);
  out("<!DOCTYPE html>\n<html lang=\""_html, tag_of(visit.language), "\""_html);
  if (visit.theme != Theme::system) out(" data-theme=\""_html, to_text(visit.theme), "\""_html);
  out(">\n<head>\n"_html);
  head(out, visit, page);
  open_graph(out, visit, page);
  links(out, page);
  std::vector<std::string_view> sections{"site", "words"};
  sections.insert(sections.end(), page.sections.begin(), page.sections.end());
  out("<script type=\"application/json\" id=\"words\">"_html, Html::rendered(words.for_script(sections)),
      "</script>\n</head>\n<body data-signed-in=\""_html, visit.reader ? "1" : "0", "\">\n"_html);
  header(out, visit, page);
  out("<main id=\"main\" class=\""_html, page.kind, "\" tabindex=\"-1\">\n"_html, page.body,
      "</main>\n"_html);
  footer(out, words);
  out("</body>\n</html>\n"_html);
  return std::move(out).str();
}

http::Response page_response(const http::Request& request, const Visit& visit, const Page& page,
                             unsigned status) {
  auto html = frame(visit, page);
  const bool compress = html.size() >= kWorthCompressing &&
                        choose_encoding(request.header("Accept-Encoding").value_or(""), false) == "gzip";
  auto response = http::Response::html(compress ? gzipped(html) : std::move(html), status);
  if (compress) response.with("Content-Encoding", "gzip");
  response.with("Content-Security-Policy", std::string(kPolicy))
      .with("X-Content-Type-Options", "nosniff")
      .with("Referrer-Policy", "strict-origin-when-cross-origin")
      .with("Cross-Origin-Opener-Policy", "same-origin")
      .with("Cache-Control", "private, no-cache")
      .with("Vary", "Accept-Encoding, Accept-Language, Cookie")
      .with("Content-Language", std::string(tag_of(visit.language)));
  return response;
}

http::Response error_response(const http::Request& request, const Visit& visit, unsigned status) {
  const Words& words = visit.words();
  const auto name = status == 404 ? "404" : status == 503 ? "503" : "500";
  Page page;
  page.title = words(std::string("errors.") + name + "_title");
  page.body("<div class=\"blank\" data-testid=\"error\"><h1>"_html, page.title, "</h1><p>"_html,
            words(std::string("errors.") + name + "_text"),
            "</p><p class=\"actions\"><a class=\"button\" href=\"/\">"_html, words("errors.home"),
            "</a></p></div>\n"_html);
  auto response = page_response(request, visit, page, status);
  if (status == 503) response.with("Retry-After", "5");
  return response;
}

Html time_element(const Visit& visit, WallTime time) {
  Html out;
  out("<time datetime=\""_html, to_rfc3339(time), "\" title=\""_html, exact_time(time), "\">"_html,
      visit.words().when(time, visit.now), "</time>"_html);
  return out;
}

std::string gzipped(std::string_view bytes) {
  constexpr int kLevel = 5;
  constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for the gzip format
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  // zlib doesn't write through next_in; its type is older than const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());  // NOLINT
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace weir::site::pages

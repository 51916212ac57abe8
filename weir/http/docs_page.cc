#include <array>
#include <boost/json.hpp>
#include <map>
#include <utility>

#include "weir/http/openapi.h"

namespace weir::http {
namespace {

namespace json = boost::json;

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--ink:#1d2429;--soft:#5f6b73;--paper:#fbfaf7;--card:#fff;--line:#e3e0d8;--accent:#0b6b75}
@media(prefers-color-scheme:dark){:root{--ink:#e6e4de;--soft:#9aa4aa;--paper:#15191c;--card:#1c2226;--line:#2d353a;--accent:#6cc4cd}}
*{box-sizing:border-box}html{scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,-apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC",sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 6rem}
h1{font-size:1.9rem;line-height:1.2;margin:0}h2{font-size:1.2rem;margin:3rem 0 .75rem}p{margin:.5rem 0}
.soft,.meta{color:var(--soft)}.meta{font-size:.875rem}a{color:var(--accent)}
code{font:.875em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
nav ul{list-style:none;padding:0;margin:.5rem 0;columns:20rem;column-gap:2rem}nav li{break-inside:avoid;padding:.1rem 0}nav a{text-decoration:none}
nav a:hover{text-decoration:underline}
article{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem 1.25rem;margin:.9rem 0}
article h3{font-size:1rem;font-weight:500;margin:0;display:flex;gap:.75rem;align-items:baseline;flex-wrap:wrap}
.verb{font-weight:700;color:var(--accent);min-width:3.6rem}
table{border-collapse:collapse;width:100%;margin:.6rem 0;font-size:.9rem}
td,th{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-top:1px solid var(--line)}th{font-weight:500;color:var(--soft)}
.op td:first-child{width:11rem}.op td:nth-child(2){width:6rem}.op td:last-child{width:auto}
pre{overflow:auto;font-size:.85rem;margin:.5rem 0;padding:.75rem 1rem;background:var(--paper);border-radius:.4rem}
summary{cursor:pointer}:target{outline:2px solid var(--accent);outline-offset:2px}
)";

// The codes that any route may answer; those of one route are in its summary.
constexpr std::array<std::pair<const char*, const char*>, 15> kCodes{{
    {"bad_request", "400: the request isn't valid HTTP, or its target isn't."},
    {"malformed_json", "400: the body isn't JSON."},
    {"unauthenticated", "401: there is no token, or it isn't valid any more."},
    {"forbidden", "403: you may not do this."},
    {"not_found", "404: there is nothing at this address, or not for you."},
    {"method_not_allowed", "405: Allow tells what can be done here."},
    {"request_timeout", "408: the request took too long to come."},
    {"version_mismatch", "412: it has changed since you read it."},
    {"body_too_large", "413: the body is larger than this server takes."},
    {"unsupported_media_type", "415: bodies are application/json."},
    {"invalid_field", "422: errors names the fields and what is wrong with them."},
    {"too_many_requests", "429: come back after Retry-After seconds."},
    {"header_too_large", "431: a header line, or all of them together, are too long."},
    {"internal_error", "500: a fault of ours; it has been noted."},
    {"unavailable", "503: come back after Retry-After seconds."},
}};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string text_at(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// The name of the schema that the first content of a body or response refers to, as a link.
std::string schema_link(const json::object& with_content) {
  const auto* content = with_content.if_contains("content");
  if (content == nullptr || content->get_object().empty()) return {};
  const auto& [type, media] = *content->get_object().begin();
  const std::string target = text_at(media.at("schema").get_object(), "$ref");
  if (target.empty()) return "<code>" + escaped(type) + "</code>";
  const std::string name = target.substr(target.rfind('/') + 1);
  return "<a href=\"#schema-" + escaped(name) + "\">" + escaped(name) + "</a>";
}

std::string who(const json::object& operation) {
  const auto& security = operation.at("security").get_array();
  return security.size() > 2 ? "anyone" : "signed in";
}

void append_parameters(std::string& out, const json::object& operation) {
  const auto* parameters = operation.if_contains("parameters");
  if (parameters == nullptr) return;
  out += "<table class=\"op\"><tr><th>parameter<th>in<th>";
  for (const auto& value : parameters->get_array()) {
    const auto& parameter = value.get_object();
    out += "<tr><td><code>" + escaped(text_at(parameter, "name")) + "</code><td>" + text_at(parameter, "in") +
           "<td>";
    out += escaped(text_at(parameter, "description"));
    const std::string pattern = text_at(parameter.at("schema").get_object(), "pattern");
    if (!pattern.empty()) out += " <code>" + escaped(pattern) + "</code>";
  }
  out += "</table>";
}

void append_operation(std::string& out, const std::string& method, std::string_view path,
                      const json::object& operation) {
  const std::string id = escaped(text_at(operation, "operationId"));
  out += "<article id=\"" + id + "\"><h3><span class=\"verb\">" + method + "</span><code>" + escaped(path) +
         "</code></h3><p>" + escaped(text_at(operation, "summary")) + " <span class=\"meta\">For " +
         who(operation) + ".</span></p>";
  append_parameters(out, operation);
  if (const auto* body = operation.if_contains("requestBody")) {
    out += "<p class=\"meta\">Takes " + schema_link(body->get_object()) + "</p>";
  }
  std::string problems;
  out += "<table class=\"op\"><tr><th>answers<th>";
  for (const auto& [status, value] : operation.at("responses").get_object()) {
    if (status[0] >= '4') {
      problems += (problems.empty() ? "" : ", ") + std::string(status);
      continue;
    }
    out += "<tr><td>" + std::string(status) + " " + escaped(text_at(value.get_object(), "description")) +
           "<td>" + schema_link(value.get_object());
  }
  out += "<tr><td>problems<td class=\"soft\">" + problems + "</table></article>";
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

struct Sections {
  std::string navigation, articles;
};

Sections sections_of(const json::object& paths) {
  std::map<std::string, Sections> by_tag;  // in order of their names; those without one last
  for (const auto& [path, methods] : paths) {
    for (const auto& [method, value] : methods.get_object()) {
      const auto& operation = value.get_object();
      const auto* tags = operation.if_contains("tags");
      const std::string tag = tags == nullptr ? "other" : std::string(tags->at(0).get_string());
      Sections& section = by_tag[tag];
      section.navigation += "<li><a href=\"#" + escaped(text_at(operation, "operationId")) + "\"><code>" +
                            upper(method) + " " + escaped(path) + "</code></a>";
      append_operation(section.articles, upper(method), path, operation);
    }
  }
  Sections all;
  for (const auto& [tag, section] : by_tag) {
    all.navigation += "<p class=\"meta\">" + escaped(tag) + "</p><ul>" + section.navigation + "</ul>";
    all.articles += "<h2>" + escaped(tag) + "</h2>" + section.articles;
  }
  return all;
}

// Indented by two, which Boost.JSON doesn't do.
void append_pretty(std::string& out, const json::value& value, std::size_t depth) {
  const std::string indent(2 * (depth + 1), ' ');
  const auto close = [&](char bracket) { out += "\n" + std::string(2 * depth, ' ') + bracket; };
  bool first = true;
  const auto separate = [&] {
    out += first ? "\n" : ",\n";
    out += indent;
    first = false;
  };
  if (value.is_object() && !value.get_object().empty()) {
    out += '{';
    for (const auto& [key, item] : value.get_object()) {
      separate();
      out += json::serialize(json::string(key)) + ": ";
      append_pretty(out, item, depth + 1);
    }
    close('}');
  } else if (value.is_array() && !value.get_array().empty() && value.get_array()[0].is_structured()) {
    out += '[';
    for (const auto& item : value.get_array()) {
      separate();
      append_pretty(out, item, depth + 1);
    }
    close(']');
  } else {
    out += json::serialize(value);
  }
}

std::string schemas_section(const json::object& schemas) {
  std::string out = "<h2 id=\"schemas\">Schemas</h2>";
  for (const auto& [name, schema] : schemas) {
    std::string text;
    append_pretty(text, schema, 0);
    out += "<article id=\"schema-" + escaped(name) + "\"><details><summary><code>" + escaped(name) +
           "</code></summary><pre><code>" + escaped(text) + "</code></pre></details></article>";
  }
  return out;
}

std::string codes_section() {
  std::string out =
      "<h2 id=\"problems\">Problems</h2><p>Errors are <code>application/problem+json</code> with a "
      "<code>code</code>.</p><table>";
  for (const auto& [code, meaning] : kCodes) {
    out += std::string("<tr id=\"") + code + "\"><td><code>" + code + "</code><td>" + meaning;
  }
  return out + "</table>";
}

}  // namespace

std::string docs_page(const json::value& document) {
  const auto& root = document.get_object();
  const auto& info = root.at("info").get_object();
  const std::string title = escaped(text_at(info, "title"));
  const Sections sections = sections_of(root.at("paths").get_object());
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>" +
      title + " API</title><style>";
  out += kStyle;
  out += "</style></head><body><main><h1>" + title + " API</h1><p class=\"soft\">" +
         escaped(text_at(info, "version")) +
         " · <a href=\"/v1/openapi.json\">openapi.json</a> · <a href=\"#problems\">problems</a> · "
         "<a href=\"#schemas\">schemas</a></p>";
  if (const std::string description = text_at(info, "description"); !description.empty()) {
    out += "<p>" + escaped(description) + "</p>";
  }
  out += "<nav>" + sections.navigation + "</nav>" + sections.articles + codes_section();
  out += schemas_section(root.at("components").at("schemas").get_object());
  return out + "</main></body></html>\n";
}

}  // namespace weir::http

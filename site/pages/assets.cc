#include "site/pages/assets.h"

#include <map>
#include <memory>
#include <stdexcept>

#include "site/pages/embedded.h"
#include "weir/http/problem.h"

namespace weir::site::pages {
namespace {

using Bytes = std::shared_ptr<const std::string>;

struct Asset {
  std::string content_type, tag;
  Bytes plain, gzip, brotli;
};

std::string address_of(std::string_view file) {
  return "/assets/" + std::string(file);
}

Bytes bytes_at(std::size_t at, std::size_t size) {
  if (size == 0) return nullptr;
  return std::make_shared<const std::string>(embedded_pack().substr(at, size));
}

const std::map<std::string, Asset, std::less<>>& assets() {
  static const auto all = [] {
    std::map<std::string, Asset, std::less<>> made;
    for (const auto& file : embedded_files()) {
      if (file.content_type.empty()) continue;
      made.emplace(std::string(file.name),
                   Asset{std::string(file.content_type), std::string(file.tag),
                         bytes_at(file.plain_at, file.plain_size), bytes_at(file.gzip_at, file.gzip_size),
                         bytes_at(file.brotli_at, file.brotli_size)});
    }
    return made;
  }();
  return all;
}

std::vector<std::string> addresses(std::string_view names) {
  std::vector<std::string> made;
  while (!names.empty()) {
    const auto space = std::min(names.find(' '), names.size());
    made.push_back(address_of(names.substr(0, space)));
    names.remove_prefix(std::min(space + 1, names.size()));
  }
  return made;
}

// Whether the list names the coding with a q above 0, or allows everything with "*".
bool accepts(std::string_view list, std::string_view coding) {
  bool any = false;
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    auto item = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (item.starts_with(' ') || item.starts_with('\t')) item.remove_prefix(1);
    const auto name = item.substr(0, item.find_first_of("; \t"));
    const auto q = item.find("q=");
    const bool refused = q != item.npos && item.substr(q + 2).find_first_not_of("0. \t") == item.npos;
    if (name == coding) return !refused;
    if (name == "*") any = !refused;
  }
  return any;
}

http::Response answer(const http::Request& request) {
  const auto found = assets().find(request.param("file"));
  if (found == assets().end()) throw http::not_found();
  const Asset& asset = found->second;
  const auto encoding =
      choose_encoding(request.header("Accept-Encoding").value_or(""), asset.brotli != nullptr);
  const Bytes* bytes = &asset.plain;
  if (encoding == "br" && asset.brotli) bytes = &asset.brotli;
  if (encoding == "gzip" && asset.gzip) bytes = &asset.gzip;
  const bool encoded = bytes != &asset.plain;
  const auto tag = "\"" + asset.tag + (encoded ? "-" + std::string(encoding) : "") + "\"";
  const bool known = http::not_modified(request, tag);
  auto response = known ? http::Response::empty(304) : http::Response::shared(*bytes, asset.content_type);
  if (encoded && !known) response.with("Content-Encoding", std::string(encoding));
  response.with("ETag", tag)
      .with("Cache-Control", "public, max-age=31536000, immutable")
      .with("Vary", "Accept-Encoding")
      .with("X-Content-Type-Options", "nosniff");
  return response;
}

}  // namespace

const Entry& entry_of(std::string_view name) {
  static const auto all = [] {
    std::map<std::string, Entry, std::less<>> made;
    for (const auto& entry : embedded_entries())
      made.emplace(std::string(entry.name),
                   Entry{address_of(entry.script), addresses(entry.imports), addresses(entry.styles)});
    return made;
  }();
  const auto found = all.find(name);
  if (found == all.end()) throw std::logic_error("no entry is called " + std::string(name));
  return found->second;
}

std::string_view static_address(std::string_view name) {
  static const auto all = [] {
    std::map<std::string, std::string, std::less<>> made;
    for (const auto& file : embedded_statics()) made.emplace(std::string(file.name), address_of(file.file));
    return made;
  }();
  const auto found = all.find(name);
  if (found == all.end()) throw std::logic_error("no static file is called " + std::string(name));
  return found->second;
}

std::string_view embedded_text(std::string_view name) {
  for (const auto& file : embedded_files())
    if (file.name == name) return embedded_pack().substr(file.plain_at, file.plain_size);
  throw std::logic_error("no text is called " + std::string(name));
}

std::string_view choose_encoding(std::string_view accept_encoding, bool brotli) {
  if (brotli && accepts(accept_encoding, "br")) return "br";
  return accepts(accept_encoding, "gzip") ? "gzip" : "";
}

void add_asset_routes(http::Router& router) {
  http::Route route{"GET",
                    "/assets/{file}",
                    http::Access::anyone,
                    [](http::Request& request) -> http::Reply { co_return answer(request); },
                    {}};
  route.doc.hidden = true;
  router.add(std::move(route));
}

}  // namespace weir::site::pages

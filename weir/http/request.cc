#include "weir/http/request.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <stdexcept>

#include "weir/base/hash.h"
#include "weir/http/problem.h"
#include "weir/http/text.h"

namespace weir::http {
namespace {

// RFC 8259 sets no limit; this one keeps recursion shallow.
constexpr std::size_t kMaxJsonDepth = 32;

Problem bad_target(std::string detail) {
  return {400, "bad_request", std::move(detail)};
}

// Boost.JSON reads 1e400 as infinity, which can't be written back as JSON.
bool all_finite(const boost::json::value& value) {
  if (const auto* number = value.if_double()) return std::isfinite(*number);
  if (const auto* array = value.if_array()) {
    for (const auto& item : *array)
      if (!all_finite(item)) return false;
  } else if (const auto* object = value.if_object()) {
    for (const auto& [key, item] : *object)
      if (!all_finite(item)) return false;
  }
  return true;
}

// The path and query of an absolute-form target ("http://host/path?query"), which servers must understand
// too.
std::string_view origin_form(std::string_view target) {
  const std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos ||
      !(same_word(target.substr(0, scheme), "http") || same_word(target.substr(0, scheme), "https"))) {
    throw bad_target("The request target must begin with a slash.");
  }
  const std::size_t start = target.find_first_of("/?", scheme + 3);
  if (start == std::string_view::npos) return "/";
  if (target[start] == '?') throw bad_target("The request target has no path.");
  return target.substr(start);
}

bool tag_listed(std::string_view list, std::string_view etag, bool weak) {
  while (!list.empty()) {
    std::string_view item = next_item(list, ',');
    if (item == "*") return true;
    if (item.starts_with("W/")) {
      if (!weak) continue;
      item.remove_prefix(2);
    }
    if (item == etag) return true;
  }
  return false;
}

}  // namespace

Request::Request(std::string_view method_text, std::string_view target_text,
                 std::vector<std::pair<std::string, std::string>> headers, std::string body_text)
    : body(std::move(body_text)) {
  for (auto& [name, value] : headers) {
    const std::string_view kept_name = keep(std::move(name));
    fields.push_back({kept_name, keep(std::move(value))});
  }
  if (header("X-Weir-Page") == "1") from_page = true;
  const std::string_view kept_method = keep(std::string(method_text));
  set_target(kept_method, keep(std::string(target_text)));
}

std::string_view Request::keep(std::string text) {
  return kept_.emplace_back(std::move(text));
}

void Request::clear() {
  method = target = path = raw_query_ = {};
  body.clear();
  principal.reset();
  from_page = secure = false;
  request_id.clear();
  fields.clear();
  params.clear();
  segments_.clear();
  parsed_query_.clear();
  kept_.clear();
}

std::optional<std::string_view> Request::header(std::string_view name) const {
  for (const Field& field : fields)
    if (same_word(field.name, name)) return field.value;
  return std::nullopt;
}

std::optional<std::string_view> Request::cookie(std::string_view name) const {
  for (const Field& field : fields) {
    if (!same_word(field.name, "cookie")) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::string_view pair = next_item(rest, ';');
      const std::size_t equals = pair.find('=');
      if (equals != std::string_view::npos && pair.substr(0, equals) == name) return pair.substr(equals + 1);
    }
  }
  return std::nullopt;
}

void Request::set_target(std::string_view method_text, std::string_view target_text) {
  method = method_text;
  target = target_text;
  for (const char c : target) {
    // What isn't ASCII has to come percent-encoded; a fragment never leaves the browser.
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '#')
      throw bad_target("The request target has a character that must be escaped.");
  }
  if (target == "*") {
    path = target;
    return;
  }
  const std::string_view local = target.starts_with('/') ? target : origin_form(target);
  const std::size_t question = local.find('?');
  path = local.substr(0, question);
  raw_query_ = question == std::string_view::npos ? std::string_view() : local.substr(question + 1);
  split_path();
  if (!raw_query_.empty()) split_query();
}

void Request::split_path() {
  std::string_view rest = path.substr(1);
  if (rest.empty()) return;
  for (;;) {
    const std::size_t slash = rest.find('/');
    std::string_view segment = rest.substr(0, slash);
    if (segment.find('%') != std::string_view::npos) {
      auto decoded = percent_decode(segment, false);
      if (!decoded) throw bad_target("The path has a broken escape.");
      segment = keep(std::move(*decoded));
    }
    segments_.push_back(segment);
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

void Request::split_query() {
  std::string_view rest = raw_query_;
  while (!rest.empty()) {
    const std::size_t end = rest.find('&');
    const std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals), true);
    auto value = equals == std::string_view::npos ? std::optional<std::string>(std::string())
                                                  : percent_decode(pair.substr(equals + 1), true);
    if (!name || !value) throw bad_target("The query has a broken escape.");
    parsed_query_.emplace_back(std::move(*name), std::move(*value));
  }
}

std::optional<std::string> Request::query(std::string_view name) const {
  for (const auto& [key, value] : parsed_query_)
    if (key == name) return value;
  return std::nullopt;
}

Id Request::id(std::string_view name) const {
  for (const Param& param : params)
    if (param.name == name && param.id > 0) return param.id;
  throw std::logic_error("the route has no id parameter " + std::string(name));
}

std::string_view Request::param(std::string_view name) const {
  for (const Param& param : params)
    if (param.name == name) return param.text;
  throw std::logic_error("the route has no parameter " + std::string(name));
}

const Principal& Request::user() const {
  if (!principal) throw unauthenticated();
  return *principal;
}

boost::json::object Request::json_object() const {
  if (body.empty()) return {};
  const auto type = header("Content-Type");
  if (!type || !is_json_type(*type)) throw unsupported_media_type("The body must be application/json.");
  boost::json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(body, error, {}, options);
  if (error) throw malformed_json("The body is not JSON: " + error.message() + ".");
  if (!all_finite(value)) throw malformed_json("The body holds a number that is too large.");
  if (!value.is_object()) throw invalid("body", "must be a JSON object");
  return std::move(value.get_object());
}

bool not_modified(const Request& request, std::string_view etag) {
  const auto tags = request.header("If-None-Match");
  return tags && tag_listed(*tags, etag, true);
}

bool may_change(const Request& request, std::string_view etag) {
  const auto tags = request.header("If-Match");
  return !tags || tag_listed(*tags, etag, false);
}

std::string etag_of(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::uint64_t hash = hash64(bytes);
  std::string tag(18, '"');
  for (std::size_t i = 16; i > 0; --i, hash >>= 4) tag[i] = kHex[hash & 15];
  return tag;
}

Response with_etag(const Request& request, Response response) {
  std::string tag = etag_of(response.payload());
  if (not_modified(request, tag)) {
    response.status = 304;
    response.body.clear();
    response.shared_body.reset();
    response.content_type.clear();
  }
  response.headers.emplace_back("ETag", std::move(tag));
  return response;
}

}  // namespace weir::http

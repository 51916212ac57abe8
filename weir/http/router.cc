#include "weir/http/router.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <unordered_map>

namespace weir::http {
namespace {

constexpr std::array<std::string_view, 6> kMethods{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
constexpr std::size_t kGet = 0, kHead = 1, kUnknownMethod = kMethods.size();

std::size_t method_index(std::string_view method) {
  for (std::size_t i = 0; i < kMethods.size(); ++i)
    if (kMethods[i] == method) return i;
  return kUnknownMethod;
}

// Names of what a `biz` is: [a-z][a-z0-9_]{0,31}.
bool is_biz(std::string_view text) {
  if (text.empty() || text.size() > 32 || text[0] < 'a' || text[0] > 'z') return false;
  return std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

bool matches(ParamKind kind, std::string_view text) {
  switch (kind) {
    case ParamKind::id:
      return parse_id(text).has_value();
    case ParamKind::biz:
      return is_biz(text);
    case ParamKind::text:
      break;
  }
  return !text.empty();
}

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

[[noreturn]] void malformed(std::string_view pattern) {
  throw std::logic_error("malformed route pattern: " + std::string(pattern));
}

PatternSegment parse_param(std::string_view pattern, std::string_view inside) {
  const std::size_t colon = inside.find(':');
  PatternSegment segment{std::string(inside.substr(0, colon)), true, ParamKind::text};
  if (segment.text.empty()) malformed(pattern);
  if (colon == std::string_view::npos) {
    if (segment.text == "id" || segment.text.ends_with("_id")) segment.kind = ParamKind::id;
    if (segment.text == "biz") segment.kind = ParamKind::biz;
    return segment;
  }
  const std::string_view kind = inside.substr(colon + 1);
  if (kind == "id") {
    segment.kind = ParamKind::id;
  } else if (kind == "biz") {
    segment.kind = ParamKind::biz;
  } else if (kind != "text") {
    malformed(pattern);
  }
  return segment;
}

}  // namespace

std::vector<PatternSegment> parse_pattern(std::string_view pattern) {
  if (!pattern.starts_with('/')) malformed(pattern);
  std::vector<PatternSegment> segments;
  std::string_view rest = pattern.substr(1);
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (part.empty() || (slash != std::string_view::npos && rest.empty())) malformed(pattern);
    if (part.front() == '{') {
      if (part.back() != '}') malformed(pattern);
      segments.push_back(parse_param(pattern, part.substr(1, part.size() - 2)));
    } else if (part.find_first_of("{}%?#") != std::string_view::npos) {
      malformed(pattern);
    } else {
      segments.push_back({std::string(part), false, ParamKind::text});
    }
  }
  return segments;
}

struct Router::Table {
  struct Node {
    std::unordered_map<std::string, std::unique_ptr<Node>, Hash, std::equal_to<>> literals;
    // By kind, the narrower first: id, biz, text.
    std::array<std::unique_ptr<Node>, 3> params;
    std::array<const Entry*, kMethods.size()> methods{};
    std::string allow;  // empty: no route ends here
    std::string label;
  };

  // The way down for one request. What matches the path but not the method is remembered for a 405.
  struct Search {
    const std::vector<std::string_view>& segments;
    std::size_t method;
    const Node* known = nullptr;

    const Node* down(const Node& node, std::size_t depth) {
      if (depth == segments.size()) {
        if (node.allow.empty()) return nullptr;
        if (known == nullptr) known = &node;
        return method != kUnknownMethod && node.methods[method] != nullptr ? &node : nullptr;
      }
      const std::string_view segment = segments[depth];
      if (const auto child = node.literals.find(segment); child != node.literals.end()) {
        if (const Node* found = down(*child->second, depth + 1)) return found;
      }
      for (std::size_t kind = 0; kind < node.params.size(); ++kind) {
        if (!node.params[kind] || !matches(static_cast<ParamKind>(kind), segment)) continue;
        if (const Node* found = down(*node.params[kind], depth + 1)) return found;
      }
      return nullptr;
    }
  };

  Node& node_of(const std::vector<PatternSegment>& segments) {
    Node* node = &root;
    for (const PatternSegment& segment : segments) {
      auto& child = segment.is_param ? node->params[static_cast<std::size_t>(segment.kind)]
                                     : node->literals[segment.text];
      if (!child) child = std::make_unique<Node>();
      node = child.get();
    }
    return *node;
  }

  Node root;
  std::vector<std::unique_ptr<Entry>> entries;
  std::unique_ptr<Entry> not_found_page;
  std::map<std::string, boost::json::value> schemas;
  std::vector<std::function<void()>> on_stop;
};

Router::Router() : table_(std::make_shared<Table>()) {}
Router::Router(std::shared_ptr<Table> table) : table_(std::move(table)) {}
Router::~Router() = default;
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;

void Router::add(Route route) {
  const std::size_t method = method_index(route.method);
  if (method == kUnknownMethod || method == kHead) {
    throw std::logic_error("a route can't have the method " + route.method);
  }
  if (!route.handler) throw std::logic_error("no handler for " + route.method + " " + route.pattern);
  auto segments = parse_pattern(route.pattern);
  std::string label;
  for (const auto& segment : segments) {
    label += segment.is_param ? "/{" + segment.text + "}" : "/" + segment.text;
  }
  if (label.empty()) label = "/";
  Table::Node& node = table_->node_of(segments);
  if (node.methods[method] != nullptr) {
    throw std::logic_error("two routes for " + route.method + " " + route.pattern);
  }
  table_->entries.push_back(
      std::make_unique<Entry>(Entry{std::move(route), label, table_->entries.size(), std::move(segments)}));
  node.methods[method] = table_->entries.back().get();
  if (method == kGet) node.methods[kHead] = node.methods[kGet];
  if (node.label.empty()) node.label = label;
  node.allow.clear();
  for (std::size_t i = 0; i < kMethods.size(); ++i) {
    if (node.methods[i] != nullptr) node.allow += std::string(kMethods[i]) + ", ";
  }
  node.allow += "OPTIONS";
}

void Router::set_not_found_page(Handler handler) {
  Route route{"GET", "", Access::anyone, std::move(handler), {}};
  route.doc.hidden = true;
  table_->not_found_page = std::make_unique<Entry>(Entry{std::move(route), "none", 0, {}});
}

const Router::Entry* Router::not_found_page() const {
  return table_->not_found_page.get();
}

void Router::add_schema(std::string name, boost::json::value schema) {
  const auto [at, fresh] = table_->schemas.try_emplace(std::move(name), std::move(schema));
  if (!fresh) throw std::logic_error("two schemas named " + at->first);
}

Router::Match Router::find(Request& request) const {
  Table::Search search{request.segments(), method_index(request.method)};
  const Table::Node* node = request.path == "*" ? nullptr : search.down(table_->root, 0);
  if (node == nullptr) {
    if (search.known == nullptr) return {};
    return {nullptr, &search.known->allow, search.known->label};
  }
  const Entry* entry = node->methods[search.method];
  request.params.clear();
  for (std::size_t i = 0; i < entry->segments.size(); ++i) {
    const PatternSegment& segment = entry->segments[i];
    if (!segment.is_param) continue;
    const std::string_view text = request.segments()[i];
    request.params.push_back(
        {segment.text, text, segment.kind == ParamKind::id ? parse_id(text).value_or(0) : 0});
  }
  return {entry, &node->allow, entry->label};
}

void Router::on_stop(std::function<void()> call) {
  table_->on_stop.push_back(std::move(call));
}

void Router::stopped() const {
  for (const auto& call : table_->on_stop) call();
}

std::function<Router()> Router::reference() const {
  return [table = std::weak_ptr<Table>(table_)] {
    auto alive = table.lock();
    if (!alive) throw std::logic_error("the router is gone");
    return Router(std::move(alive));
  };
}

std::vector<const Router::Entry*> Router::entries() const {
  std::vector<const Entry*> all;
  all.reserve(table_->entries.size());
  for (const auto& entry : table_->entries) all.push_back(entry.get());
  return all;
}

const std::map<std::string, boost::json::value>& Router::schemas() const {
  return table_->schemas;
}

}  // namespace weir::http

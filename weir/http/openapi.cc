#include "weir/http/openapi.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <stdexcept>

#include "weir/http/problem.h"
#include "weir/http/text.h"

namespace weir::http {
namespace {

namespace json = boost::json;

bool takes_body(const Route& route) {
  return route.method != "GET" && route.method != "DELETE";
}

json::object reference(const Router& router, const std::string& schema) {
  if (!router.schemas().contains(schema) && schema != "Problem") {
    throw std::logic_error("no schema named " + schema);
  }
  return {{"$ref", "#/components/schemas/" + schema}};
}

json::object path_parameter(const PatternSegment& segment) {
  json::object schema{{"type", "string"}};
  switch (segment.kind) {
    case ParamKind::id:
      schema["pattern"] = "^[1-9][0-9]{0,18}$";
      break;
    case ParamKind::biz:
      schema["pattern"] = "^[a-z][a-z0-9_]{0,31}$";
      break;
    case ParamKind::text:
      schema["minLength"] = 1;
      break;
  }
  return {{"name", segment.text}, {"in", "path"}, {"required", true}, {"schema", std::move(schema)}};
}

json::array parameters_of(const Router::Entry& entry) {
  json::array parameters;
  for (const auto& segment : entry.segments) {
    if (segment.is_param) parameters.push_back(path_parameter(segment));
  }
  for (const auto& parameter : entry.route.doc.query) {
    json::object schema = parameter.schema;
    schema["type"] = parameter.type;
    parameters.push_back({{"name", parameter.name},
                          {"in", parameter.in},
                          {"required", parameter.required},
                          {"description", parameter.description},
                          {"schema", std::move(schema)}});
  }
  return parameters;
}

// What the handler says it answers as a problem, and what the server may answer before it.
std::set<unsigned> problems_of(const Router::Entry& entry) {
  const Route& route = entry.route;
  std::set<unsigned> problems(route.doc.problems.begin(), route.doc.problems.end());
  problems.insert({400, 401, 408, 431, 503});
  const bool has_params = std::ranges::any_of(entry.segments, &PatternSegment::is_param);
  if (has_params) problems.insert(404);
  if (route.method != "GET" || route.access == Access::admin) problems.insert(403);
  if (route.method != "GET") problems.insert({413, 415});
  if (!route.doc.request_schema.empty() || !route.doc.query.empty()) problems.insert(422);
  return problems;
}

json::object responses_of(const Router& router, const Router::Entry& entry) {
  const Doc& doc = entry.route.doc;
  json::object responses;
  for (const auto& [status, schema] : doc.responses) {
    json::object response{{"description", reason_of(status)}};
    if (!schema.empty()) {
      response["content"] = json::object{{doc.response_type, {{"schema", reference(router, schema)}}}};
    } else if (doc.response_type != "application/json" && status == 200) {
      response["content"] = json::object{{doc.response_type, {{"schema", {{"type", "string"}}}}}};
    }
    responses[std::to_string(status)] = std::move(response);
  }
  for (const unsigned status : problems_of(entry)) {
    json::value& response = responses[std::to_string(status)];
    if (response.is_null()) response = json::object{{"description", reason_of(status)}};
    json::value& content = response.get_object()["content"];
    if (content.is_null()) content = json::object();
    content.get_object()["application/problem+json"] = {{"schema", reference(router, "Problem")}};
  }
  return responses;
}

// "GET /v1/articles/{id}" -> "get_v1_articles_id"
std::string operation_id(const Router::Entry& entry) {
  std::string id;
  for (const char c : entry.route.method) id += to_lower(c);
  for (const char c : entry.label) {
    const char low = to_lower(c);
    const bool word = (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9');
    if (word) {
      id += c;
    } else if (id.back() != '_') {
      id += '_';
    }
  }
  while (id.back() == '_') id.pop_back();
  return id;
}

json::array security_of(Access access) {
  json::array either{json::object{{"bearer", json::array()}}, json::object{{"session", json::array()}}};
  if (access == Access::anyone) either.insert(either.begin(), json::object());
  return either;
}

json::object operation_of(const Router& router, const Router::Entry& entry) {
  const Doc& doc = entry.route.doc;
  json::object operation{{"operationId", operation_id(entry)}, {"summary", doc.summary}};
  if (!doc.tag.empty()) operation["tags"] = json::array{doc.tag};
  if (auto parameters = parameters_of(entry); !parameters.empty())
    operation["parameters"] = std::move(parameters);
  if (takes_body(entry.route) && !doc.request_schema.empty()) {
    operation["requestBody"] = {
        {"required", !doc.request_optional},
        {"content", {{"application/json", {{"schema", reference(router, doc.request_schema)}}}}}};
  }
  operation["responses"] = responses_of(router, entry);
  operation["security"] = security_of(entry.route.access);
  return operation;
}

json::value problem_schema() {
  const json::object text{{"type", "string"}};
  return {{"type", "object"},
          {"description", "What went wrong, as RFC 9457 has it."},
          {"required", {"type", "title", "status", "detail", "code"}},
          {"properties",
           {{"type", text},
            {"title", text},
            {"status", {{"type", "integer"}}},
            {"detail", text},
            {"code", {{"type", "string"}, {"description", "For programs; it stays the same."}}},
            {"errors",
             {{"type", "array"},
              {"items",
               {{"type", "object"},
                {"required", {"field", "message"}},
                {"properties", {{"field", text}, {"message", text}}}}}}}}}};
}

json::object components_of(const Router& router) {
  json::object schemas{{"Problem", problem_schema()}};
  for (const auto& [name, schema] : router.schemas()) schemas[name] = schema;
  return {{"schemas", std::move(schemas)},
          {"securitySchemes",
           {{"bearer", {{"type", "http"}, {"scheme", "bearer"}, {"bearerFormat", "JWT"}}},
            {"session", {{"type", "apiKey"}, {"in", "cookie"}, {"name", "weir_session"}}}}}};
}

}  // namespace

json::value openapi(const Router& router, std::string_view title, std::string_view version,
                    std::string_view description) {
  json::object paths;
  for (const auto* entry : router.entries()) {
    if (entry->route.doc.hidden) continue;
    std::string method;
    for (const char c : entry->route.method) method += to_lower(c);
    json::value& path = paths[entry->label];
    if (path.is_null()) path = json::object();
    path.get_object()[method] = operation_of(router, *entry);
  }
  json::object info{{"title", title}, {"version", version}};
  if (!description.empty()) info["description"] = description;
  return {{"openapi", "3.1.0"},
          {"info", std::move(info)},
          {"paths", std::move(paths)},
          {"components", components_of(router)}};
}

}  // namespace weir::http

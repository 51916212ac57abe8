#include "weir/http/operational.h"

#include <memory>
#include <mutex>
#include <string_view>

#include "weir/base/blocking_pool.h"
#include "weir/base/offload.h"
#include "weir/http/json_writer.h"
#include "weir/http/openapi.h"
#include "weir/telemetry/metrics.h"

namespace weir::http {
namespace {

using boost::asio::awaitable;

// More scrapes than this at a time are answered 503.
constexpr std::size_t kMaxScrapes = 16;

std::string_view name_of(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::degraded:
      return "degraded";
    case Health::down:
      break;
  }
  return "down";
}

awaitable<Health> outcome_of(const Check& check) {
  try {
    co_return co_await check.run();
  } catch (const std::exception& e) {
    telemetry::swallowed("http.readyz", e);
  }
  co_return check.essential ? Health::down : Health::degraded;
}

// The document and its page, made once: when the first one asks, since then all routes are there.
class Documents {
 public:
  Documents(std::function<Router()> router, const OperationalOptions& options)
      : router_(std::move(router)),
        title_(options.title),
        version_(options.version),
        description_(options.description) {}

  std::shared_ptr<const std::string> json() {
    make();
    return json_;
  }
  std::shared_ptr<const std::string> page() {
    make();
    return page_;
  }

 private:
  void make() {
    std::call_once(made_, [this] {
      const boost::json::value document = openapi(router_(), title_, version_, description_);
      json_ = std::make_shared<const std::string>(boost::json::serialize(document));
      page_ = std::make_shared<const std::string>(docs_page(document));
    });
  }

  std::function<Router()> router_;
  std::string title_, version_, description_;
  std::once_flag made_;
  std::shared_ptr<const std::string> json_, page_;
};

awaitable<Response> readiness(const OperationalOptions& options) {
  JsonWriter checks;
  checks.begin_object();
  bool degraded = false, down = options.stopping && options.stopping();
  for (const Check& check : options.checks) {
    const Health health = co_await outcome_of(check);
    degraded |= health != Health::ok;
    down |= health == Health::down;
    checks.key(check.name).string(name_of(health));
  }
  checks.end_object();
  JsonWriter w;
  w.begin_object().key("status").string(down ? "down" : degraded ? "degraded" : "ready");
  w.key("checks").raw(checks.text()).end_object();
  co_return Response::json(down ? 503 : 200, std::move(w)).with("Cache-Control", "no-store");
}

Doc doc(std::string summary, std::map<unsigned, std::string> responses,
        std::string type = "application/json") {
  Doc doc;
  doc.summary = std::move(summary);
  doc.responses = std::move(responses);
  doc.tag = "operations";
  doc.response_type = std::move(type);
  return doc;
}

void add_schemas(Router& router) {
  const boost::json::object text{{"type", "string"}};
  router.add_schema("Health",
                    {{"type", "object"}, {"required", {"status"}}, {"properties", {{"status", text}}}});
  router.add_schema(
      "Readiness",
      {{"type", "object"},
       {"required", {"status", "checks"}},
       {"properties",
        {{"status", {{"type", "string"}, {"enum", {"ready", "degraded", "down"}}}},
         {"checks",
          {{"type", "object"},
           {"additionalProperties", {{"type", "string"}, {"enum", {"ok", "degraded", "down"}}}}}}}}});
  router.add_schema("OpenApi", {{"type", "object"}});
}

void add_documents(Router& router, const OperationalOptions& options) {
  auto documents = std::make_shared<Documents>(router.reference(), options);
  router.add({"GET", "/v1/openapi.json", Access::anyone,
              [documents](Request& request) -> Reply {
                co_return with_etag(request, Response::shared(documents->json(), "application/json"));
              },
              doc("This document", {{200, "OpenApi"}, {304, ""}})});
  Doc page = doc("This page", {{200, ""}}, "text/html");
  page.hidden = true;
  router.add({"GET", "/docs", Access::anyone,
              [documents](Request& request) -> Reply {
                Response response = Response::shared(documents->page(), "text/html; charset=utf-8");
                response.with("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
                co_return with_etag(request, std::move(response));
              },
              std::move(page)});
}

}  // namespace

Check quick_check(std::string name, std::function<Health()> run, bool essential) {
  return {std::move(name), [run = std::move(run)]() -> awaitable<Health> { co_return run(); }, essential};
}

void add_operational_routes(Router& router, OperationalOptions options) {
  add_schemas(router);
  add_documents(router, options);
  auto shared = std::make_shared<const OperationalOptions>(std::move(options));
  router.add({"GET", "/healthz", Access::anyone,
              [](Request&) -> Reply { co_return Response::json(200, std::string(R"({"status":"ok"})")); },
              doc("The process runs", {{200, "Health"}})});
  router.add({"GET", "/readyz", Access::anyone,
              [shared](Request&) -> Reply { co_return co_await readiness(*shared); },
              doc("Whether it can serve, and what is wrong", {{200, "Readiness"}, {503, "Readiness"}})});
  // Writing all series takes milliseconds, which no request should wait for.
  auto pool = std::make_shared<BlockingPool>("metrics", 1, kMaxScrapes);
  router.on_stop([pool] { pool->stop(); });
  router.add({"GET", "/metrics", Access::anyone,
              [pool](Request&) -> Reply {
                Response response;
                response.body = co_await offload(*pool, [] { return telemetry::scrape(); });
                response.content_type = "text/plain; version=0.0.4; charset=utf-8";
                co_return response;
              },
              doc("Figures in Prometheus' text format", {{200, ""}}, "text/plain")});
}

}  // namespace weir::http

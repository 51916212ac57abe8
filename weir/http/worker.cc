#include "weir/http/worker.h"

#include <array>

#include "weir/base/hash.h"
#include "weir/http/connection.h"

namespace weir::http {
namespace {

// Methods as metrics show them. A client can invent others, so they share one name.
constexpr std::array<std::string_view, 8> kMethods{"GET",   "HEAD",   "POST",    "PUT",
                                                   "PATCH", "DELETE", "OPTIONS", "other"};

std::uint32_t method_number(std::string_view method) {
  std::uint32_t i = 0;
  while (i + 1 < kMethods.size() && kMethods[i] != method) ++i;
  return i;
}

}  // namespace

Shared::Shared(ServerOptions chosen, std::size_t workers, Router router, Authenticator authenticate,
               const Clock& server_clock)
    : options(std::move(chosen)),
      head_limits{options.max_header_line, options.max_head, options.max_fields},
      clock(server_clock),
      dispatcher(std::move(router), std::move(authenticate), options.cors_origins),
      proxies(options.trusted_proxies),
      access_log(options.access_log == AccessLogLevel::none ? nullptr : std::make_unique<AccessLog>(workers)),
      open(telemetry::gauge("weir_http_connections", "Open connections")),
      refused(telemetry::counter("weir_http_connections_refused_total",
                                 "Connections refused: too many were open")) {}

void Shared::opened() {
  count_.fetch_add(1, std::memory_order_relaxed);
  open.add(1);
}

void Shared::closed() {
  open.add(-1);
  const std::lock_guard lock(mutex_);
  if (count_.fetch_sub(1, std::memory_order_relaxed) == 1) none_.notify_all();
}

bool Shared::wait_until_none(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  return none_.wait_until(lock, until, [this] { return count_.load(std::memory_order_relaxed) == 0; });
}

Worker::Worker(Shared& all, std::size_t its_number, std::size_t workers)
    : shared(all),
      number(its_number),
      memory(all.options.max_client_memory / workers),
      random_(secure_random64()),
      context(1),  // one thread runs it: Asio leaves its wake-ups of others out
      poller(context) {}

// A connection that still waits owns its coroutine, which owns the connection. None is destroyed here yet: a
// coroutine that is let go of is unwound through the context, which ends after this.
Worker::~Worker() {
  for (Connection* connection : connections) connection->abandon();
}

void Worker::make_request_id(std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::uint64_t bits = random_.next();
  out.resize(16);
  for (char& c : out) {
    c = kHex[bits & 15];
    bits >>= 4;
  }
}

std::size_t Worker::SeriesHash::operator()(const SeriesKey& key) const {
  return mix64(reinterpret_cast<std::uintptr_t>(key.label) ^ std::uint64_t{key.method_and_status} << 48);
}

void Worker::observe(std::string_view label, std::string_view method, unsigned status, double seconds) {
  const std::uint32_t method_index = method_number(method);
  // Labels are literals or belong to routes: the address is enough to tell them apart.
  const char* const identity = label.data();  // NOLINT(bugprone-suspicious-stringview-data-usage)
  const SeriesKey key{identity, method_index << 16 | status};
  auto at = series_.find(key);
  if (at == series_.end()) {
    const telemetry::Labels labels{{"route", std::string(label)},
                                   {"method", std::string(kMethods[method_index])},
                                   {"status", std::to_string(status)}};
    at = series_
             .emplace(key, telemetry::histogram("weir_http_request_duration_seconds",
                                                "From the complete request to its answer", labels))
             .first;
  }
  at->second.observe(seconds);
}

void Worker::drain() {
  draining = true;
  for (Connection* connection : connections) connection->drain();
}

void Worker::cut() {
  draining = cutting = true;
  for (Connection* connection : connections) connection->cut();
}

}  // namespace weir::http

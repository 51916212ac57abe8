// Worker: one io_context, its thread, and what the connections on it share without locks. For this folder's
// own use.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "weir/base/random.h"
#include "weir/http/access_log.h"
#include "weir/http/client_memory.h"
#include "weir/http/dispatcher.h"
#include "weir/http/head_scanner.h"
#include "weir/http/poller.h"
#include "weir/http/proxies.h"
#include "weir/http/response_head.h"
#include "weir/http/server.h"
#include "weir/telemetry/metrics.h"

namespace weir::http {

class Connection;

// What all workers of a server share.
struct Shared {
  Shared(ServerOptions chosen, std::size_t workers, Router router, Authenticator authenticate,
         const Clock& server_clock);

  const ServerOptions options;
  const HeadLimits head_limits;
  const Clock& clock;
  const Dispatcher dispatcher;
  const Proxies proxies;
  const std::unique_ptr<AccessLog> access_log;  // null when nothing is to be logged
  std::atomic<bool> stopping{false};
  telemetry::Gauge open;
  telemetry::Counter refused;

  // Counts the connections, and lets stop() wait for the last one.
  void opened();
  void closed();
  bool wait_until_none(std::chrono::steady_clock::time_point until);
  std::size_t connections() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::condition_variable none_;
};

class Worker {
 public:
  // One of `workers`. Throws boost::system::system_error, for want of descriptors say.
  Worker(Shared& all, std::size_t number, std::size_t workers);
  ~Worker();

  Shared& shared;
  const std::size_t number;

  // Only for the worker's own thread.
  std::list<Connection*> connections;
  bool draining = false;  // answers end their connections
  bool cutting = false;   // and those end at once
  DateText date;
  ClientMemory memory;

  // Writes 16 hexadecimal digits.
  void make_request_id(std::string& out);
  // A request has ended.
  void observe(std::string_view label, std::string_view method, unsigned status, double seconds);
  // Closes idle connections; the others close after their answer.
  void drain();
  // Cancels what still runs.
  void cut();

 private:
  struct SeriesKey {
    const char* label;  // labels live as long as the router: their address will do
    std::uint32_t method_and_status;
    bool operator==(const SeriesKey&) const = default;
  };
  struct SeriesHash {
    std::size_t operator()(const SeriesKey& key) const;
  };

  Random random_;
  std::unordered_map<SeriesKey, telemetry::Histogram, SeriesHash> series_;

 public:
  // Last, so that the connections it still holds when it is destroyed find the rest of the worker.
  boost::asio::io_context context;
  Poller poller;
};

}  // namespace weir::http

// AccessLog: a line for each request, written by a thread of its own, so that no request waits for the log.
// For this folder's own use.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/id.h"
#include "weir/telemetry/metrics.h"

namespace weir::http {

struct AccessEntry {
  std::string method, path, peer, request_id;
  std::string_view route;  // of the router, which outlives the log
  unsigned status = 0;
  std::size_t bytes = 0;
  double seconds = 0;
  Id user_id = 0;
};

class AccessLog {
 public:
  // What waits to be written: more is dropped and counted in weir_http_access_log_dropped_total.
  static constexpr std::size_t kMaxWaiting = 65'536;

  explicit AccessLog(std::size_t lanes);
  // Writes what is waiting.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // A lane for each thread that adds, so that they don't meet. A lock nobody else wants, and a move: 50 ns.
  void add(std::size_t lane, AccessEntry entry);

 private:
  struct Lane {
    std::mutex mutex;
    std::vector<AccessEntry> waiting;
  };
  void work();
  void write_waiting();

  std::vector<std::unique_ptr<Lane>> lanes_;
  telemetry::Counter dropped_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool pending_ = false, stopping_ = false;
  std::thread thread_;
};

// The line's own fields, as JSON.
std::string to_log_fields(const AccessEntry& entry);

}  // namespace weir::http

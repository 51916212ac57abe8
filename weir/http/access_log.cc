#include "weir/http/access_log.h"

#include <pthread.h>

#include <chrono>

#include "weir/telemetry/log.h"

namespace weir::http {
namespace {

// How long a line may wait for others. Waking the writer once for many is what makes them cheap.
constexpr std::chrono::milliseconds kEvery{200};

}  // namespace

AccessLog::AccessLog(std::size_t lanes)
    : dropped_(telemetry::counter("weir_http_access_log_dropped_total",
                                  "Access log lines dropped: too many waited")) {
  for (std::size_t i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<Lane>());
  thread_ = std::thread([this] { work(); });
}

AccessLog::~AccessLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void AccessLog::add(std::size_t lane, AccessEntry entry) {
  Lane& mine = *lanes_[lane];
  bool first = false;
  {
    const std::lock_guard lock(mine.mutex);
    if (mine.waiting.size() >= kMaxWaiting) {
      dropped_.add();
      return;
    }
    first = mine.waiting.empty();
    mine.waiting.push_back(std::move(entry));
  }
  if (!first) return;
  {
    const std::lock_guard lock(mutex_);
    pending_ = true;
  }
  wake_.notify_one();
}

void AccessLog::work() {
  pthread_setname_np(pthread_self(), "access-log");
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    wake_.wait(lock, [this] { return pending_ || stopping_; });
    wake_.wait_for(lock, kEvery, [this] { return stopping_; });
    last = stopping_;
    pending_ = false;
    lock.unlock();
    write_waiting();
    lock.lock();
  }
}

void AccessLog::write_waiting() {
  std::vector<AccessEntry> taken;
  for (const auto& lane : lanes_) {
    taken.clear();
    {
      const std::lock_guard lock(lane->mutex);
      taken.swap(lane->waiting);
    }
    for (const AccessEntry& entry : taken) {
      log::write(log::Level::info, fmt::format("{} {} {}", entry.method, entry.path, entry.status),
                 to_log_fields(entry));
    }
  }
}

std::string to_log_fields(const AccessEntry& entry) {
  std::string fields = fmt::format(
      R"("method":{},"path":{},"route":{},"status":{},"bytes":{},"duration_ms":{:.3f},"peer":{},"request_id":{})",
      log::json_string(entry.method), log::json_string(entry.path), log::json_string(entry.route),
      entry.status, entry.bytes, entry.seconds * 1000, log::json_string(entry.peer),
      log::json_string(entry.request_id));
  if (entry.user_id > 0) fields += fmt::format(R"(,"user_id":"{}")", entry.user_id);
  return fields;
}

}  // namespace weir::http

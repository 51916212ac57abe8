// CallQueue: the bounded queue between those who call a Database and its threads. A detail of database.cc.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "weir/sql/call.h"

namespace weir::sql::detail {

// Thread-safe.
class CallQueue {
 public:
  explicit CallQueue(std::size_t max_waiting) : max_waiting_(max_waiting) {}

  enum class Push { taken, full, stopped };
  // Leaves `call` alone when it isn't taken.
  Push push(std::unique_ptr<Call>& call);
  // Up to `max` calls, the oldest first, as soon as there is one; none when the queue is stopped and empty.
  std::vector<std::unique_ptr<Call>> take(std::size_t max);
  // Refuses what comes later; what waits is still taken.
  void stop();
  std::size_t waiting() const;

 private:
  const std::size_t max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Call>> queue_;
  bool stopped_ = false;
};

}  // namespace weir::sql::detail

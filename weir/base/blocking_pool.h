// BlockingPool: threads for calls that block (SQL, password hashing), so that no I/O thread ever does.
//
// The queue in front of the threads is bounded: when it is full, `submit` refuses and the caller answers
// "busy" instead of growing without end.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weir/base/unique_function.h"

namespace weir {

class BlockingPool {
 public:
  using Task = UniqueFunction<void()>;

  // `name` shows in a debugger (15 bytes at most are kept). Throws std::system_error when the system refuses
  // one of the threads; those that had started are joined then.
  BlockingPool(std::string name, std::size_t threads, std::size_t max_waiting);
  // Runs what is waiting, then joins.
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // Queues the task, which must not throw; false when the queue is full or the pool stops. Thread-safe.
  [[nodiscard]] bool submit(Task task);
  // Finishes what is waiting, refuses what comes later, joins. Once is enough; more is harmless.
  void stop();

  std::size_t waiting() const;

 private:
  void work(const std::string& name);

  const std::size_t max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weir

#include "weir/sql/call_queue.h"

#include <algorithm>

namespace weir::sql::detail {

CallQueue::Push CallQueue::push(std::unique_ptr<Call>& call) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return Push::stopped;
    if (queue_.size() >= max_waiting_) return Push::full;
    queue_.push_back(std::move(call));
  }
  wake_.notify_one();
  return Push::taken;
}

std::vector<std::unique_ptr<Call>> CallQueue::take(std::size_t max) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
  std::vector<std::unique_ptr<Call>> taken;
  taken.reserve(std::min(max, queue_.size()));
  while (taken.size() < max && !queue_.empty()) {
    taken.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return taken;
}

void CallQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
}

std::size_t CallQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

}  // namespace weir::sql::detail

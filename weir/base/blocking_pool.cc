#include "weir/base/blocking_pool.h"

#include <pthread.h>

namespace weir {

BlockingPool::BlockingPool(std::string name, std::size_t threads, std::size_t max_waiting)
    : max_waiting_(max_waiting) {
  threads_.reserve(threads);
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this, name] { work(name); });
  } catch (...) {  // the destructor won't run, and a thread that nobody has joined ends the process
    stop();
    throw;
  }
}

BlockingPool::~BlockingPool() {
  stop();
}

bool BlockingPool::submit(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= max_waiting_) return false;
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void BlockingPool::stop() {
  std::vector<std::thread> joining;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    joining.swap(threads_);
  }
  wake_.notify_all();
  for (auto& thread : joining) thread.join();
}

std::size_t BlockingPool::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void BlockingPool::work(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task();
    task = {};  // what the task held is freed outside the lock
    lock.lock();
  }
}

}  // namespace weir

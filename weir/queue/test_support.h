// What the queue's tests share. For tests.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weir/queue/batch_consumer.h"
#include "weir/queue/embedded_queue.h"

namespace weir::queue {

// Looks every millisecond until it is so; false after 20 seconds.
inline bool eventually(const std::function<bool()>& so) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!so()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline std::int64_t total_lag(Queue& queue, const std::string& topic, const std::string& group) {
  std::int64_t sum = 0;
  for (const Lag& lag : queue.lag())
    if (lag.topic == topic && lag.group == group) sum += lag.lag;
  return sum;
}

// A handler that keeps what it was given.
class Seen {
 public:
  void operator()(std::span<const Message> batch) {
    const std::lock_guard lock(mutex_);
    ++calls_;
    largest_ = std::max(largest_, batch.size());
    for (const Message& message : batch) {
      ++count_;
      by_key_[std::string(message.key)].emplace_back(message.payload);
    }
  }
  std::size_t count() const { return locked(count_); }
  std::size_t calls() const { return locked(calls_); }
  std::size_t largest() const { return locked(largest_); }
  std::vector<std::string> of(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? std::vector<std::string>() : found->second;
  }

 private:
  std::size_t locked(const std::size_t& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }
  mutable std::mutex mutex_;
  std::size_t count_ = 0, calls_ = 0, largest_ = 0;
  std::map<std::string, std::vector<std::string>> by_key_;
};

// Records of a made-up producer: keys k0 .. k9, payloads 0, 1, 2, ..
class Records {
 public:
  explicit Records(std::size_t count, std::string topic = "t", std::size_t keys = 10)
      : topic_(std::move(topic)) {
    texts_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      texts_.emplace_back("k" + std::to_string(i % keys), std::to_string(i));
      records_.push_back(
          {topic_, texts_.back().first, texts_.back().second, {}, 7, 0, i + 1, from_micros(1)});
    }
  }
  operator std::span<const Record>() const { return records_; }

 private:
  std::string topic_;
  std::vector<std::pair<std::string, std::string>> texts_;
  std::vector<Record> records_;
};

}  // namespace weir::queue

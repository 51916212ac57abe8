#include "weir/scheduler/ticker.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "weir/base/fault.h"
#include "weir/telemetry/metrics.h"

namespace weir::scheduler {

Ticker::Ticker(std::string name, std::chrono::nanoseconds interval, Call call, const Clock& clock)
    : name_(std::move(name)), interval_(interval), call_(std::move(call)), clock_(clock) {
  if (interval <= std::chrono::nanoseconds::zero()) throw Unusable("a ticker's interval must be positive");
  thread_ = std::thread([this] { work(); });
}

Ticker::~Ticker() {
  stop();
}

void Ticker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.request_stop();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Ticker::look_again() {
  {
    const std::lock_guard lock(mutex_);
    ++looks_;
  }
  wake_.notify_all();
}

void Ticker::work() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  SteadyTime due = clock_.steady_now();
  do {
    tick();
    // The next one on the grid that isn't over yet; one that is due this very moment still counts.
    const auto intervals = (clock_.steady_now() - due + interval_ - std::chrono::nanoseconds(1)) / interval_;
    due += std::max<std::int64_t>(intervals, 1) * interval_;
  } while (wait_until(due));
}

void Ticker::tick() {
  try {
    call_(stop_.get_token());
  } catch (const std::exception& e) {
    telemetry::swallowed("ticker." + name_, e);
  }
}

bool Ticker::wait_until(SteadyTime due) {
  std::unique_lock lock(mutex_);
  while (!stop_.stop_requested()) {
    const auto left = due - clock_.steady_now();
    if (left <= left.zero()) return true;
    const std::uint64_t looks = looks_;
    wake_.wait_for(lock, left, [&] { return stop_.stop_requested() || looks_ != looks; });
  }
  return false;
}

}  // namespace weir::scheduler

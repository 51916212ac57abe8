// TiredStore: the database of an accident in simulated time, which gets slower when too many come at once.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "weir/base/id.h"
#include "weir/cache/pause.h"

namespace weir::site {

// For one thread. Every row is there.
class TiredStore {
 public:
  // A load takes so long, while at most `at_ease` are under way. More of them share it: each gets slower, and
  // nobody gets more done.
  TiredStore(const cache::SimulatedTime& time, std::chrono::nanoseconds load_takes, std::uint64_t at_ease)
      : pause_(time.pause()), load_takes_(load_takes), at_ease_(at_ease) {}

  boost::asio::awaitable<std::optional<std::string>> load(Id) {
    ++loads_;
    most_at_once_ = std::max(most_at_once_, ++at_once_);
    co_await pause_(load_takes_ * std::max(at_once_, at_ease_) / at_ease_);
    --at_once_;
    co_return "row";
  }
  std::uint64_t loads() const { return loads_; }
  std::uint64_t most_at_once() const { return most_at_once_; }

 private:
  const cache::Pause pause_;
  const std::chrono::nanoseconds load_takes_;
  const std::uint64_t at_ease_;
  std::uint64_t loads_ = 0, at_once_ = 0, most_at_once_ = 0;
};

}  // namespace weir::site

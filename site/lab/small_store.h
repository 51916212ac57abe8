// SmallStore: the database of an accident. Rows in memory; it counts what it is asked and takes its time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "weir/base/id.h"

namespace weir::site {

class Hold;

// For one thread.
class SmallStore {
 public:
  // `delay`: how long a load takes.
  explicit SmallStore(std::chrono::milliseconds delay = {}) : delay_(delay) {}

  void write(Id key, std::string value) { rows_[key] = std::move(value); }
  // What it holds; empty when there is no such row. Doesn't count.
  std::string look(Id key) const {
    const auto at = rows_.find(key);
    return at == rows_.end() ? "" : at->second;
  }
  // Reads the row, then takes its time: what it answers may be old by then, as with a real database.
  boost::asio::awaitable<std::optional<std::string>> load(Id key);
  // Loads wait there from now on, with what they have read; null: no longer.
  void hold_at(Hold* hold) { hold_ = hold; }

  std::uint64_t loads() const { return loads_; }
  std::uint64_t most_at_once() const { return most_at_once_; }

 private:
  const std::chrono::milliseconds delay_;
  std::unordered_map<Id, std::string> rows_;
  Hold* hold_ = nullptr;
  std::uint64_t loads_ = 0, at_once_ = 0, most_at_once_ = 0;
};

}  // namespace weir::site

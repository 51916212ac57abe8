// For the tests of this folder: several nodes, each with a ReadThrough, over one remote level and one store, in a
// time that the test moves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/cache/memory_remote.h"
#include "weir/cache/read_through_fixture.h"

namespace weir::cache {

class ReadThroughNodes : public testing::Test {
 protected:
  using Millis = std::chrono::milliseconds;

  MemoryRemoteOptions level_options() {
    return {.name = name() + "Level",
            .ttl = std::chrono::minutes(10),
            .jitter = 0,
            .lease_ttl = std::chrono::seconds(10),
            .timeout = Millis(250),
            .clock = &time_,
            .pause = time_.pause()};
  }
  TextCache::Options options() {
    return {.name = name(),
            .ttl = std::chrono::minutes(1),
            .jitter = 0,
            .load_timeout = std::chrono::seconds(10),
            .remote = {.level = level_, .codec = text_codec<int>(), .patience = std::chrono::seconds(5)},
            .clock = &time_,
            .pause = time_.pause()};
  }
  void SetUp() override {
    store_.rows = {{1, "one"}, {2, "two"}, {3, "three"}};
    make(options());
  }
  void make(const TextCache::Options& given, std::size_t nodes = 2) {
    nodes_.clear();
    for (std::size_t i = 0; i < nodes; ++i)
      nodes_.push_back(std::make_unique<TextCache>(given, store_.load(), io_.get_executor()));
  }
  TextCache& node(std::size_t i) { return *nodes_[i]; }
  std::future<TextCache::Found> start(std::size_t i, int key) {
    auto read = start_on(io_.get_executor(), node(i).get(key));
    turn(io_);
    return read;
  }
  TextCache::Found get(std::size_t i, int key) { return now(node(i).get(key)); }
  // What it answers without any time passing.
  template <class T>
  T now(boost::asio::awaitable<T> work) {
    auto future = start_on(io_.get_executor(), std::move(work));
    turn(io_);
    if (!is_ready(future)) throw std::logic_error("it waits");
    return future.get();
  }
  void pass(std::chrono::nanoseconds by) {
    time_.advance(by);
    turn(io_);
  }
  bool level_knows(int key) { return now(level_->get(std::to_string(key))).has_value(); }

  static std::string name() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }
  // Labels come in the order of their names.
  double metric(const std::string& metric_name, const std::string& label = "",
                const std::string& value = "") {
    std::string labels = "cache=\"" + name() + "\"";
    const std::string more = label + "=\"" + value + "\"";
    if (!label.empty()) labels = label < "cache" ? more + "," + labels : labels + "," + more;
    return series(metric_name + "{" + labels + "}");
  }

  SimulatedTime time_;
  TextStore store_;
  boost::asio::io_context io_;
  std::shared_ptr<MemoryRemote> level_ = std::make_shared<MemoryRemote>(level_options());
  std::vector<std::unique_ptr<TextCache>> nodes_;
};

}  // namespace weir::cache

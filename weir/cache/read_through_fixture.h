// For the tests of this folder: a store in memory and a ReadThrough before it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "weir/cache/read_through.h"
#include "weir/cache/test_loop.h"

namespace weir::cache {

using TextCache = ReadThrough<int, std::string>;

inline std::shared_ptr<const std::string> text(const std::string& t) {
  return std::make_shared<const std::string>(t);
}

inline double series(const std::string& line_start) {
  const std::string all = telemetry::scrape();
  const auto at = all.find(line_start + " ");
  return at == std::string::npos ? -1 : std::stod(all.substr(at + line_start.size()));
}

// A store whose loads can be held up, refused and counted.
struct TextStore {
  std::map<int, std::string> rows;
  int loads = 0, bulk_loads = 0;
  bool failing = false;
  std::shared_ptr<Gate> hold;  // loads read, then wait for it: the worst moment for a write

  TextCache::Load load() {
    return [this](int key) -> boost::asio::awaitable<std::optional<std::string>> {
      ++loads;
      std::optional<std::string> row;
      if (const auto at = rows.find(key); at != rows.end()) row = at->second;
      const bool fails = failing;
      if (const auto held = hold) co_await held->wait();
      if (fails) throw Unavailable("the store is away");
      co_return row;
    };
  }
  TextCache::BulkLoad bulk_load() {
    return [this](std::vector<int> keys) -> boost::asio::awaitable<std::vector<std::pair<int, std::string>>> {
      ++bulk_loads;
      std::vector<std::pair<int, std::string>> found;
      for (const int key : keys)
        if (const auto at = rows.find(key); at != rows.end()) found.emplace_back(*at);
      if (const auto held = hold) co_await held->wait();
      if (failing) throw Unavailable("the store is away");
      co_return found;
    };
  }
  void hold_loads() { hold = std::make_shared<Gate>(); }
  void let_go() {
    const auto held = std::exchange(hold, nullptr);
    held->open([] {});
  }
};

class ReadThroughTest : public testing::Test {
 protected:
  TextCache::Options options() {
    return {.name = testing::UnitTest::GetInstance()->current_test_info()->name(),
            .ttl = std::chrono::minutes(1),
            .jitter = 0,
            .clock = &clock_};
  }
  void make(TextCache::Options given) { cache_.emplace(std::move(given), store_.load(), io_.get_executor()); }
  void SetUp() override {
    store_.rows = {{1, "one"}, {2, "two"}, {3, "three"}};
    make(options());
  }
  std::future<TextCache::Found> start(int key) { return start_on(io_.get_executor(), cache_->get(key)); }
  TextCache::Found get(int key) {
    auto read = start(key);
    return finish(io_, read);
  }
  std::string metric(const std::string& name, const std::string& labels) {
    return name + "{cache=\"" + options().name + "\"" + labels + "}";
  }
  double lookups(const std::string& level, const std::string& result) {
    return series(metric("weir_cache_lookups_total", ",level=\"" + level + "\",result=\"" + result + "\""));
  }
  double loads(const std::string& outcome) {
    return series(metric("weir_cache_loads_total", ",outcome=\"" + outcome + "\""));
  }

  ManualClock clock_;
  boost::asio::io_context io_;
  TextStore store_;
  std::optional<TextCache> cache_;
};

}  // namespace weir::cache

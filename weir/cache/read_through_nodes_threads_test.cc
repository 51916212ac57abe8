// Several nodes over one remote level with real threads: readers, writers, and a level that fails now and then.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <thread>

#include "weir/cache/memory_remote.h"
#include "weir/cache/read_through.h"
#include "weir/cache/test_loop.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Cache = ReadThrough<int, std::string>;
constexpr std::size_t kNodes = 2, kKeys = 3;

struct Threads : testing::Test {
  using Versions = std::array<std::atomic<std::int64_t>, kKeys>;

  Cache::Options options() {
    return {.name = "node_threads",
            .ttl = 3ms,
            .soft_ttl = 1ms,
            .early_refresh = 1,
            .load_timeout = 20s,
            .bulk_load = [this](std::vector<int> keys) { return load_many(std::move(keys)); },
            .remote = {.level = level, .codec = text_codec<int>(), .retry_first = 1ms, .retry_last = 2ms}};
  }
  asio::awaitable<std::optional<std::string>> load(int key) {
    const std::int64_t row = rows[static_cast<std::size_t>(key)];
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    if (row == 0) co_return std::nullopt;
    co_return std::to_string(row);
  }
  asio::awaitable<std::vector<std::pair<int, std::string>>> load_many(std::vector<int> keys) {
    std::vector<std::pair<int, std::string>> found;
    for (const int key : keys)
      if (auto row = co_await load(key)) found.emplace_back(key, std::move(*row));
    co_return found;
  }
  static std::int64_t version(const Cache::Found& found) { return found ? std::stoll(*found) : 0; }

  asio::awaitable<void> read(std::size_t node, std::uint64_t chance) {
    Random random(chance);
    while (!stop) {
      const int key = static_cast<int>(random.below(kKeys));
      const std::int64_t least = done[node][static_cast<std::size_t>(key)];
      try {
        auto found = caches[node]->find(key);
        if (!found) found = co_await caches[node]->get(key);
        stale += version(*found) < least ? 1 : 0;
        ++reads;
      } catch (const Unavailable&) {
        ++refused;
      }
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    }
  }
  asio::awaitable<void> write(std::size_t node, std::uint64_t chance) {
    Random random(chance);
    for (int i = 0; i < 300; ++i) {
      const int key = static_cast<int>(random.below(kKeys));
      const auto at = static_cast<std::size_t>(key);
      auto writing = co_await caches[node]->begin_write(key);
      const std::int64_t row = ++rows[at];
      if (!co_await writing.invalidate()) continue;
      for (auto last = done[node][at].load();
           last < row && !done[node][at].compare_exchange_weak(last, row);) {
      }
      if (i % 2 == 0) co_await writing.publish(std::make_shared<const std::string>(std::to_string(row)));
      co_await pause(100us);
    }
  }

  const std::uint64_t seed = secure_random64();
  const std::shared_ptr<MemoryRemote> level =
      std::make_shared<MemoryRemote>(MemoryRemoteOptions{.ttl = 20ms, .negative_ttl = 2ms, .lease_ttl = 20s});
  Versions rows{};
  std::array<Versions, kNodes> done{};
  std::atomic<bool> stop{false};
  std::atomic<int> reads{0}, refused{0}, stale{0};
  std::array<std::unique_ptr<Cache>, kNodes> caches;
};

using ReadThroughNodesConcurrency = Threads;

TEST_F(ReadThroughNodesConcurrency, NobodyOnTheWritersNodeSeesThePast) {
  SCOPED_TRACE(seed);
  asio::thread_pool loads(2);
  for (auto& cache : caches)
    cache = std::make_unique<Cache>(options(), [this](int key) { return load(key); }, loads.get_executor());
  std::deque<ThreadLoop> loops(3);
  std::vector<std::future<void>> readers, writers;
  for (std::uint64_t i = 0; i < 8; ++i)
    readers.push_back(start_on(loops[i % loops.size()].executor(), read(i % kNodes, seed + i)));
  for (std::uint64_t i = 0; i < 4; ++i)
    writers.push_back(start_on(loops[i % loops.size()].executor(), write(i % kNodes, seed + 100 + i)));
  std::thread weather([&] {
    for (int i = 0; !stop; ++i) {
      level->set_trouble({.refuses = i % 4 == 1, .loses_replies = i % 4 == 3});
      std::this_thread::sleep_for(5ms);
    }
  });
  for (auto& writer : writers) writer.get();
  stop = true;
  weather.join();
  level->set_trouble({});
  for (auto& reader : readers) reader.get();
  for (auto& cache : caches) cache->stop();
  loads.join();
  EXPECT_EQ(stale, 0);
  EXPECT_GT(reads, 100);
}

}  // namespace
}  // namespace weir::cache

// The guarded read against every order of events that a seeded scheduler can think of, and against threads.
#include <gtest/gtest.h>

#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <map>

#include "weir/cache/read_through.h"
#include "weir/cache/test_loop.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// A row is its version; 0 is "no row". Versions only grow, so "stale" is a smaller number.
using Cache = ReadThrough<int, std::int64_t>;
constexpr int kKeys = 3;

struct World {
  explicit World(std::uint64_t seed) : random(seed) {
    cache.emplace(Cache::Options{.name = "model",
                                 .ttl = 50ms,
                                 .jitter = 0.2,
                                 .negative_ttl = 10ms,
                                 .soft_ttl = random.chance(0.5) ? 20ms : 0ms,
                                 .load_timeout = 1h,
                                 .bulk_load = bulk(),
                                 .clock = &clock},
                  load(), io.get_executor());
  }
  ~World() {
    for (auto& held : loads) held->open([] {});
    turn(io);
    turn(io);
  }

  // A load reads at its beginning or at its end, and takes as long as the scheduler likes.
  asio::awaitable<std::int64_t> read(int key) {
    const bool early = random.chance(0.7);
    const std::int64_t before = rows[key];
    auto held = std::make_shared<Gate>();
    loads.push_back(held);
    co_await held->wait();
    if (random.chance(0.15)) throw Unavailable("the store is away");
    co_return early ? before : rows[key];
  }
  Cache::Load load() {
    return [this](int key) -> asio::awaitable<std::optional<std::int64_t>> {
      const auto started = std::pair{key, writes[key]};
      EXPECT_LE(++under_way[started], 1) << "a second load of one key between two writes";
      std::exception_ptr error;
      std::optional<std::int64_t> row;
      try {
        if (const auto version = co_await read(key); version != 0) row = version;
      } catch (const Unavailable&) {
        error = std::current_exception();
      }
      --under_way[started];
      if (error) std::rethrow_exception(error);
      co_return row;
    };
  }
  Cache::BulkLoad bulk() {
    return [this](std::vector<int> keys) -> asio::awaitable<std::vector<std::pair<int, std::int64_t>>> {
      std::vector<std::pair<int, std::int64_t>> found;
      for (const int key : keys)
        if (const auto version = co_await read(key); version != 0) found.emplace_back(key, version);
      co_return found;
    };
  }

  // Checks the promise to a reader: at least what was written and invalidated before it came.
  void check(const Cache::Found& found, std::int64_t least, int key) {
    const std::int64_t version = found ? *found : 0;
    ASSERT_GE(version, least) << "stale read of key " << key;
    ++reads;
  }
  void start_reader(int key) {
    asio::co_spawn(io, cache->get(key),
                   [this, key, least = done[key]](std::exception_ptr error, Cache::Found found) {
                     --readers;
                     if (!error) check(found, least, key);
                   });
    ++readers;
  }
  void start_bulk_reader() {
    static const std::vector<int> all{0, 1, 2};
    asio::co_spawn(io, cache->get_all(all),
                   [this, least = done](std::exception_ptr error, std::vector<Cache::Found> found) mutable {
                     --readers;
                     for (int key = 0; !error && key < kKeys; ++key)
                       check(found[static_cast<std::size_t>(key)], least[key], key);
                   });
    ++readers;
  }
  void write(int key) {
    ++rows[key];
    dirty[key] = true;
  }
  void finish_write(int key) {
    if (!dirty[key]) return;
    turn(io);  // so that loads that were asked for before the write have begun before it
    const std::int64_t version = rows[key];
    // Three ways to end a write: drop, drop and publish ahead, write through.
    switch (random.below(3)) {
      case 0:
        cache->invalidate(key);
        break;
      case 1: {
        auto lease = cache->lease(key);
        cache->invalidate(key, lease);
        cache->fill(key, std::move(lease), std::make_shared<const std::int64_t>(version));
        break;
      }
      default:
        cache->update(key, [&](const std::int64_t& old) {
          return std::make_shared<const std::int64_t>(std::max(old, version));
        });
    }
    ++writes[key];
    dirty[key] = false;
    done[key] = version;
  }
  void end_a_load() {
    if (loads.empty()) return;
    std::swap(loads[random.below(loads.size())], loads.back());
    loads.back()->open([] {});
    loads.pop_back();
  }

  void step() {
    const int key = static_cast<int>(random.below(kKeys));
    switch (random.below(9)) {
      case 0:
      case 1:
        start_reader(key);
        break;
      case 2:
        if (random.chance(0.3)) start_bulk_reader();
        break;
      case 3:
        if (const auto found = cache->find(key)) check(*found, done[key], key);
        break;
      case 4:
        if (random.chance(0.4)) write(key);
        break;
      case 5:
        finish_write(key);
        break;
      case 6:
        clock.advance(std::chrono::milliseconds(random.below(10)));
        break;
      default:
        end_a_load();
    }
    if (random.chance(0.8)) {
      turn(io);
    } else {
      io.restart();
      io.poll_one();
    }
  }

  Random random;
  ManualClock clock;
  asio::io_context io;
  std::map<int, std::int64_t> rows, done, writes;
  std::map<int, bool> dirty;
  std::map<std::pair<int, std::int64_t>, int> under_way;
  std::deque<std::shared_ptr<Gate>> loads;
  int readers = 0, reads = 0;
  std::optional<Cache> cache;
};

TEST(ReadThroughModel, NoStaleReadNoLostWaiterNoSecondLoad) {
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t seed = secure_random64();
    SCOPED_TRACE(seed);
    World world(seed);
    for (int step = 0; step < 500; ++step) {
      world.step();
      if (testing::Test::HasFatalFailure()) return;
    }
    for (int i = 0; i < 1000 && world.readers > 0; ++i) {
      turn(world.io);
      world.end_a_load();
    }
    ASSERT_EQ(world.readers, 0) << "somebody waits for ever";
    ASSERT_GT(world.reads, 50);
    if (testing::Test::HasFailure()) return;
  }
}

// The same promise with real threads: a writer that bumps the row and then invalidates, readers on several
// threads.
TEST(ReadThroughConcurrency, ReadersOnManyThreadsNeverSeeThePast) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  asio::thread_pool loads(2);
  std::array<std::atomic<std::int64_t>, kKeys> rows{}, done{};
  std::atomic<int> load_count{0};
  Cache cache(
      {.name = "threads", .ttl = 2ms, .soft_ttl = 1ms, .load_timeout = 30s},
      [&](int key) -> asio::awaitable<std::optional<std::int64_t>> {
        ++load_count;
        const std::int64_t row = rows[static_cast<std::size_t>(key)];
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
        if (row == 0) co_return std::nullopt;
        co_return row;
      },
      loads.get_executor());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Random random(seed);
    for (int i = 0; i < 3000; ++i) {
      const int key = static_cast<int>(random.below(kKeys));
      const auto at = static_cast<std::size_t>(key);
      auto lease = cache.lease(key);
      const std::int64_t version = ++rows[at];
      const auto value = std::make_shared<const std::int64_t>(version);
      if (i % 3 == 0) {
        cache.update(key, [&](const std::int64_t&) { return value; });
      } else {
        cache.invalidate(key, lease);
        if (i % 3 == 1) cache.fill(key, std::move(lease), value);
      }
      done[at] = version;
      if (i % 16 == 0) std::this_thread::sleep_for(200us);
    }
    stop = true;
  });
  std::deque<ThreadLoop> loops(3);
  std::vector<std::future<void>> readers;
  readers.reserve(12);
  for (std::uint64_t reader = 0; reader < 12; ++reader) {
    readers.push_back(
        start_on(loops[reader % loops.size()].executor(), [&, reader]() -> asio::awaitable<void> {
          Random random(seed + 1 + reader);
          while (!stop) {
            const int key = static_cast<int>(random.below(kKeys));
            const std::int64_t least = done[static_cast<std::size_t>(key)];
            auto found = cache.find(key);
            if (!found) found = co_await cache.get(key);
            EXPECT_GE(*found ? **found : 0, least);
            co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
          }
        }));
  }
  for (auto& reader : readers) reader.get();
  writer.join();
  loads.join();
  EXPECT_GT(load_count, 0);
}

TEST(ReadThroughConcurrency, ExactlyOneLoadForReadersOnFourThreads) {
  ManualClock clock;
  asio::thread_pool loads(2);
  std::atomic<int> count{0};
  Cache cache(
      {.name = "one", .ttl = 1s, .jitter = 0, .load_timeout = 30s, .clock = &clock},
      [&](int) -> asio::awaitable<std::optional<std::int64_t>> {
        ++count;
        co_await pause(1ms);
        co_return 7;
      },
      loads.get_executor());
  std::deque<ThreadLoop> loops(4);
  for (int round = 1; round <= 100; ++round) {
    std::vector<std::future<Cache::Found>> readers;
    readers.reserve(100);
    for (int i = 0; i < 100; ++i)
      readers.push_back(start_on(loops[static_cast<std::size_t>(i) % 4].executor(), cache.get(1)));
    for (auto& reader : readers) EXPECT_EQ(*reader.get(), 7);
    ASSERT_EQ(count, round);  // also for those who looked before a load's end and entered after it
    clock.advance(1s);
  }
  loads.join();
}

}  // namespace
}  // namespace weir::cache

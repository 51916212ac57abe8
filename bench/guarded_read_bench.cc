// What the guarded read promises beside speed: memory, no slow call, one load for a crowd, a hit without overhead.
//
// usage: guarded_read_bench memory ENTRIES | inserts flat|shared | stampede | find
//
// `memory` wants a process of its own: it compares the allocator's books before and after. Each prints JSON, which
// bench/guard.py makes rows of.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/zipf.h"
#include "weir/base/clock.h"
#include "weir/cache/local_cache.h"
#include "weir/cache/read_through.h"

namespace {
// Allocations of this thread by `new`.
thread_local std::uint64_t allocations = 0;
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t /*size*/) noexcept {
  std::free(block);
}

namespace {

namespace asio = boost::asio;
namespace cache = weir::cache;
using namespace std::chrono_literals;
using Watch = std::chrono::steady_clock;
using Key = std::uint64_t;
using Flat = cache::FlatCache<Key, std::uint64_t>;
using Shared = cache::LocalCache<Key, std::uint64_t>;

// The compiler must believe that somebody needs it.
void use(std::uint64_t value) {
  asm volatile("" : : "r"(value) : "memory");
}

double nanoseconds(Watch::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// --- memory

// What the allocator has handed out, its own words and the kernel's mappings included.
double allocated_bytes() {
  const auto books = ::mallinfo2();
  return static_cast<double>(books.uordblks + books.hblkhd);
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

boost::json::object memory(std::uint64_t entries) {
  (void)resident_bytes();  // the stream's own first needs
  const double allocated = allocated_bytes(), resident = resident_bytes();
  const auto full =
      std::make_unique<Flat>(cache::LocalCacheOptions{.capacity = entries, .bound = cache::Bound::weights});
  // Twice as many come, as in any cache that has been in use for a while; every second one is asked for.
  for (Key key = 0; key < 2 * entries; ++key) {
    full->put(key, key);
    if (key % 2 == 0) use(full->find(key).has_value() ? 1 : 0);
  }
  const double held = allocated_bytes() - allocated, touched = resident_bytes() - resident;
  return {{"entries", full->size()}, {"allocated", held}, {"resident", touched}};
}

// --- inserts

double clock_cost() {
  std::vector<double> times(100'001);
  auto last = Watch::now();
  for (double& time : times) {
    const auto now = Watch::now();
    time = nanoseconds(now - last);
    last = now;
  }
  std::ranges::nth_element(times, times.begin() + 50'000);
  return times[50'000];
}

// Fills an empty cache to its capacity and far beyond; the time of each call. The same calls in each of some rounds,
// in caches with the same seed, so that each does the same work: a call's time is its median. Thus what happens to
// a call by chance (the tick of the kernel's timer takes 25 us on some machines, and there is one every 6,000 calls)
// goes, and what the cache does in it stays.
template <class Cache, class Put>
std::vector<double> insert_times(cache::LocalCacheOptions options, std::size_t calls, Put put) {
  constexpr std::size_t kRounds = 5;
  options.seed = 1;
  const double clock = clock_cost();
  std::vector<std::array<float, kRounds>> rounds(calls);
  for (std::size_t round = 0; round < kRounds; ++round) {
    Cache cache(options);
    auto last = Watch::now();
    for (Key key = 0; key < calls; ++key) {
      put(cache, key);
      const auto now = Watch::now();
      rounds[key][round] = static_cast<float>(std::max(nanoseconds(now - last) - clock, 1.0));
      last = now;
    }
  }
  std::vector<double> times;
  times.reserve(calls);
  for (auto& each : rounds) {
    std::ranges::sort(each);
    times.push_back(each[kRounds / 2]);
  }
  return times;
}

boost::json::object inserts(std::string_view kind) {
  constexpr std::uint64_t kEntries = 1'000'000, kCalls = 4 * kEntries;
  std::vector<double> times;
  if (kind == "flat") {
    times = insert_times<Flat>({.capacity = kEntries, .bound = cache::Bound::weights}, kCalls,
                               [](Flat& flat, Key key) { flat.put(key, key); });
  } else {
    // Bounded by bytes, with a TTL, as ReadThrough has it; values that are there already.
    const auto value = std::make_shared<const std::uint64_t>(7);
    const std::size_t capacity = kEntries * (Shared::kEntryOverhead + sizeof(std::uint64_t));
    times = insert_times<Shared>({.capacity = capacity}, kCalls, [&](Shared& shared, Key key) {
      shared.put(key, value, sizeof(std::uint64_t), 10min);
    });
  }
  std::ranges::sort(times);
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(kCalls - 1))];
  };
  return {{"calls", kCalls}, {"median", at(0.5)}, {"p99", at(0.99)}, {"p9999", at(0.9999)}, {"worst", at(1)}};
}

// --- stampede

// All 10,000 are there before the threads begin, so that what is measured is the serving and not the arriving.
boost::json::object stampede() {
  constexpr int kReaders = 10'000;
  constexpr auto kLoadTime = 50ms;
  std::atomic<int> loads{0}, asking{0}, asking_at_end{0};
  std::atomic<Watch::rep> load_end{0}, last_served{0};
  const auto now = [] { return Watch::now().time_since_epoch().count(); };
  const auto load = [&](Key /*key*/) -> asio::awaitable<std::optional<int>> {
    ++loads;
    asio::steady_timer timer(co_await asio::this_coro::executor, kLoadTime);
    co_await timer.async_wait(asio::use_awaitable);
    asking_at_end = asking.load();
    load_end = now();
    co_return 42;
  };
  asio::thread_pool background(1);
  weir::ManualClock clock;
  cache::ReadThrough<Key, int> guarded({.name = "bench", .ttl = 10s, .jitter = 0, .clock = &clock}, load,
                                       background.get_executor());
  const auto read = [&]() -> asio::awaitable<void> {
    ++asking;
    const auto found = co_await guarded.get(1);
    if (!found || *found != 42) std::abort();
    const Watch::rep served = now();
    for (Watch::rep last = last_served; last < served && !last_served.compare_exchange_weak(last, served);) {
    }
  };
  const auto crowd = [&](int readers) {
    asio::io_context io(2);
    for (int i = 0; i < readers; ++i) asio::co_spawn(io, read(), asio::detached);
    std::thread other([&] { io.run(); });
    io.run();
    other.join();
  };
  crowd(1);            // fills it
  clock.advance(10s);  // and now it has expired
  loads = asking = 0;
  crowd(kReaders);
  guarded.stop();
  background.join();
  const auto late = Watch::duration(last_served - load_end);
  return {{"loads", loads.load()}, {"waiting", asking_at_end.load()}, {"last_ms", nanoseconds(late) / 1e6}};
}

// --- find

using weir::bench::kKeys;
using weir::bench::zipf;

template <class Find>
double pass(const std::vector<std::uint32_t>& keys, Find find) {
  std::uint64_t found = 0;
  const auto began = Watch::now();
  for (const Key key : keys) found += find(key) ? 1 : 0;
  const auto took = Watch::now() - began;
  if (found != keys.size()) std::abort();  // all of them are in the cache
  return nanoseconds(took) / static_cast<double>(keys.size());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// ReadThrough::find beside the find of a LocalCache that holds the same, in turn. A second LocalCache has no TTLs.
boost::json::object find() {
  constexpr int kRounds = 15;
  constexpr std::size_t kCapacity = std::size_t{256} << 20;
  asio::thread_pool background(1);
  cache::ReadThrough<Key, std::uint64_t> guarded(
      {.name = "bench", .capacity = kCapacity, .ttl = 1h},
      [](Key key) -> asio::awaitable<std::optional<std::uint64_t>> { co_return key; },
      background.get_executor());
  Shared bare({.capacity = kCapacity}), timeless({.capacity = kCapacity});
  for (Key key = 0; key < kKeys; ++key) {
    guarded.fill(key, guarded.lease(key), std::make_shared<const std::uint64_t>(key));
    bare.put(key, std::make_shared<const std::uint64_t>(key), sizeof(std::uint64_t), 1h);
    timeless.put(key, std::make_shared<const std::uint64_t>(key), sizeof(std::uint64_t));
  }
  const auto keys = zipf(1);
  std::vector<double> ours, theirs, without, ratios;
  std::uint64_t allocated = 0;
  for (int round = 0; round < kRounds; ++round) {
    theirs.push_back(pass(keys, [&](Key key) { return bare.find(key) != nullptr; }));
    const std::uint64_t before = allocations;
    const double ours_now = pass(keys, [&](Key key) {
      const auto hit = guarded.find(key);
      return hit && *hit;
    });
    allocated += allocations - before;
    ours.push_back(ours_now);
    without.push_back(pass(keys, [&](Key key) { return timeless.find(key) != nullptr; }));
    ratios.push_back(ours.back() / theirs.back());
  }
  guarded.stop();
  background.join();
  return {{"guarded", median(ours)},
          {"bare", median(theirs)},
          {"timeless", median(without)},
          {"ratio", median(ratios)},
          {"allocations", allocated}};
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "";
  const std::string_view how = count > 2 ? arguments[2] : "";
  boost::json::object result;
  if (what == "memory" && count > 2) {
    result = memory(std::strtoull(arguments[2], nullptr, 10));
  } else if (what == "inserts" && (how == "flat" || how == "shared")) {
    result = inserts(how);
  } else if (what == "stampede") {
    result = stampede();
  } else if (what == "find") {
    result = find();
  } else {
    std::fputs("usage: guarded_read_bench memory ENTRIES | inserts flat|shared | stampede | find\n", stderr);
    return 2;
  }
  std::puts(boost::json::serialize(result).c_str());
}

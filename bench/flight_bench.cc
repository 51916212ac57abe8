// A hundred readers ask at once for an entry that has just expired, and a load takes 50 ms: how often is it
// loaded through ReadThrough, and how often when each reader loads for himself.
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "bench/rows.h"
#include "weir/base/id.h"
#include "weir/cache/read_through.h"

namespace {

namespace asio = boost::asio;
using weir::Id;

constexpr int kReaders = 100;
constexpr std::chrono::milliseconds kLoadTime{50};
std::atomic<int> loads{0};

asio::awaitable<std::optional<int>> load(Id /*key*/) {
  ++loads;
  asio::steady_timer timer(co_await asio::this_coro::executor, kLoadTime);
  co_await timer.async_wait(asio::use_awaitable);
  co_return 42;
}

template <class Read>
int loads_of(Read read) {
  loads = 0;
  asio::thread_pool threads(2);
  for (int i = 0; i < kReaders; ++i) asio::co_spawn(threads, read(), asio::detached);
  threads.join();
  return loads;
}

}  // namespace

int main() {
  asio::thread_pool background(1);
  weir::ManualClock clock;
  weir::cache::ReadThrough<Id, int> cache(
      {.name = "bench", .ttl = std::chrono::seconds(10), .jitter = 0, .clock = &clock}, load,
      background.get_executor());
  const auto guarded = [&]() -> asio::awaitable<void> { co_await cache.get(1); };
  loads_of(guarded);                        // fills it
  clock.advance(std::chrono::seconds(10));  // and now it has expired
  const int with = loads_of(guarded);
  const int without = loads_of([]() -> asio::awaitable<void> { co_await load(1); });
  cache.stop();
  background.join();
  weir::bench::print(
      {{"loads of an expired entry, 100 readers", "loads", double(with), "without single flight",
        double(without), double(without) / with, 100.0, with == 1 && without == kReaders}});
}

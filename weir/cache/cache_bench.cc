// What a hit costs: the bare local cache, and the guarded read on top of it; one thread and two.
#include <benchmark/benchmark.h>

#include <boost/asio/io_context.hpp>
#include <string>

#include "weir/cache/read_through.h"

namespace weir::cache {
namespace {

constexpr int kKeys = 131'072;

using Local = LocalCache<std::int64_t, std::string>;
using Guarded = ReadThrough<std::int64_t, std::string>;

Local& local() {
  static Local* cache = [] {
    auto* made = new Local({.capacity = std::size_t{256} << 20});
    for (int key = 0; key < kKeys; ++key)
      made->put(key, std::make_shared<const std::string>("value"), 64, std::chrono::hours(1));
    return made;
  }();
  return *cache;
}

Guarded& guarded() {
  static boost::asio::io_context io;
  static Guarded* cache = [] {
    const auto nothing = [](std::int64_t) -> boost::asio::awaitable<std::optional<std::string>> {
      co_return std::nullopt;
    };
    auto* made =
        new Guarded({.name = "bench", .capacity = std::size_t{256} << 20}, nothing, io.get_executor());
    for (int key = 0; key < kKeys; ++key)
      made->fill(key, made->lease(key), std::make_shared<const std::string>("value"));
    return made;
  }();
  return *cache;
}

// `range(0)` keys are read at random: 1 is the hottest of hot keys.
template <class Find>
void run(benchmark::State& state, Find find) {
  Random random(static_cast<std::uint64_t>(state.thread_index()) + 1);
  const auto keys = static_cast<std::uint64_t>(state.range(0));
  for (auto step : state) {
    (void)step;
    benchmark::DoNotOptimize(find(static_cast<std::int64_t>(random.below(keys))));
  }
}

void local_find(benchmark::State& state) {
  auto& cache = local();
  run(state, [&](std::int64_t key) { return cache.find(key); });
}
void guarded_find(benchmark::State& state) {
  auto& cache = guarded();
  run(state, [&](std::int64_t key) { return cache.find(key); });
}

BENCHMARK(local_find)->Arg(1)->Arg(1000)->Arg(kKeys)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(guarded_find)->Arg(1)->Arg(1000)->Arg(kKeys)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace weir::cache

// LocalCache under the loads of bench/peers/crates: keys by Zipf's law, all of them in the cache. Prints
// millions of operations a second.
// usage: local_cache_bench flat|shared THREADS WRITES_OF_4 SECONDS
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/zipf.h"
#include "weir/cache/local_cache.h"

namespace {

using Clock = std::chrono::steady_clock;
using weir::bench::kKeys;
using weir::bench::kSequence;
using weir::bench::zipf;

template <class V, class Make>
double run(unsigned threads, std::size_t writes, double seconds, Make make) {
  weir::cache::FlatCache<std::uint64_t, V> cache(
      {.capacity = 2 * kKeys, .bound = weir::cache::Bound::weights});
  for (std::uint64_t key = 0; key < kKeys; ++key) cache.put(key, make(key));
  std::atomic<bool> stop{false};
  std::barrier start(threads + 1);
  std::vector<double> rates(threads);
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      const auto keys = zipf(100 + t);
      std::size_t done = 0, found = 0;
      start.arrive_and_wait();
      const auto began = Clock::now();
      while (!stop.load(std::memory_order_relaxed)) {
        for (int i = 0; i < 1024; ++i, ++done) {
          const std::uint64_t key = keys[done % kSequence];
          if (done % 4 < writes) {
            cache.put(key, make(key));
          } else {
            found += cache.find(key) ? 1 : 0;
          }
        }
      }
      if (found <= done / 2) std::abort();  // the keys are all in the cache
      rates[t] =
          static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - began).count() / 1e6;
    });
  start.arrive_and_wait();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  double sum = 0;
  for (unsigned t = 0; t < threads; ++t) {
    workers[t].join();
    sum += rates[t];
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto threads = static_cast<unsigned>(std::stoul(argv[2]));
  const std::size_t writes = std::stoul(argv[3]);
  const double seconds = std::stod(argv[4]);
  const bool flat = std::string(argv[1]) == "flat";
  const double rate =
      flat ? run<std::uint64_t>(threads, writes, seconds, [](std::uint64_t key) { return key; })
           : run<std::shared_ptr<const std::string>>(threads, writes, seconds, [](std::uint64_t key) {
               return std::make_shared<const std::string>("value " + std::to_string(key));
             });
  std::printf("%g\n", rate);
}

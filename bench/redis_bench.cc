// How many reads a second 64 coroutines do on one connection. usage: redis_bench PORT SECONDS get|remote
//   get     GET, as redis-benchmark does it
//   remote  RemoteCache::get, which also tells what is left of the TTL
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "weir/cache/remote_cache.h"
#include "weir/redis/client.h"

namespace {

namespace asio = boost::asio;
namespace redis = weir::redis;
using Clock = std::chrono::steady_clock;

constexpr int kCoroutines = 64;
constexpr const char* kKey = "key:__rand_int__";  // redis-benchmark's own

struct Bench {
  asio::io_context& io;
  redis::Client& client;
  weir::cache::RemoteCache& remote;
  bool through_remote;
  Clock::time_point end{};
  long reads = 0;
  int running = kCoroutines;

  asio::awaitable<void> read() {
    while (Clock::now() < end) {
      const bool there = through_remote
                             ? (co_await remote.get(kKey)).has_value()
                             : !(co_await client.execute(redis::Command::read("GET", kKey))).is_nil();
      if (!there) {
        std::fputs("the value is gone\n", stderr);
        std::exit(1);
      }
      ++reads;
    }
    if (--running == 0) client.stop();
  }

  asio::awaitable<void> run(std::chrono::milliseconds time) {
    co_await client.execute(redis::Command("SET", kKey, "xxx"));
    co_await remote.put(kKey, "xxx");
    end = Clock::now() + time;
    for (int i = 0; i < kCoroutines; ++i) asio::co_spawn(io, read(), asio::detached);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: redis_bench PORT SECONDS get|remote\n", stderr);
    return 2;
  }
  const auto time = std::chrono::milliseconds(static_cast<long>(1000 * std::atof(argv[2])));
  asio::io_context io(1);
  redis::Client client(io.get_executor(),
                       {.address = {.port = static_cast<std::uint16_t>(std::atoi(argv[1]))},
                        .name = "bench",
                        .timeout = std::chrono::seconds(5)});
  weir::cache::RemoteCache remote(client, {.name = "bench", .timeout = std::chrono::seconds(5)});
  Bench bench{io, client, remote, std::string_view(argv[3]) == "remote"};
  asio::co_spawn(io, bench.run(time), asio::detached);
  io.run();
  std::printf("{\"rate\": %.0f}\n",
              1000.0 * static_cast<double>(bench.reads) / static_cast<double>(time.count()));
}

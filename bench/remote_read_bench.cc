// How many reads a second hit the remote cache and not the local one: ReadThrough over RemoteCache, each of some
// connections with one read under way. usage: remote_read_bench PORT SECONDS CONNECTIONS
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "weir/cache/read_through.h"
#include "weir/cache/remote_cache.h"
#include "weir/redis/client.h"

namespace {

namespace asio = boost::asio;
namespace redis = weir::redis;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Cache = weir::cache::ReadThrough<std::int64_t, std::string>;

constexpr std::int64_t kKeys = 1'000;

// A connection with all that stands on it.
struct Reader {
  Reader(asio::io_context& io, std::uint16_t port)
      : client(io.get_executor(), {.address = {.port = port}, .name = "bench", .timeout = 5s}),
        cache(
            {.name = "bench",
             .capacity = 0,  // every read is a miss here
             .remote = {.level = std::make_shared<weir::cache::RemoteCache>(
                            client, weir::cache::RemoteCacheOptions{.name = "bench", .timeout = 5s}),
                        .codec = weir::cache::text_codec<std::int64_t>()}},
            [this](std::int64_t) -> asio::awaitable<std::optional<std::string>> {
              ++loads;
              co_return std::string(100, 'x');
            },
            io.get_executor()) {}

  asio::awaitable<void> warm() {
    for (std::int64_t key = 0; key < kKeys; ++key) co_await cache.get(key);
    loads = 0;
  }
  asio::awaitable<void> read(Clock::time_point end) {
    for (std::int64_t key = 0; Clock::now() < end; ++reads) co_await cache.get(++key % kKeys);
  }

  redis::Client client;
  Cache cache;
  long reads = 0, loads = 0;
};

asio::awaitable<void> run(std::vector<std::unique_ptr<Reader>>& readers, std::chrono::milliseconds time) {
  for (auto& reader : readers) co_await reader->warm();
  const auto end = Clock::now() + time;
  for (auto& reader : readers)
    asio::co_spawn(
        co_await asio::this_coro::executor,
        [](Reader& one, Clock::time_point until) -> asio::awaitable<void> {
          co_await one.read(until);
          one.client.stop();
        }(*reader, end),
        asio::detached);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: remote_read_bench PORT SECONDS CONNECTIONS\n", stderr);
    return 2;
  }
  const auto time = std::chrono::milliseconds(static_cast<long>(1000 * std::atof(argv[2])));
  asio::io_context io(1);
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < std::atoi(argv[3]); ++i)
    readers.push_back(std::make_unique<Reader>(io, static_cast<std::uint16_t>(std::atoi(argv[1]))));
  asio::co_spawn(io, run(readers, time), asio::detached);
  io.run_for(time + 20s);
  long reads = 0, loads = 0;
  for (const auto& reader : readers) {
    reads += reader->reads;
    loads += reader->loads;
  }
  if (loads > 0) {
    std::fputs("some reads missed the remote cache\n", stderr);
    return 1;
  }
  std::printf("{\"rate\": %.0f}\n", 1000.0 * static_cast<double>(reads) / static_cast<double>(time.count()));
}

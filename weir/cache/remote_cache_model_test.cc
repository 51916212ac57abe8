// The lease of RemoteCache against stale fills: readers, writers and accidents in an order that a seed decides,
// step by step over the real scripts on a real server; and the same with threads.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "weir/base/random.h"
#include "weir/cache/remote_cache.h"
#include "weir/redis/client_fixture.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using redis::Command;
using namespace std::chrono_literals;
using Hit = RemoteCache::Hit;
using Lease = RemoteCache::Lease;

redis::TestServer& server() {
  static redis::TestServer one;
  return one;
}

// A row is its version, 0 is "no row"; versions only grow, so "stale" is a smaller number.
class World {
 public:
  enum class Fault { none, fills_under_any_lease, forgets_to_void };

  World(RemoteCache& cache, redis::Client& client, std::uint64_t seed, Fault fault)
      : cache_(cache), client_(client), random_(seed), keys_(1 + random_.below(2)), fault_(fault) {}

  // The number of stale answers.
  asio::awaitable<int> run(int steps) {
    co_await client_.execute(Command("FLUSHALL"));
    for (int i = 0; i < steps; ++i) co_await step();
    co_return stale_;
  }

 private:
  struct Reader {
    int key;
    std::optional<Lease> lease;  // none: loads without the permission to fill
    bool has_read = false;
    std::int64_t read = 0;
  };
  struct Writer {
    int key;
    std::optional<Lease> lease;
    int stage = 0;
    std::int64_t wrote = 0;
  };

  static std::string name(int key) { return "key" + std::to_string(key); }

  asio::awaitable<void> step() {
    const int key = static_cast<int>(random_.below(keys_));
    const auto dice = random_.below(100);
    if (dice < 25) {
      co_await look(key);
    } else if (dice < 55 && !readers_.empty()) {
      co_await go_on(readers_);
    } else if (dice < 65 && writers_.size() < 3) {
      writers_.push_back({key, {}});
    } else if (dice < 92 && !writers_.empty()) {
      co_await go_on(writers_);
    } else {
      co_await accident(key);
    }
  }

  // Whoever is asked is never told less than the last version whose write has ended by then.
  void check(int key, const std::optional<std::string>& value) {
    const std::int64_t version = value ? std::stoll(*value) : 0;
    if (version < ended_[key]) ++stale_;
  }

  asio::awaitable<void> look(int key) {
    const auto dice = random_.below(10);
    if (dice < 3) {
      if (const auto hit = co_await cache_.get(name(key))) check(key, hit->value);
      co_return;
    }
    if (dice < 5) {
      // A refresh: whether or not a value is there.
      if (auto lease = co_await cache_.lease(name(key))) readers_.push_back({key, std::move(lease)});
      co_return;
    }
    auto answer = co_await cache_.get_or_lease(name(key));
    if (auto* hit = std::get_if<Hit>(&answer)) check(key, hit->value);
    if (auto* lease = std::get_if<Lease>(&answer)) readers_.push_back({key, std::move(*lease)});
  }

  template <class Actors>
  asio::awaitable<void> go_on(Actors& actors) {
    const auto at = random_.below(actors.size());
    auto actor = std::move(actors[at]);
    actors.erase(actors.begin() + static_cast<std::ptrdiff_t>(at));
    if (co_await advance(actor)) actors.push_back(std::move(actor));
  }

  asio::awaitable<bool> advance(Reader& reader) {
    if (!reader.has_read) {
      reader.read = rows_[reader.key];
      reader.has_read = true;
      co_return true;
    }
    if (random_.chance(0.1)) {
      co_await cache_.release(name(reader.key), *reader.lease);
      co_return false;
    }
    co_await fill(reader.key, *reader.lease, reader.read);
    co_return false;
  }

  asio::awaitable<bool> advance(Writer& writer) {
    switch (writer.stage++) {
      case 0:
        if (random_.chance(0.6)) writer.lease = co_await cache_.take_over(name(writer.key));
        co_return true;
      case 1:
        rows_[writer.key] = writer.wrote = ++last_version_;
        co_return true;
      case 2:
        if (fault_ == Fault::forgets_to_void) {
          co_await client_.execute(Command("UNLINK", cache_.value_name(name(writer.key))));
        } else if (writer.lease) {
          co_await cache_.remove(name(writer.key), *writer.lease);
        } else {
          co_await cache_.remove(name(writer.key));
        }
        // From here on nobody may be told anything older.
        ended_[writer.key] = std::max(ended_[writer.key], writer.wrote);
        co_return writer.lease.has_value();
      default:
        co_await fill(writer.key, *writer.lease, writer.wrote);
        co_return false;
    }
  }

  asio::awaitable<void> fill(int key, Lease lease, std::int64_t version) {
    if (fault_ == Fault::fills_under_any_lease) {
      const auto reply = co_await client_.execute(Command("GET", cache_.lease_name(name(key))));
      if (const auto token = reply.optional_text()) lease.token = *token;
    }
    if (version == 0) {
      co_await cache_.fill_absent(name(key), lease, 1h);
    } else {
      co_await cache_.fill(name(key), lease, std::to_string(version), 1h);
    }
  }

  asio::awaitable<void> accident(int key) {
    switch (random_.below(5)) {
      case 0:
        co_await client_.execute(Command("FLUSHALL"));
        break;
      case 1:
        co_await client_.execute(Command("SCRIPT", "FLUSH"));
        break;
      case 2:  // the lease runs out, or is evicted
        co_await client_.execute(Command("DEL", cache_.lease_name(name(key))));
        break;
      case 3:  // the value is
        co_await client_.execute(Command("DEL", cache_.value_name(name(key))));
        break;
      default:  // a reader dies with its lease
        if (!readers_.empty()) readers_.pop_front();
    }
  }

  RemoteCache& cache_;
  redis::Client& client_;
  Random random_;
  const std::uint64_t keys_;
  const Fault fault_;
  std::int64_t last_version_ = 0;
  std::map<int, std::int64_t> rows_;   // the store
  std::map<int, std::int64_t> ended_;  // the last version whose write has dropped the key
  std::deque<Reader> readers_;
  std::deque<Writer> writers_;
  int stale_ = 0;
};

struct RemoteCacheModel : testing::Test {
  int stale(std::uint64_t seed, World::Fault fault = World::Fault::none) {
    World world(cache, client, seed, fault);
    return loop.run(world.run(250));
  }

  IoThreads loop{1};
  redis::Client client{loop.executor(), {.address = server().address(), .timeout = 10s}};
  RemoteCache cache{client, {.name = "model", .timeout = 10s}};
};

TEST_F(RemoteCacheModel, NoInterleavingFillsAStaleValue) {
  const std::uint64_t first = secure_random64();
  for (std::uint64_t seed = first; seed < first + 200; ++seed) ASSERT_EQ(stale(seed), 0) << "seed " << seed;
}

// The model must be able to fail: without the check of the token, and without the voiding, it does.
TEST_F(RemoteCacheModel, CatchesALeaseThatDoesntGuard) {
  for (const auto fault : {World::Fault::fills_under_any_lease, World::Fault::forgets_to_void}) {
    int caught = 0;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) caught += stale(seed, fault) > 0 ? 1 : 0;
    EXPECT_GE(caught, 10) << "fault " << static_cast<int>(fault);
  }
}

// Nodes with clients and threads of their own. What a reader is told is never older than the last write that had
// ended when it asked.
TEST(RemoteCacheConcurrency, NoNodeIsToldWhatIsOlderThanAnEndedWrite) {
  IoThreads nodes[2] = {IoThreads(1), IoThreads(1)};
  redis::Client clients[2] = {
      redis::Client(nodes[0].executor(), {.address = server().address(), .timeout = 10s}),
      redis::Client(nodes[1].executor(), {.address = server().address(), .timeout = 10s})};
  const RemoteCacheOptions options{.name = "threads", .timeout = 10s, .look_first = 1ms};
  RemoteCache caches[2] = {RemoteCache(clients[0], options), RemoteCache(clients[1], options)};
  nodes[0].run(caches[0].remove("row"));
  std::atomic<std::int64_t> row{1}, ended{1};
  std::atomic<int> stale{0}, hits{0};
  const auto read = [&](RemoteCache& cache) -> asio::awaitable<void> {
    for (int i = 0; i < 300; ++i) {
      const std::int64_t least = ended;
      auto answer = co_await cache.get_or_wait("row", 100ms);
      if (const auto* hit = std::get_if<Hit>(&answer)) {
        ++hits;
        if (std::stoll(*hit->value) < least) ++stale;
        continue;
      }
      const std::int64_t version = row;
      if (i % 8 == 0) co_await redis::pause(1ms);  // a slow load
      if (auto* lease = std::get_if<Lease>(&answer))
        co_await cache.fill("row", std::move(*lease), std::to_string(version));
    }
  };
  const auto write = [&](RemoteCache& cache) -> asio::awaitable<void> {
    for (int i = 0; i < 100; ++i) {
      std::optional<Lease> lease;
      if (i % 2 == 0) lease = co_await cache.take_over("row");
      const std::int64_t version = ++row;
      if (lease) {
        co_await cache.remove("row", *lease);
      } else {
        co_await cache.remove("row");
      }
      for (auto last = ended.load(); last < version && !ended.compare_exchange_weak(last, version);) {
      }
      if (lease) co_await cache.fill("row", std::move(*lease), std::to_string(version));
      co_await redis::pause(1ms);
    }
  };
  std::vector<std::future<void>> all;
  for (int i = 0; i < 8; ++i) all.push_back(nodes[i % 2].start(read(caches[i % 2])));
  for (int i = 0; i < 2; ++i) all.push_back(nodes[i].start(write(caches[i])));
  for (auto& one : all) one.get();
  EXPECT_EQ(stale, 0);
  EXPECT_GT(hits, 100);
}

}  // namespace
}  // namespace weir::cache

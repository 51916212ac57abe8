// RemoteCache under the contract of all remote levels, against a real server.
#include "weir/cache/remote_cache.h"
#include "weir/cache/remote_level_fixture.h"
#include "weir/testing/redis_cluster.h"
#include "weir/testing/redis_server.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

// `Servers`: where, and how all of it is emptied.
template <class Servers>
struct InRedis {
  std::shared_ptr<RemoteLevel> make(ContractOptions options) {
    servers.flush();
    return level = std::make_shared<RemoteCache>(
               connection, RemoteCacheOptions{.name = "contract",
                                              .ttl = options.ttl,
                                              .lease_ttl = options.lease_ttl,
                                              .timeout = 10s,
                                              .max_value_bytes = options.max_value_bytes});
  }
  void plant_foreign(const std::string& key) {
    for (const auto& name : {level->value_name(key), level->lease_name(key)}) {
      client.run(connection.execute(redis::Command("DEL", name)));
      client.run(connection.execute(redis::Command("LPUSH", name, "x")));
    }
  }
  std::shared_ptr<RemoteCache> level;
  Servers& servers = Servers::the();
  IoThreads client{1};
  redis::Client connection{client.executor(), servers.options()};
};

struct OneServer {
  static OneServer& the() {
    static OneServer one;
    return one;
  }
  redis::Options options() { return {.address = server.address(), .timeout = 10s}; }
  void flush() {
    IoThreads loop(1);
    redis::Client client(loop.executor(), options());
    loop.run(client.execute(redis::Command("FLUSHALL")));
  }
  redis::TestServer server;
};

// Three primaries that share the keys.
struct ACluster {
  static ACluster& the() {
    static ACluster one;
    return one;
  }
  redis::Options options() { return {.seeds = cluster.seeds(), .timeout = 10s}; }
  void flush() { cluster.flush(); }
  redis::TestCluster cluster;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Redis, RemoteLevelContract, InRedis<OneServer>);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisCluster, RemoteLevelContract, InRedis<ACluster>);

}  // namespace
}  // namespace weir::cache

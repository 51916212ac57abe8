// RemoteCache under the contract of all remote levels, against a real server.
#include "weir/cache/remote_cache.h"
#include "weir/cache/remote_level_fixture.h"
#include "weir/testing/redis_server.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

struct InRedis {
  std::shared_ptr<RemoteLevel> make(ContractOptions options) {
    client.run(connection.execute(redis::Command("FLUSHALL")));
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
  IoThreads client{1};
  redis::Client connection{client.executor(), {.address = server().address(), .timeout = 10s}};
  static redis::TestServer& server() {
    static redis::TestServer one;
    return one;
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Redis, RemoteLevelContract, InRedis);

}  // namespace
}  // namespace weir::cache

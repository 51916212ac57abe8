// One suite for every DropFeed; then what only Redis can do wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "weir/base/random.h"
#include "weir/cache/memory_drop_feed.h"
#include "weir/cache/redis_drop_feed.h"
#include "weir/redis/client_fixture.h"
#include "weir/testing/redis_cluster.h"

namespace weir::cache {
namespace {

using namespace std::chrono_literals;

using redis::soon;

// What one listener was told, "!" for each `missed`.
struct Heard {
  DropFeed::Listener listener() {
    return {.heard =
                [this](const std::vector<std::string>& keys) {
                  const std::lock_guard lock(mutex);
                  all.insert(all.end(), keys.begin(), keys.end());
                },
            .missed =
                [this] {
                  const std::lock_guard lock(mutex);
                  all.emplace_back("!");
                }};
  }
  std::vector<std::string> now() const {
    const std::lock_guard lock(mutex);
    return all;
  }
  bool is(const std::vector<std::string>& wanted) const {
    return soon([&] { return now() == wanted; });
  }
  void forget() {
    const std::lock_guard lock(mutex);
    all.clear();
  }
  mutable std::mutex mutex;
  std::vector<std::string> all;
};

// Two nodes and the air between them.
struct World {
  virtual ~World() = default;
  virtual DropFeed& node(std::size_t i) = 0;
  virtual void run(boost::asio::awaitable<void> work) { run_here(std::move(work)); }
  // Nothing gets through, and later something does again.
  virtual void cut() = 0;
  virtual void mend() = 0;
};

struct MemoryWorld : World {
  DropFeed& node(std::size_t i) override { return *nodes[i]; }
  void cut() override { air->lose(); }
  void mend() override {
    air->mend();
    air->interrupt();
  }
  std::shared_ptr<MemoryDropFeed::Air> air = std::make_shared<MemoryDropFeed::Air>();
  std::array<std::unique_ptr<MemoryDropFeed>, 2> nodes{std::make_unique<MemoryDropFeed>(air),
                                                       std::make_unique<MemoryDropFeed>(air)};
};

struct RedisWorld : World {
  RedisWorld() {
    for (std::size_t i = 0; i < 2; ++i) {
      clients[i] = std::make_unique<redis::Client>(
          loop.executor(),
          redis::Options{
              .address = server.address(), .backoff_first = 1ms, .backoff_max = 20ms, .fail_fast = true});
      nodes[i] = std::make_unique<RedisDropFeed>(*clients[i], loop.executor(),
                                                 redis::SubscriberOptions{.address = server.address(),
                                                                          .channel = "drops",
                                                                          .ping_every = 20ms,
                                                                          .silence_limit = 200ms,
                                                                          .backoff_first = 1ms,
                                                                          .backoff_max = 20ms});
    }
    wait();
  }
  void wait() {
    EXPECT_TRUE(soon([&] {
      return std::ranges::all_of(nodes, [](const auto& one) { return one->connected(); }) &&
             std::ranges::all_of(clients, [](const auto& one) { return one->connected(); });
    }));
  }
  DropFeed& node(std::size_t i) override { return *nodes[i]; }
  // Not on a context that ends with the call: the client's thread may still be letting go of it.
  void run(boost::asio::awaitable<void> work) override { loop.run(std::move(work)); }
  void cut() override {
    server.kill();
    EXPECT_TRUE(soon([&] { return !nodes[0]->connected() && !nodes[1]->connected(); }));
  }
  void mend() override {
    server.start();
    wait();
  }
  redis::TestServer server;
  IoThreads loop{2};
  std::array<std::unique_ptr<redis::Client>, 2> clients;
  std::array<std::unique_ptr<RedisDropFeed>, 2> nodes;
};

using MakeWorld = std::function<std::unique_ptr<World>()>;
struct DropFeedConcurrency : testing::TestWithParam<std::pair<const char*, MakeWorld>> {
  void SetUp() override { world_ = GetParam().second(); }
  void tell(std::size_t i, std::string cache, std::vector<std::string> keys) {
    world_->run(world_->node(i).tell(std::move(cache), std::move(keys)));
  }
  std::unique_ptr<World> world_;
};

TEST_P(DropFeedConcurrency, TheOthersHearInOrderAndOnlyTheirCache) {
  Heard here, there, another;
  const auto a = world_->node(0).listen("article", here.listener());
  const auto b = world_->node(1).listen("article", there.listener());
  const auto c = world_->node(1).listen("user", another.listener());
  tell(0, "article", {"1", "2"});
  tell(0, "user", {"7"});
  tell(0, "nobody's", {"8"});
  tell(0, "article", {std::string("a:b,\0\r\n", 7)});
  tell(0, "article", {""});
  tell(0, "article", {});
  EXPECT_TRUE(there.is({"1", "2", std::string("a:b,\0\r\n", 7), "", "!"}));
  EXPECT_TRUE(another.is({"7"}));
  tell(1, "article", {"back"});
  EXPECT_TRUE(here.is({"back"}));
  EXPECT_EQ(there.now().size(), 5u);
}

TEST_P(DropFeedConcurrency, ManyKeysArriveWhole) {
  Heard there;
  const auto listening = world_->node(1).listen("article", there.listener());
  std::vector<std::string> keys;
  for (int i = 0; i < 20'000; ++i)
    keys.push_back("a rather long key, of which there are many " + std::to_string(i));
  tell(0, "article", keys);
  EXPECT_TRUE(there.is(keys));
}

TEST_P(DropFeedConcurrency, WhatIsCutOffIsMissed) {
  Heard there;
  const auto listening = world_->node(1).listen("article", there.listener());
  tell(0, "article", {"before"});
  EXPECT_TRUE(there.is({"before"}));
  world_->cut();
  EXPECT_THROW(tell(0, "article", {"lost"}), Unavailable);
  world_->mend();
  EXPECT_TRUE(there.is({"before", "!"}));
  tell(0, "article", {"after"});
  EXPECT_TRUE(there.is({"before", "!", "after"}));
}

TEST_P(DropFeedConcurrency, NobodyIsCalledOnceHisListeningHasEnded) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> ended{false}, late{false};
    Heard other;
    const auto stays = world_->node(1).listen("article", other.listener());
    auto listening = world_->node(1).listen(
        "article", {.heard = [&](const auto&) { late = late || ended; }, .missed = [] {}});
    std::thread teller([&] {
      for (int i = 0; i < 20; ++i) tell(0, "article", {std::to_string(i)});
    });
    listening.reset();
    ended = true;
    teller.join();
    EXPECT_TRUE(soon([&] { return other.now().size() == 20; }));
    EXPECT_FALSE(late);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DropFeedConcurrency,
    testing::Values(
        std::pair<const char*, MakeWorld>{"memory", [] { return std::make_unique<MemoryWorld>(); }},
        std::pair<const char*, MakeWorld>{"redis", [] { return std::make_unique<RedisWorld>(); }}),
    [](const auto& row) { return row.param.first; });

TEST(RedisDropFeedConcurrency, WhatNobodyUnderstandsMayHaveMattered) {
  RedisWorld world;
  Heard there;
  const auto listening = world.node(1).listen("article", there.listener());
  const auto publish = [&](const std::string& text) {
    world.loop.run(world.clients[0]->execute(redis::Command("PUBLISH", "drops", text)));
  };
  for (const char* text : {"", "nonsense", "1:a,", "1:a,7:article", "1:a,7:article,3:12"}) publish(text);
  EXPECT_TRUE(there.is({"!", "!", "!", "!", "!"}));
  publish("1:a,7:article,2:12,");
  EXPECT_TRUE(there.is({"!", "!", "!", "!", "!", "12"}));
}

// Each node of ours listens at some node of the cluster; when that one dies it has missed something, and goes on.
TEST(RedisDropFeedConcurrency, GoesOnAtAnotherNodeOfTheCluster) {
  redis::TestCluster cluster;
  IoThreads loop{2};
  redis::Client client(loop.executor(), {.seeds = cluster.seeds(), .timeout = 5s});
  const redis::SubscriberOptions quick{.channel = "drops",
                                       .ping_every = 50ms,
                                       .silence_limit = 300ms,
                                       .backoff_first = 1ms,
                                       .backoff_max = 50ms};
  RedisDropFeed two(client, loop.executor(), quick);
  Heard there;
  const auto listening = two.listen("article", there.listener());
  ASSERT_TRUE(soon([&] { return two.connected(); }));
  std::size_t its_node = 0;
  while (cluster.ask(its_node, {"PUBSUB", "NUMSUB", "drops"}).array()[1].integer() == 0) ++its_node;
  RedisDropFeed one(client, loop.executor(), quick);
  there.forget();  // its own beginning, if it was told of that
  loop.run(one.tell("article", {"1", "2"}));
  ASSERT_TRUE(there.is({"1", "2"}));
  cluster.node(its_node).kill();
  const auto heard = [&](const std::string& what) {
    const auto all = there.now();
    return std::ranges::find(all, what) != all.end();
  };
  EXPECT_TRUE(soon([&] { return heard("!"); }));
  EXPECT_TRUE(soon([&] {
    loop.run(one.tell("article", {"3"}));
    return heard("3");
  }));
}

TEST(Netstrings, AreReadAsTheyWereWritten) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::string> parts(random.below(5));
    for (auto& part : parts) {
      part.resize(random.below(20));
      for (char& c : part) c = static_cast<char>("0123456789:,\0\xff"[random.below(14)]);
    }
    const std::string message = write_netstrings(parts);
    EXPECT_EQ(read_netstrings(message), parts);
    for (std::size_t cut = 1; cut < message.size(); ++cut) {
      const auto shorter = read_netstrings(std::string_view(message).substr(0, cut));
      EXPECT_LT(shorter.size(), parts.size());
    }
  }
  for (const char* damaged :
       {":", ",", "1", "1:", "1:a", "1:ab", "2:a,", "-1:a,", "1:a,x", "99999999999999999999:a,"})
    EXPECT_TRUE(read_netstrings(damaged).empty()) << damaged;
}

}  // namespace
}  // namespace weir::cache

#include "weir/cache/remote_cache.h"

#include <gtest/gtest.h>

#include "weir/redis/client_fixture.h"
#include "weir/telemetry/metrics.h"
#include "weir/testing/redis_cluster.h"

namespace weir::cache {
namespace {

namespace asio = boost::asio;
using redis::Command;
using redis::soon;
using namespace std::chrono_literals;
using Hit = RemoteCache::Hit;
using Lease = RemoteCache::Lease;
using Held = RemoteCache::Held;

redis::TestServer& server() {
  static redis::TestServer one;
  return one;
}

struct RemoteCacheTest : testing::Test {
  RemoteCacheTest() { redis(Command("FLUSHALL")); }

  redis::Reply redis(Command command) { return loop.run(client.execute(std::move(command))); }
  std::optional<Hit> get(const std::string& key) { return loop.run(cache.get(key)); }
  Lease lease_of(const std::string& key) { return std::get<Lease>(loop.run(cache.get_or_lease(key))); }
  bool holds(const std::string& key, const std::string& value) {
    const auto hit = get(key);
    return hit && hit->value == value;
  }

  IoThreads loop{1};
  redis::Client client{loop.executor(), {.address = server().address(), .timeout = 5s}};
  RemoteCache cache{client, {.name = "article", .version = 3, .jitter = 0, .timeout = 5s}};
};

TEST_F(RemoteCacheTest, ValueAbsenceAndNothingAreThreeAnswers) {
  EXPECT_FALSE(get("a"));
  loop.run(cache.put("a", std::string("x\0\r\n", 4)));
  loop.run(cache.put("empty", ""));
  loop.run(cache.put_absent("gone"));
  EXPECT_TRUE(holds("a", std::string("x\0\r\n", 4)));
  EXPECT_TRUE(holds("empty", ""));
  const auto gone = get("gone");
  ASSERT_TRUE(gone);
  EXPECT_FALSE(gone->value);
  loop.run(cache.put("gone", "back"));  // creation clears an absence
  EXPECT_TRUE(holds("gone", "back"));
  loop.run(cache.remove("a"));
  EXPECT_FALSE(get("a"));
}

TEST_F(RemoteCacheTest, ManyAnswersComeInTheKeysOrder) {
  loop.run(cache.put("a", "1"));
  loop.run(cache.put_absent("c"));
  redis(Command("LPUSH", cache.value_name("d"), "x"));
  const auto looks = loop.run(cache.get_many({"a", "b", "c", "a", "d", "", std::string(513, 'k')}));
  ASSERT_EQ(looks.size(), 7U);
  EXPECT_EQ(std::get<Hit>(looks[0]).value, "1");
  EXPECT_TRUE(std::holds_alternative<RemoteCache::Unknown>(looks[1]));
  EXPECT_FALSE(std::get<Hit>(looks[2]).value);
  EXPECT_EQ(std::get<Hit>(looks[3]).value, "1");
  const std::string fault = std::get<KeyFault>(looks[4]).what();
  EXPECT_NE(fault.find(cache.value_name("d")), std::string::npos) << fault;
  EXPECT_TRUE(std::holds_alternative<KeyFault>(looks[5]));
  EXPECT_TRUE(std::holds_alternative<KeyFault>(looks[6]));
  EXPECT_TRUE(loop.run(cache.get_many({})).empty());
  EXPECT_TRUE(std::holds_alternative<KeyFault>(loop.run(cache.get_many({""})).front()));
}

// A value that is kept for a second by one writer and for an hour by the next must not be told with the other's time.
TEST_F(RemoteCacheTest, ValueAndTtlAreOfOneMoment) {
  std::atomic<bool> stop{false};
  IoThreads writing(1);
  redis::Client writer(writing.executor(), {.address = server().address(), .timeout = 5s});
  const auto write = [&]() -> asio::awaitable<void> {
    while (!stop) {
      co_await writer.execute(Command("SET", cache.value_name("a"), "Vshort", "PX", 60'000));
      co_await writer.execute(Command("SET", cache.value_name("a"), "Vlong", "PX", 3'600'000));
    }
  };
  auto writes = writing.start(write());
  int seen = 0, torn = 0;
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  // Other keys between the two make the pipeline long, so that they were often torn apart.
  std::vector<std::string> keys;
  for (int i = 0; i < 1'000; ++i) keys.push_back("other" + std::to_string(i));
  keys.emplace_back("a");
  while (seen < 200 && std::chrono::steady_clock::now() < give_up) {
    const auto looks = loop.run(cache.get_many(keys));
    const auto* hit = std::get_if<Hit>(&looks.back());
    if (hit == nullptr) continue;
    ++seen;
    torn += (hit->value == "short") != (hit->left <= 60s) ? 1 : 0;
  }
  stop = true;
  writes.get();
  EXPECT_GT(seen, 0);
  EXPECT_EQ(torn, 0);
}

TEST_F(RemoteCacheTest, EverythingHasATtlOfItsOwn) {
  loop.run(cache.put("a", "1", 20s));
  loop.run(cache.put_absent("b"));
  loop.run(cache.fill("c", lease_of("c"), "3"));
  EXPECT_LE(get("a")->left, 20s);
  EXPECT_GT(get("a")->left, 15s);
  EXPECT_LE(get("b")->left, 5s);
  EXPECT_LE(get("c")->left, 10min);
  EXPECT_GT(get("c")->left, 9min);
  // Never zero, never for ever.
  loop.run(cache.put("zero", "1", 0ms));
  loop.run(cache.put("negative", "1", -5s));
  loop.run(cache.put("endless", "1", RemoteCache::Millis::max()));
  EXPECT_GT(get("endless")->left, 24h * 300);
  EXPECT_TRUE(soon([&] { return !get("zero") && !get("negative"); }));
}

TEST_F(RemoteCacheTest, TtlsAreJittered) {
  RemoteCache jittering(client, {.name = "jitter", .jitter = 0.5, .timeout = 5s});
  RemoteCache::Millis least = 1h, most = 0ms;
  for (int i = 0; i < 100; ++i) {
    loop.run(jittering.put("a", "1", 100s));
    const auto left = loop.run(jittering.get("a"))->left;
    least = std::min(least, left);
    most = std::max(most, left);
  }
  EXPECT_LT(least, 80s);
  EXPECT_GT(most, 120s);
  EXPECT_GE(least, 49s);
  EXPECT_LE(most, 150s);
}

TEST_F(RemoteCacheTest, NamesCarryVersionAndType) {
  loop.run(cache.put("7", "x"));
  EXPECT_EQ(redis(Command("GET", "weir:v3:article:{7}")).text(), "Vx");
  RemoteCache newer(client, {.name = "article", .version = 4});
  RemoteCache other(client, {.name = "user", .version = 3});
  EXPECT_FALSE(loop.run(newer.get("7")));
  EXPECT_FALSE(loop.run(other.get("7")));
  EXPECT_THROW(RemoteCache(client, {.name = ""}), std::invalid_argument);
  EXPECT_THROW(RemoteCache(client, {.name = "a:b"}), std::invalid_argument);
  EXPECT_THROW(RemoteCache(client, {.name = "a", .prefix = "{"}), std::invalid_argument);
  EXPECT_THROW(get(""), std::invalid_argument);
  EXPECT_THROW(get(std::string(513, 'k')), std::invalid_argument);
  EXPECT_THROW(get("}8"), std::invalid_argument);
  // No key's value is another key's lease.
  lease_of("8");
  EXPECT_FALSE(get("8}:lease"));
}

TEST_F(RemoteCacheTest, OneLeaseAKey) {
  const Lease mine = lease_of("a");
  const auto second = loop.run(cache.get_or_lease("a"));
  ASSERT_TRUE(std::holds_alternative<Held>(second));
  EXPECT_GT(std::get<Held>(second).left, 4s);
  EXPECT_LE(std::get<Held>(second).left, 5s);
  EXPECT_TRUE(std::holds_alternative<Lease>(loop.run(cache.get_or_lease("b"))));
  EXPECT_TRUE(loop.run(cache.fill("a", mine, "1")));
  EXPECT_EQ(std::get<Hit>(loop.run(cache.get_or_lease("a"))).value, "1");
  // Used up: a second fill under it is refused.
  EXPECT_FALSE(loop.run(cache.fill("a", mine, "2")));
  EXPECT_TRUE(holds("a", "1"));
}

TEST_F(RemoteCacheTest, InvalidationVoidsTheLease) {
  const Lease before = lease_of("a");
  loop.run(cache.remove("a"));
  const Lease after = lease_of("a");  // free at once
  EXPECT_FALSE(loop.run(cache.fill("a", before, "stale")));
  EXPECT_FALSE(get("a"));
  EXPECT_TRUE(loop.run(cache.fill("a", after, "fresh")));
  EXPECT_FALSE(loop.run(cache.fill_absent("a", before)));
  EXPECT_TRUE(holds("a", "fresh"));
}

TEST_F(RemoteCacheTest, PutVoidsTheLeaseToo) {
  const Lease before = lease_of("a");
  loop.run(cache.put("a", "newer"));
  EXPECT_FALSE(loop.run(cache.fill("a", before, "stale")));
  EXPECT_TRUE(holds("a", "newer"));
}

TEST_F(RemoteCacheTest, LeaseThatWasLostIsVoid) {
  const Lease flushed = lease_of("a");
  redis(Command("FLUSHALL"));
  EXPECT_FALSE(loop.run(cache.fill("a", flushed, "x")));
  RemoteCache hasty(client, {.name = "hasty", .lease_ttl = 1ms, .timeout = 5s});
  const auto ran_out = std::get<Lease>(loop.run(hasty.get_or_lease("a")));
  EXPECT_TRUE(soon([&] { return redis(Command("EXISTS", hasty.lease_name("a"))).integer() == 0; }));
  EXPECT_FALSE(loop.run(hasty.fill("a", ran_out, "x")));
  EXPECT_FALSE(loop.run(cache.fill("a", Lease{}, "x")));  // none was ever given
  EXPECT_FALSE(get("a"));
}

TEST_F(RemoteCacheTest, ReleasedLeaseIsFree) {
  const Lease first = lease_of("a");
  loop.run(cache.release("a", first));
  const Lease second = lease_of("a");
  loop.run(cache.release("a", first));  // not its own any more
  EXPECT_TRUE(loop.run(cache.fill("a", second, "1")));
}

TEST_F(RemoteCacheTest, RefreshTakesTheLeaseBesideTheValue) {
  loop.run(cache.put("a", "old"));
  const auto mine = loop.run(cache.lease("a"));
  ASSERT_TRUE(mine);
  EXPECT_FALSE(loop.run(cache.lease("a")));
  EXPECT_TRUE(holds("a", "old"));  // served meanwhile
  EXPECT_TRUE(loop.run(cache.fill("a", *mine, "new")));
  EXPECT_TRUE(holds("a", "new"));
  const auto late = loop.run(cache.lease("a"));
  loop.run(cache.remove("a"));
  EXPECT_FALSE(loop.run(cache.fill("a", *late, "stale")));
}

TEST_F(RemoteCacheTest, WriterPublishesAheadUnlessAnotherWrote) {
  const Lease reader = lease_of("a");
  const Lease writer = loop.run(cache.take_over("a"));
  EXPECT_FALSE(loop.run(cache.fill("a", reader, "stale")));
  EXPECT_TRUE(loop.run(cache.remove("a", writer)));
  EXPECT_TRUE(loop.run(cache.fill("a", writer, "1")));

  // Two writers at once: neither knows whose value is the last, so neither publishes.
  const Lease one = loop.run(cache.take_over("a"));
  const Lease two = loop.run(cache.take_over("a"));
  EXPECT_FALSE(loop.run(cache.remove("a", one)));
  EXPECT_FALSE(loop.run(cache.remove("a", two)));
  EXPECT_FALSE(loop.run(cache.fill("a", one, "2")));
  EXPECT_FALSE(loop.run(cache.fill("a", two, "3")));
  EXPECT_FALSE(get("a"));
}

TEST_F(RemoteCacheTest, ManyAtOnce) {
  loop.run(cache.put("a", "1"));
  lease_of("b");
  auto answers = loop.run(cache.get_or_lease_many({"a", "b", "c", "d"}));
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_TRUE(std::holds_alternative<Hit>(answers[0]));
  EXPECT_TRUE(std::holds_alternative<Held>(answers[1]));
  std::vector<RemoteCache::Fill> fills;
  fills.push_back({"c", std::get<Lease>(answers[2]), "3"});
  fills.push_back({"d", std::get<Lease>(answers[3]), std::nullopt});
  fills.push_back({"b", Lease{"guessed"}, "2"});
  EXPECT_EQ(loop.run(cache.fill_many(std::move(fills))), (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(holds("c", "3"));
  EXPECT_FALSE(get("d")->value);
  EXPECT_FALSE(get("b"));
  loop.run(cache.remove_many({"a", "c", "d"}));
  EXPECT_FALSE(get("a") || get("c") || get("d"));
}

TEST_F(RemoteCacheTest, HeavyValuesAreNotKept) {
  RemoteCache small(client, {.name = "small", .timeout = 5s, .max_value_bytes = 3});
  const auto get_small = [&] { return loop.run(small.get("a")); };
  loop.run(small.put("a", "123"));
  ASSERT_TRUE(get_small());
  loop.run(small.put("a", "1234"));  // what is there is old, so it goes
  EXPECT_FALSE(get_small());
  const auto lease = std::get<Lease>(loop.run(small.get_or_lease("a")));
  EXPECT_FALSE(loop.run(small.fill("a", lease, "1234")));
  const auto next = loop.run(small.get_or_lease("a"));
  ASSERT_TRUE(std::holds_alternative<Lease>(next));  // given back
  std::vector<RemoteCache::Fill> fills;
  fills.push_back({"a", std::get<Lease>(next), "1234"});
  EXPECT_EQ(loop.run(small.fill_many(std::move(fills))), std::vector<bool>{false});
  EXPECT_TRUE(std::holds_alternative<Lease>(loop.run(small.get_or_lease("a"))));
}

TEST_F(RemoteCacheTest, DamagedValuesAreNothing) {
  for (const char* bytes : {"", "X", "Nx", "weird"}) {
    redis(Command("SET", cache.value_name("a"), bytes));
    EXPECT_FALSE(get("a")) << bytes;
    EXPECT_TRUE(loop.run(cache.fill("a", lease_of("a"), "good"))) << bytes;
    EXPECT_TRUE(holds("a", "good"));
  }
}

// What the contract tells of both at once, told apart: a value, or a lease, of another type.
TEST_F(RemoteCacheTest, ValueOrLeaseOfAnotherType) {
  const auto foreign = [&](const std::string& key, bool value) {
    redis(Command("DEL", cache.value_name(key), cache.lease_name(key)));
    redis(Command("SADD", value ? cache.value_name(key) : cache.lease_name(key), "x"));
  };
  for (const bool value : {true, false}) {
    foreign("a", value);
    EXPECT_THROW(loop.run(cache.get_or_lease("a")), KeyFault);
    EXPECT_THROW(loop.run(cache.peek("a")), KeyFault);
    loop.run(cache.put("a", "put"));
    EXPECT_TRUE(holds("a", "put"));
    EXPECT_TRUE(loop.run(cache.lease("a")));
    foreign("a", value);
    loop.run(cache.put_absent("a"));
    EXPECT_FALSE(get("a")->value);
    foreign("a", value);
    loop.run(cache.put("a", std::string(2 << 20, 'x')));  // too heavy: removed
    EXPECT_TRUE(loop.run(cache.fill("a", lease_of("a"), "1")));
    foreign("a", value);
    EXPECT_FALSE(loop.run(cache.remove("a", Lease{"guessed"})));
    EXPECT_TRUE(loop.run(cache.fill("a", lease_of("a"), "1")));
  }
  foreign("a", true);
  EXPECT_THROW(get("a"), KeyFault);
  const auto refresh = loop.run(cache.lease("a"));
  EXPECT_TRUE(loop.run(cache.fill("a", *refresh, "mended")));
  EXPECT_TRUE(holds("a", "mended"));
  foreign("a", false);
  EXPECT_FALSE(get("a"));
  EXPECT_THROW(loop.run(cache.lease("a")), KeyFault);  // it may never run out: nobody's turn would come
  EXPECT_THROW(loop.run(cache.release("a", Lease{"guessed"})), KeyFault);
  EXPECT_FALSE(loop.run(cache.fill("a", Lease{"guessed"}, "x")));
}

TEST_F(RemoteCacheTest, ScriptsComeBackAfterAFlush) {
  for (int i = 0; i < 3; ++i) {
    redis(Command("SCRIPT", "FLUSH"));
    const Lease lease = lease_of("a");
    redis(Command("SCRIPT", "FLUSH"));
    EXPECT_TRUE(loop.run(cache.fill("a", lease, "1")));
    redis(Command("SCRIPT", "FLUSH"));
    EXPECT_FALSE(loop.run(cache.remove("a", lease)));
  }
}

TEST_F(RemoteCacheTest, WaitsForWhoLoads) {
  const Lease mine = lease_of("a");
  auto waiting = loop.start(cache.get_or_wait("a", 4s));
  auto impatient = loop.run(cache.get_or_wait("a", 10ms));
  EXPECT_TRUE(std::holds_alternative<Held>(impatient));
  EXPECT_TRUE(loop.run(cache.fill("a", mine, "1")));
  EXPECT_EQ(std::get<Hit>(waiting.get()).value, "1");
  // A load that failed: the next one's turn.
  const Lease failed = lease_of("b");
  auto next = loop.start(cache.get_or_wait("b", 4s));
  loop.run(cache.release("b", failed));
  EXPECT_TRUE(std::holds_alternative<Lease>(next.get()));
}

TEST_F(RemoteCacheTest, ClusterLoadsOnce) {
  redis::Client other_client(loop.executor(), {.address = server().address(), .timeout = 5s});
  RemoteCache other_node(other_client, {.name = "article", .version = 3, .timeout = 5s});
  int loads = 0;
  const auto read = [&](RemoteCache& node) -> asio::awaitable<std::string> {
    auto answer = co_await node.get_or_wait("hot", 5s);
    if (auto* hit = std::get_if<Hit>(&answer)) co_return *hit->value;
    ++loads;
    co_await redis::pause(50ms);
    if (auto* lease = std::get_if<Lease>(&answer)) co_await node.fill("hot", *lease, "loaded");
    co_return "loaded";
  };
  std::vector<std::future<std::string>> all;
  for (int i = 0; i < 200; ++i) all.push_back(loop.start(read(i % 2 == 0 ? cache : other_node)));
  for (auto& one : all) EXPECT_EQ(one.get(), "loaded");
  EXPECT_EQ(loads, 1);
}

TEST_F(RemoteCacheTest, FailureIsNeitherMissNorAbsence) {
  redis::TestServer paused;
  redis::Client there(loop.executor(), {.address = paused.address()});
  RemoteCache away(there, {.name = "away", .timeout = 30ms});
  EXPECT_FALSE(loop.run(away.get("a")));
  paused.pause();
  EXPECT_THROW(loop.run(away.get("a")), Unavailable);
  EXPECT_THROW(loop.run(away.get_or_wait("a", 1h)), Unavailable);
  EXPECT_THROW(loop.run(away.remove("a")), Unavailable);
  const std::string text = telemetry::scrape();
  const std::string remote = R"(weir_cache_lookups_total{cache="away",level="remote",result=)";
  EXPECT_NE(text.find(remote + R"("error"} 2)"), std::string::npos);
  EXPECT_NE(text.find(remote + R"("miss"} 1)"), std::string::npos);
  EXPECT_NE(text.find(remote + R"("hit"} 0)"), std::string::npos);
}

TEST_F(RemoteCacheTest, FullServerKeepsNothingOld) {
  loop.run(cache.put("a", "old"));
  const Lease lease = *loop.run(cache.lease("a"));
  redis(Command("LPUSH", cache.value_name("list"), "x"));
  redis(Command("CONFIG", "SET", "maxmemory", 1));
  const auto kind_of = [&](auto call) {
    try {
      loop.run(std::move(call));
    } catch (const redis::Error& error) {
      return error.kind();
    }
    return redis::ErrorKind::other;
  };
  EXPECT_EQ(kind_of(cache.fill("a", lease, "x")), redis::ErrorKind::out_of_memory);
  EXPECT_TRUE(holds("a", "old"));  // it can be read, and told apart from what isn't a text
  const auto looks = loop.run(cache.get_many({"list", "a", "none"}));
  EXPECT_TRUE(std::holds_alternative<KeyFault>(looks[0]));
  EXPECT_EQ(std::get<Hit>(looks[1]).value, "old");
  EXPECT_TRUE(std::holds_alternative<RemoteCache::Unknown>(looks[2]));
  EXPECT_EQ(loop.run(cache.peek("a")).hit->value, "old");
  EXPECT_EQ(redis(Command("EXISTS", cache.lease_name("a"))).integer(), 0);  // given back
  EXPECT_EQ(kind_of(cache.put("a", "new")), redis::ErrorKind::out_of_memory);
  EXPECT_FALSE(get("a"));
  loop.run(cache.remove("a"));  // can always be done
  redis(Command("CONFIG", "SET", "maxmemory", 0));
}

// What a write has committed mustn't be served old because a slot is on its way just then.
TEST(RemoteCacheOnACluster, ARemoveGetsThroughWhileItsSlotMoves) {
  redis::TestCluster cluster;
  IoThreads loop(1);
  redis::Client client(loop.executor(), {.seeds = cluster.seeds()});
  RemoteCache cache(client, {.name = "moving", .timeout = 200ms});
  const int slot = static_cast<int>(client.group_of(cache.value_name("a")));
  const auto from = cluster.owner_of(slot), to = (from + 1) % 3;
  for (const bool own : {false, true}) {
    loop.run(cache.put("a", "old"));
    const Lease reader = *loop.run(cache.lease("a"));
    int keys_moved = -1;
    cluster.move_slot(slot, cluster.owner_of(slot), own ? from : to, [&] {
      if (++keys_moved != 1) return;  // the value is here, and the lease there; or the other way round
      if (own)
        EXPECT_FALSE(loop.run(cache.remove("a", Lease{"guessed"})));
      else
        loop.run(cache.remove("a"));
    });
    EXPECT_EQ(keys_moved, 2);
    EXPECT_FALSE(loop.run(cache.get("a")));
    EXPECT_FALSE(loop.run(cache.fill("a", reader, "old")));
    EXPECT_TRUE(loop.run(cache.fill("a", std::get<Lease>(loop.run(cache.get_or_lease("a"))), "new")));
  }
}

TEST(RemoteCacheOnACluster, ANodeThatStandsStillIsTheFaultOfItsOwnKeys) {
  redis::TestCluster cluster;
  IoThreads loop(1);
  redis::Client client(loop.executor(), {.seeds = cluster.seeds()});
  RemoteCache cache(client, {.name = "parts", .timeout = 5s});
  RemoteCache hasty(client, {.name = "parts", .timeout = 150ms});
  std::vector<std::string> keys;
  std::vector<RemoteCache::Fill> fills;
  for (int i = 0; i < 60; ++i) keys.push_back(std::to_string(i));
  auto answers = loop.run(cache.get_or_lease_many(keys));
  for (std::size_t i = 0; i < keys.size(); ++i)
    fills.push_back({keys[i], std::get<Lease>(answers[i]), keys[i]});
  EXPECT_EQ(loop.run(cache.fill_many(std::move(fills))), std::vector<bool>(60, true));
  const auto is_away = [&](std::size_t i) {
    return cluster.owner_of(static_cast<int>(client.group_of(cache.value_name(keys[i])))) == 1;
  };
  std::vector<bool> away;
  for (std::size_t i = 0; i < keys.size(); ++i) away.push_back(is_away(i));
  ASSERT_GT(std::ranges::count(away, true), 5);
  std::vector<std::string> gone;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (away[i]) gone.push_back(keys[i]);
  // For less than the time after which the others take it for dead.
  const auto while_it_stands = [&](auto call) {
    loop.run(redis::pause(200ms));
    cluster.node(1).pause();
    call();
    cluster.node(1).resume();
  };
  std::vector<RemoteCache::Look> looks;
  while_it_stands([&] { looks = loop.run(hasty.get_many(keys)); });
  while_it_stands([&] { answers = loop.run(hasty.get_or_lease_many(keys)); });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(std::holds_alternative<RemoteCache::Away>(looks[i]), away[i]);
    EXPECT_EQ(std::holds_alternative<RemoteCache::Away>(answers[i]), away[i]);
    if (!away[i]) EXPECT_EQ(std::get<Hit>(answers[i]).value, keys[i]);
  }
  while_it_stands([&] { EXPECT_THROW(loop.run(hasty.get_or_lease_many(gone)), TimedOut); });
  while_it_stands([&] { EXPECT_THROW(loop.run(hasty.get_many(gone)), TimedOut); });
  while_it_stands([&] { EXPECT_THROW(loop.run(hasty.get(gone.front())), TimedOut); });
  while_it_stands([&] { EXPECT_THROW(loop.run(hasty.remove_many(keys)), TimedOut); });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!away[i]) EXPECT_FALSE(loop.run(cache.get(keys[i]))) << "it was removed, although others weren't";
  }
}

}  // namespace
}  // namespace weir::cache

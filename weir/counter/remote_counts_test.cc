// One suite for both: one server, and a cluster. Then the follower, and a model of everything that may happen.
#include "weir/counter/remote_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "weir/base/random.h"
#include "weir/counter/counts_follower.h"
#include "weir/redis/client_fixture.h"
#include "weir/testing/redis_cluster.h"

namespace weir::counter {
namespace {

using namespace std::chrono_literals;
using redis::Command;
using redis::soon;
using Answer = RemoteCounts::Answer;
using Counts = RemoteCounts::Counts;
using Held = RemoteCounts::Held;
using Hit = RemoteCounts::Hit;
using Lease = RemoteCounts::Lease;
using Told = RemoteCounts::Told;
using cache::KeyFault;

redis::TestServer& server() {
  static redis::TestServer one;
  return one;
}
redis::TestCluster& cluster() {
  static redis::TestCluster one;
  return one;
}

// Of which the values follow, so that torn ones are seen.
Counts counts_at(std::int64_t version) {
  return {version, {version * 10, -version}};
}

RemoteCounts::Options quick(std::string name) {
  return {.name = std::move(name), .fields = {"reads", "likes"}, .timeout = 5s};
}

// "one" or "cluster".
struct RemoteCountsTest : testing::TestWithParam<const char*> {
  RemoteCountsTest() {
    if (is_cluster())
      cluster().flush();
    else
      redis(Command("FLUSHALL"));
  }
  static bool is_cluster() { return GetParam() == std::string("cluster"); }
  static redis::Options where() {
    if (is_cluster()) return {.seeds = cluster().seeds(), .timeout = 5s};
    return {.address = server().address(), .timeout = 5s};
  }
  redis::Reply redis(Command command) { return loop.run(client.execute(std::move(command))); }
  Answer find(const std::string& key) {
    return std::move(loop.run(counts.find_or_lease_many({key})).front());
  }
  Lease lease_of(const std::string& key) { return std::get<Lease>(find(key)); }
  bool fill(const std::string& key, const Lease& lease, std::int64_t version) {
    return loop.run(counts.fill_many({{key, lease, counts_at(version)}})).front();
  }
  Told tell(const std::string& key, std::int64_t version) {
    return loop.run(counts.update_many({{key, counts_at(version)}})).front();
  }
  // Of what is there; -1: nothing, and no lease is taken.
  std::int64_t version_of(const std::string& key) {
    const auto reply = redis(Command("HGET", counts.hash_name(key), "version"));
    return reply.is_nil() ? -1 : std::stoll(reply.text());
  }

  IoThreads loop{1};
  redis::Client client{loop.executor(), where()};
  RemoteCounts counts{client, quick("counts")};
};
INSTANTIATE_TEST_SUITE_P(Redis, RemoteCountsTest, testing::Values("one", "cluster"),
                         [](const auto& row) { return row.param; });

TEST_P(RemoteCountsTest, OneLoadsAndAllFind) {
  const Lease mine = lease_of("a");
  const auto other = find("a");
  ASSERT_TRUE(std::holds_alternative<Held>(other));
  EXPECT_GT(std::get<Held>(other).left, 3s);
  EXPECT_TRUE(fill("a", mine, 3));
  const auto found = std::get<Hit>(find("a"));
  EXPECT_EQ(found.counts, counts_at(3));
  EXPECT_GT(found.left, 13s);
  EXPECT_LE(found.left, 15s);
  EXPECT_FALSE(fill("a", mine, 4));  // it is used up
  EXPECT_EQ(version_of("a"), 3);
  const Lease failed = lease_of("b");
  loop.run(counts.release("b", failed));
  const Lease next = lease_of("b");
  loop.run(counts.release("b", failed));  // not its own any more
  EXPECT_TRUE(fill("b", next, 0));
  EXPECT_FALSE(fill("c", Lease{"guessed"}, 1));
  EXPECT_EQ(version_of("c"), -1);
}

TEST_P(RemoteCountsTest, NewerCountsReplaceOlderOnesInWhateverOrderTheyCome) {
  EXPECT_TRUE(fill("a", lease_of("a"), 3));
  EXPECT_EQ(tell("a", 5), Told::written);
  EXPECT_EQ(tell("a", 5), Told::newer);
  EXPECT_EQ(tell("a", 4), Told::newer);
  EXPECT_EQ(std::get<Hit>(find("a")).counts, counts_at(5));
  EXPECT_EQ(tell("a", 10), Told::written);  // not by their letters
  EXPECT_EQ(std::get<Hit>(find("a")).counts, counts_at(10));
  redis(Command("PEXPIRE", counts.hash_name("a"), 5'000));
  EXPECT_EQ(tell("a", 11), Told::written);
  EXPECT_GT(std::get<Hit>(find("a")).left, 10s);
}

TEST_P(RemoteCountsTest, AnUpdateWhereNoneAreMakesNoneAndVoidsTheLease) {
  EXPECT_EQ(tell("a", 1), Told::absent);
  EXPECT_EQ(version_of("a"), -1);
  const Lease before = lease_of("a");  // has read version 1
  EXPECT_EQ(tell("a", 2), Told::absent);
  EXPECT_FALSE(fill("a", before, 1));
  EXPECT_TRUE(fill("a", lease_of("a"), 2));
  // What has been there meanwhile and gone again voided it too.
  redis(Command("UNLINK", counts.hash_name("a")));
  const Lease again = lease_of("a");
  redis(Command("HSET", counts.hash_name("a"), "version", 2, "reads", 20, "likes", -2));
  EXPECT_EQ(tell("a", 3), Told::written);
  redis(Command("UNLINK", counts.hash_name("a")));
  EXPECT_FALSE(fill("a", again, 2));
  EXPECT_EQ(version_of("a"), -1);
}

TEST_P(RemoteCountsTest, AFillReplacesNothingNewer) {
  const Lease mine = lease_of("a");
  redis(Command("HSET", counts.hash_name("a"), "version", 7));  // damaged, and newer
  EXPECT_FALSE(fill("a", mine, 6));
  EXPECT_TRUE(fill("a", lease_of("a"), 7));
  EXPECT_EQ(std::get<Hit>(find("a")).counts, counts_at(7));
}

TEST_P(RemoteCountsTest, EverythingRunsOut) {
  auto options = quick("hasty");
  options.ttl = 60ms;
  options.lease_ttl = 20ms;
  RemoteCounts hasty(client, options);
  const auto ask = [&] { return std::move(loop.run(hasty.find_or_lease_many({"a"})).front()); };
  const auto ran_out = std::get<Lease>(ask());
  EXPECT_TRUE(soon([&] { return std::holds_alternative<Lease>(ask()); }));
  EXPECT_FALSE(loop.run(hasty.fill_many({{"a", ran_out, counts_at(1)}})).front());
  EXPECT_TRUE(soon([&] {
    auto answer = ask();
    const auto* lease = std::get_if<Lease>(&answer);
    return lease != nullptr && loop.run(hasty.fill_many({{"a", *lease, counts_at(1)}})).front();
  }));
  EXPECT_TRUE(soon([&] { return redis(Command("EXISTS", hasty.hash_name("a"))).integer() == 0; }));
}

TEST_P(RemoteCountsTest, ManyKeysKeepTheirOrderAndSpoilNothingForEachOther) {
  std::vector<std::string> keys{"", "}", std::string(513, 'k'), "foreign", "lease"};
  redis(Command("LPUSH", counts.hash_name("foreign"), "x"));
  redis(Command("LPUSH", counts.lease_name("lease"), "x"));
  for (int i = 0; i < 100; ++i) keys.push_back(std::to_string(i));
  auto answers = loop.run(counts.find_or_lease_many(keys));
  ASSERT_EQ(answers.size(), keys.size());
  std::vector<RemoteCounts::Fill> fills;
  std::vector<RemoteCounts::Update> updates;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(std::holds_alternative<KeyFault>(answers[i]), i < 5) << i;
    fills.push_back({keys[i], i < 5 ? Lease{"guessed"} : std::get<Lease>(answers[i]),
                     counts_at(static_cast<std::int64_t>(i))});
    updates.push_back({keys[i], counts_at(static_cast<std::int64_t>(2 * i))});
  }
  const auto filled = loop.run(counts.fill_many(std::move(fills)));
  const auto told = loop.run(counts.update_many(std::move(updates)));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(filled[i], i >= 5) << i;
    EXPECT_EQ(told[i], i < 3 ? Told::unusable : i < 5 ? Told::absent : Told::written) << i;
  }
  answers = loop.run(counts.find_or_lease_many(keys));
  for (std::size_t i = 5; i < keys.size(); ++i)
    EXPECT_EQ(std::get<Hit>(answers[i]).counts, counts_at(static_cast<std::int64_t>(2 * i)));
  for (const std::size_t mended : {3, 4}) EXPECT_TRUE(std::holds_alternative<Lease>(answers[mended]));
  EXPECT_TRUE(loop.run(counts.find_or_lease_many({})).empty());
  EXPECT_TRUE(loop.run(counts.fill_many({})).empty());
  EXPECT_TRUE(loop.run(counts.update_many({})).empty());
}

TEST_P(RemoteCountsTest, WhatIsDamagedIsAsGoodAsNone) {
  const auto plant = [&](const char* version, const char* reads) {
    redis(Command("UNLINK", counts.hash_name("a"), counts.lease_name("a")));
    redis(Command("HSET", counts.hash_name("a"), "version", version, "reads", reads, "likes", "0"));
  };
  for (const auto& [version, reads] : {std::pair{"x", "1"},
                                       {"", "1"},
                                       {"1", "1.5"},
                                       {"1", ""},
                                       {"1", "1234567890123456789"},
                                       {"12345678901234567", "x"},
                                       {"-", "1"}}) {
    plant(version, reads);
    EXPECT_TRUE(fill("a", lease_of("a"), 5)) << version << " " << reads;
    EXPECT_EQ(std::get<Hit>(find("a")).counts, counts_at(5));
    plant(version, reads);
    EXPECT_NE(tell("a", 5), Told::newer);
  }
}

TEST_P(RemoteCountsTest, RefusesWhatItCantKeep) {
  const auto refused = [&](auto change) {
    auto options = quick("counts");
    change(options);
    EXPECT_THROW(RemoteCounts(client, options), std::invalid_argument);
  };
  refused([](auto& options) { options.name = "a:b"; });
  refused([](auto& options) { options.prefix = "{"; });
  refused([](auto& options) { options.fields = {}; });
  refused([](auto& options) { options.fields = {"reads", "reads"}; });
  refused([](auto& options) { options.fields = {"version"}; });
  refused([](auto& options) { options.lease_ttl = options.ttl; });
  for (const Counts& bad :
       {Counts{1, {1}}, Counts{1, {1, 2, 3}}, Counts{-1, {1, 2}}, Counts{1LL << 53, {1, 2}}}) {
    EXPECT_THROW(loop.run(counts.update_many({{"a", bad}})), std::invalid_argument);
    EXPECT_THROW(loop.run(counts.fill_many({{"a", Lease{"x"}, bad}})), std::invalid_argument);
  }
}

// Whatever is lost, repeated, late or evicted: what is found was true once, and never older than what was told.
TEST_P(RemoteCountsTest, NeverGoesBackBehindWhatItWasTold) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  struct Thing {
    std::int64_t committed = 0, told = 0;
    std::vector<std::int64_t> on_their_way;             // updates
    std::vector<std::pair<Lease, std::int64_t>> loads;  // each with the version that it read
  };
  std::map<std::string, Thing> things{{"a", {}}, {"b", {}}, {"c", {}}};
  int found = 0, filled = 0, refused = 0;
  for (int step = 0; step < 6'000; ++step) {
    auto at = things.begin();
    std::advance(at, random.below(things.size()));
    auto& [key, thing] = *at;
    const auto any_of = [&](auto& all) {
      const auto one = all.begin() + static_cast<std::ptrdiff_t>(random.below(all.size()));
      auto taken = *one;
      if (random.chance(0.8)) all.erase(one);  // else it comes once more
      return taken;
    };
    switch (random.below(7)) {
      case 0:
        thing.on_their_way.push_back(++thing.committed);
        break;
      case 1:
      case 2:
        if (thing.on_their_way.empty()) break;
        if (const auto version = any_of(thing.on_their_way); random.chance(0.8)) {  // else it is lost
          tell(key, version);
          thing.told = std::max(thing.told, version);
        }
        break;
      case 3:
      case 4: {
        const auto answer = find(key);
        if (const auto* lease = std::get_if<Lease>(&answer))
          thing.loads.emplace_back(*lease, thing.committed);
        if (const auto* hit = std::get_if<Hit>(&answer)) {
          ++found;
          ASSERT_EQ(hit->counts, counts_at(hit->counts.version));
          ASSERT_LE(hit->counts.version, thing.committed);
          ASSERT_GE(hit->counts.version, thing.told) << "step " << step;
        }
        break;
      }
      case 5: {
        if (thing.loads.empty()) break;
        const auto [lease, version] = any_of(thing.loads);
        ++(fill(key, lease, version) ? filled : refused);
        break;
      }
      default:
        if (random.chance(0.3)) redis(Command("UNLINK", counts.hash_name(key)));
        if (random.chance(0.1)) redis(Command("UNLINK", counts.lease_name(key)));
    }
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(filled, 50);
  EXPECT_GT(refused, 50);
}

// The store's rows, as a follower reads them.
struct Rows {
  boost::asio::awaitable<CountsFollower::Updates> load(std::vector<std::string> keys) {
    ++loads;
    if (away) throw Unavailable("the store is away");
    CountsFollower::Updates found;
    for (const auto& key : keys)
      if (const auto at = versions.find(key); at != versions.end())
        found.push_back({key, counts_at(at->second)});
    co_return found;
  }
  std::map<std::string, std::int64_t> versions;
  bool away = false;
  int loads = 0;
};

struct CountsFollowerTest : testing::Test {
  CountsFollowerTest() { loop.run(client.execute(Command("PING"), 5s)); }
  CountsFollower follower(std::size_t most = 100) {
    return {counts,
            [this](auto keys) { return rows.load(std::move(keys)); },
            {.max_owed = most, .at_once = 2, .clock = &clock}};
  }
  void fill(const std::string& key, std::int64_t version) {
    auto answer = std::move(loop.run(patient.find_or_lease_many({key})).front());
    EXPECT_TRUE(loop.run(patient.fill_many({{key, std::get<Lease>(answer), counts_at(version)}})).front());
  }
  Counts there(const std::string& key) {
    return std::get<Hit>(loop.run(patient.find_or_lease_many({key})).front()).counts;
  }
  // As the follower's caller has it.
  void commit(CountsFollower& follower, const std::string& key) {
    loop.run(follower.committed({{key, counts_at(++rows.versions[key])}}));
  }

  redis::TestServer redis;
  IoThreads loop{1};
  redis::Client client{loop.executor(), {.address = redis.address(), .timeout = 5s}};
  RemoteCounts patient{client, quick("followed")};
  RemoteCounts counts{client, [] {
                        auto options = quick("followed");
                        options.timeout = 50ms;
                        return options;
                      }()};
  ManualClock clock;
  Rows rows;
};

TEST_F(CountsFollowerTest, WhatCouldntBeToldIsToldAgainFromTheRow) {
  auto following = follower();
  rows.versions = {{"a", 3}};
  fill("a", 3);
  redis.pause();
  commit(following, "a");
  EXPECT_EQ(following.owed(), 1U);
  EXPECT_EQ(loop.run(following.repair()), 1U);
  rows.versions["a"] = 9;  // others have written, too
  redis.resume();
  rows.away = true;
  EXPECT_EQ(loop.run(following.repair()), 1U);
  rows.away = false;
  EXPECT_TRUE(soon([&] { return loop.run(following.repair()) == 0; }));
  EXPECT_EQ(there("a"), counts_at(9));
  const int loads = rows.loads;
  EXPECT_EQ(loop.run(following.repair()), 0U);
  EXPECT_EQ(rows.loads, loads);  // nothing to do costs nothing
}

TEST_F(CountsFollowerTest, ALaterCommitThatGetsThroughPaysForTheEarlierOne) {
  auto following = follower();
  fill("a", 0);
  redis.pause();
  commit(following, "a");
  redis.resume();
  EXPECT_TRUE(soon([&] {
    commit(following, "a");
    return following.owed() == 0;
  }));
  EXPECT_EQ(there("a"), counts_at(rows.versions["a"]));
}

TEST_F(CountsFollowerTest, DebtsEndWithTheTtlAndAreBounded) {
  auto following = follower(3);
  redis.pause();
  for (const char* key : {"a", "b", "c", "d"}) commit(following, key);
  EXPECT_EQ(following.owed(), 3U);
  rows.versions.erase("a");
  EXPECT_EQ(loop.run(following.repair()), 2U);  // what has no row has nothing to tell
  clock.advance(15s);
  EXPECT_EQ(loop.run(following.repair()), 2U);  // the call's own time-out is counted in
  clock.advance(1s);
  EXPECT_EQ(loop.run(following.repair()), 0U);
  redis.resume();
}

}  // namespace
}  // namespace weir::counter

#include "weir/cache/clock_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "weir/base/random.h"
#include "weir/cache/policy_tuner.h"

namespace weir::cache::detail {
namespace {

struct Node : PolicyLinks<std::uint32_t> {
  unsigned mark = 0;
  std::uint64_t weight = 1;
  bool dead = false;
};
struct Nodes {
  using Id = std::uint32_t;
  std::vector<Node>& all;
  PolicyLinks<Id>& links(Id id) const { return all[id]; }
  std::uint64_t weight(Id id) const { return all[id].weight; }
  unsigned mark(Id id) const { return all[id].mark; }
  void set_mark(Id id, unsigned mark) const { all[id].mark = mark; }
  bool dead(Id id) const { return all[id].dead; }
};
// Frequencies that a test dictates.
struct Dictated {
  std::map<std::uint32_t, unsigned> known;
  void add(std::uint32_t hash, unsigned times) { known[hash] += times; }
  unsigned estimate(std::uint32_t hash) { return known[hash]; }
};

class ClockPolicyTest : public testing::Test {
 protected:
  using Id = std::uint32_t;
  ClockPolicyTest() : all_(1000), nodes_{all_}, policy_(nodes_, frequency_) {}

  void capacity(std::uint64_t weight, double window) {
    policy_.set_capacity(weight, weight);
    policy_.choose({.window = window});
    policy_.jump_to_choice();
  }
  void add(Id id, std::uint64_t weight = 1) {
    all_[id].hash = id;
    all_[id].weight = weight;
    policy_.add(id);
  }
  std::vector<Id> order() const {
    std::vector<Id> ids;
    for (Id id = policy_.first(); id != 0; id = policy_.next(id)) ids.push_back(id);
    return ids;
  }

  std::vector<Node> all_;
  Nodes nodes_;
  Dictated frequency_;
  ClockPolicy<Nodes, Dictated> policy_;
};

TEST_F(ClockPolicyTest, TheWindowOverflowsIntoTheMainSpace) {
  capacity(5, 0.4);
  for (Id id = 1; id <= 5; ++id) add(id);
  EXPECT_EQ(order(), (std::vector<Id>{4, 5, 1, 2, 3}));
  EXPECT_EQ(policy_.window_weight(), 2U);
  EXPECT_EQ(policy_.weight(), 5U);
}

TEST_F(ClockPolicyTest, TheMoreFrequentWins) {
  capacity(5, 0.4);
  for (Id id = 1; id <= 5; ++id) add(id);
  EXPECT_EQ(policy_.victim(1), 4U);  // as unknown as the main space's victim: no reason to change
  policy_.remove(4);
  add(6);
  frequency_.known[5] = 4;
  EXPECT_EQ(policy_.victim(1), 1U);
  policy_.remove(1);
  EXPECT_EQ(order(), (std::vector<Id>{6, 2, 3, 5}));
}

TEST_F(ClockPolicyTest, MarksGoRoundAndAreGivenUpOneByOne) {
  capacity(4, 0.25);
  for (Id id = 1; id <= 4; ++id) add(id);
  EXPECT_EQ(order(), (std::vector<Id>{4, 1, 2, 3}));
  all_[1].mark = 2;
  frequency_.known[4] = 9;
  EXPECT_EQ(policy_.victim(1), 2U);
  EXPECT_EQ(all_[1].mark, 1U);
  EXPECT_EQ(frequency_.known[1], 2U);  // its miss, and the mark that it gave up
}

TEST_F(ClockPolicyTest, WhatIsMarkedStaysInTheWindowAndIsCounted) {
  capacity(4, 0.5);
  for (Id id = 1; id <= 4; ++id) add(id);
  EXPECT_EQ(order(), (std::vector<Id>{3, 4, 1, 2}));
  all_[3].mark = 3;
  EXPECT_EQ(policy_.victim(1), 4U);
  EXPECT_EQ(frequency_.known[3], 4U);
  EXPECT_EQ(all_[3].mark, 0U);
}

TEST_F(ClockPolicyTest, TheDeadGoFirst) {
  capacity(4, 0.25);
  for (Id id = 1; id <= 4; ++id) add(id);
  all_[1].dead = true;
  all_[1].mark = 3;
  EXPECT_EQ(policy_.victim(1), 1U);
}

TEST_F(ClockPolicyTest, RecencyCountsWhenItIsChosen) {
  for (const bool by_recency : {false, true}) {
    Dictated frequency;
    std::vector<Node> all(1000);
    Nodes nodes{all};
    ClockPolicy<Nodes, Dictated> policy(nodes, frequency);
    policy.set_capacity(16, 16);
    policy.choose({.window = 0, .by_recency = by_recency});
    policy.jump_to_choice();
    const auto miss = [&](Id id, std::uint32_t hash) {
      Id victim = 0;
      if (policy.entries() == 16) policy.remove(victim = policy.victim(1));
      all[id] = {};
      all[id].hash = hash;
      policy.add(id);
      return victim;
    };
    for (Id id = 1; id <= 16; ++id) miss(id, id);
    for (Id id = 17; id <= 40; ++id) miss(id, id);
    miss(41, 500);  // comes, goes and comes again: its last miss is newer than what lies in the main space
    miss(42, 501);
    miss(43, 500);
    frequency.known.clear();
    const Id out = miss(44, 502);
    EXPECT_EQ(out == 43, !by_recency);
  }
}

TEST_F(ClockPolicyTest, NobodyCanShutTheDoor) {
  capacity(4, 0.25);
  for (Id id = 1; id <= 4; ++id) add(id);
  for (Id id = 1; id < 1000; ++id) frequency_.known[id] = 15;  // as if all had met in the same counters
  int wins = 0;
  for (Id id = 5; id < 999; ++id) {
    const Id victim = policy_.victim(1);
    wins += nodes_.links(victim).queue == Queue::main ? 1 : 0;
    policy_.remove(victim);
    add(id);
  }
  EXPECT_GT(wins, 1);
  EXPECT_LT(wins, 30);
}

TEST_F(ClockPolicyTest, OneCallSkipsOnlySoMany) {
  capacity(900, 0.5);
  for (Id id = 1; id <= 900; ++id) add(id);
  for (Node& node : all_) node.mark = 3;
  policy_.victim(1);
  const auto given_up = std::ranges::count_if(all_, [](const Node& node) { return node.mark < 3; });
  EXPECT_LE(given_up, 128);
}

// The queues' weights and members stay right through anything.
TEST_F(ClockPolicyTest, KeepsItsBooks) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  capacity(300, 0.3);
  std::set<Id> in;
  for (int step = 0; step < 20'000; ++step) {
    const Id id = static_cast<Id>(1 + random.below(999));
    if (in.contains(id)) {
      if (random.below(8) == 0) {
        policy_.remove(id);
        in.erase(id);
      } else {
        all_[id].mark = std::min(3U, all_[id].mark + 1);
      }
      continue;
    }
    policy_.choose(PolicyTuner::kChoices[random.below(PolicyTuner::kChoices.size())]);
    const std::uint64_t weight = 1 + random.below(9);
    while (policy_.weight() + weight > 300) {
      const Id victim = policy_.victim(weight);
      ASSERT_TRUE(in.erase(victim));
      policy_.remove(victim);
    }
    all_[id] = {};
    add(id, weight);
    in.insert(id);
    if (step % 100 != 0) continue;
    const auto listed = order();
    ASSERT_EQ(std::set<Id>(listed.begin(), listed.end()), in);
    ASSERT_EQ(listed.size(), policy_.entries());
    std::uint64_t sum = 0;
    for (const Id other : in) sum += all_[other].weight;
    ASSERT_EQ(sum, policy_.weight());
  }
}

TEST(MissGhost, RemembersTheMissBefore) {
  MissGhost ghost;
  ghost.resize(64);
  EXPECT_EQ(ghost.miss(1), MissGhost::kNever);
  const auto first = ghost.now();
  for (std::uint32_t other = 100; other < 108; ++other) ghost.miss(other);
  EXPECT_EQ(ghost.miss(1), first);
  EXPECT_TRUE(ghost.newer(ghost.now(), first));
  EXPECT_FALSE(ghost.newer(first, ghost.now()));
  EXPECT_TRUE(ghost.newer(first, MissGhost::kNever));
  EXPECT_FALSE(ghost.newer(MissGhost::kNever, first));
}

TEST(MissGhost, TimeRunsOnPastItsEnd) {
  MissGhost ghost;
  ghost.resize(16);  // a tick a miss
  for (std::uint32_t n = 0; n < 1000; ++n) {
    const auto before = ghost.now();
    ghost.miss(n);
    ASSERT_NE(ghost.now(), MissGhost::kNever);
    ASSERT_TRUE(ghost.newer(ghost.now(), before)) << n;
  }
}

TEST(ShadowCache, AgreesWithASetOnWhatItHolds) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (const PolicyChoice choice : PolicyTuner::kChoices) {
    FrequencySketch frequency;
    frequency.resize(100);
    ShadowCache shadow(100, choice, frequency, seed);
    std::set<std::uint32_t> seen;
    std::size_t hits = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto key = static_cast<std::uint32_t>(std::min(random.below(300), random.below(300)));
      frequency.add(key);
      const bool hit = shadow.access(key);
      ASSERT_TRUE(!hit || seen.contains(key));
      ASSERT_TRUE(shadow.access(key)) << "it was just put";
      seen.insert(key);
      ASSERT_LE(shadow.size(), 100U);
      hits += hit ? 1 : 0;
    }
    EXPECT_GT(hits, 5'000U);
  }
}

TEST(PolicyTuner, FindsTheWindowThatTheKeysAskFor) {
  // A loop over a little more than fits wants the smallest window.
  PolicyTuner loop(1);
  for (int i = 0; i < 50'000; ++i) loop.feed(mix64(static_cast<std::uint64_t>(i % 300)), 250, true);
  EXPECT_EQ(loop.choice().window, 0);
  // Each key a few times shortly after another and never again: only recency helps.
  PolicyTuner burst(1);
  for (std::uint64_t i = 0; i < 100'000; ++i)
    burst.feed(mix64(i / 4 * 4 % 1'000'000 + i % 2 * 500 + i / 2000), 250, true);
  Random random(7);
  PolicyTuner drift(1);
  for (std::uint64_t i = 0; i < 100'000; ++i) drift.feed(mix64(i / 2 + random.below(100)), 200, true);
  EXPECT_TRUE(drift.choice().window >= 0.15 || drift.choice().by_recency);
}

TEST(PolicyTuner, SamplesSoMuchThatItsShadowsAreFull) {
  PolicyTuner tuner(1);
  EXPECT_TRUE(tuner.samples(mix64(1)));
  tuner.feed(mix64(1), 100'000, true);
  int sampled = 0;
  for (std::uint64_t key = 0; key < 100'000; ++key) sampled += tuner.samples(mix64(key)) ? 1 : 0;
  EXPECT_GT(sampled, 250);
  EXPECT_LT(sampled, 550);
}

}  // namespace
}  // namespace weir::cache::detail

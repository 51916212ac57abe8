// The contract of RemoteLevel as a suite that every implementation passes: see remote_level.h.
//
// An adapter has `std::shared_ptr<RemoteLevel> make(ContractOptions)`: a new, empty level; and `plant_foreign(key)`,
// which puts things of another type where the key's value and lease would be.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/cache/remote_level.h"
#include "weir/cache/test_loop.h"

namespace weir::cache {

struct ContractOptions {
  using Millis = std::chrono::milliseconds;
  Millis ttl{60'000};
  Millis lease_ttl{20'000};
  std::size_t max_value_bytes = 1'000;
};

template <class Adapter>
struct RemoteLevelContract : testing::Test {
  using Millis = std::chrono::milliseconds;
  using Hit = RemoteLevel::Hit;
  using Lease = RemoteLevel::Lease;
  using Held = RemoteLevel::Held;

  template <class T>
  T run(boost::asio::awaitable<T> work) {
    return loop.run(std::move(work));
  }
  void make(ContractOptions options) { level = adapter.make(options); }
  Lease lease_of(const std::string& key) { return std::get<Lease>(ask(key)); }
  RemoteLevel::Answer ask(const std::string& key) { return run(level->get_or_wait(key, Millis(0))); }
  bool holds(const std::string& key, const std::string& value) {
    const auto hit = run(level->get(key));
    return hit && hit->value == value;
  }
  bool knows(const std::string& key) { return run(level->get(key)).has_value(); }
  bool put(const std::string& key, const std::string& value) {
    return run(level->fill(key, run(level->take_over(key)), value));
  }
  template <class F>
  static bool soon(F condition) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(Millis(1));
    }
    return true;
  }

  Adapter adapter;
  IoThreads loop{1};
  std::shared_ptr<RemoteLevel> level = adapter.make({});
};

TYPED_TEST_SUITE_P(RemoteLevelContract);

TYPED_TEST_P(RemoteLevelContract, ValueAbsenceAndNothingAreThreeAnswers) {
  EXPECT_FALSE(this->knows("a"));
  EXPECT_TRUE(this->run(this->level->fill("a", this->lease_of("a"), std::string("x\0\r\n", 4))));
  EXPECT_TRUE(this->run(this->level->fill("empty", this->lease_of("empty"), "")));
  EXPECT_TRUE(this->run(this->level->fill_absent("gone", this->lease_of("gone"))));
  EXPECT_TRUE(this->holds("a", std::string("x\0\r\n", 4)));
  EXPECT_TRUE(this->holds("empty", ""));
  const auto gone = this->run(this->level->get("gone"));
  ASSERT_TRUE(gone);
  EXPECT_FALSE(gone->value);
}

TYPED_TEST_P(RemoteLevelContract, OneLeaseAKeyAndItIsUsedOnce) {
  const auto mine = this->lease_of("a");
  const auto second = this->ask("a");
  ASSERT_TRUE(std::holds_alternative<RemoteLevel::Held>(second));
  EXPECT_GT(std::get<RemoteLevel::Held>(second).left.count(), 10'000);
  EXPECT_LE(std::get<RemoteLevel::Held>(second).left.count(), 20'000);
  EXPECT_FALSE(this->run(this->level->lease("a")));
  EXPECT_TRUE(this->run(this->level->fill("a", mine, "1")));
  EXPECT_EQ(std::get<RemoteLevel::Hit>(this->ask("a")).value, "1");
  EXPECT_FALSE(this->run(this->level->fill("a", mine, "2")));
  EXPECT_TRUE(this->holds("a", "1"));
  EXPECT_FALSE(this->run(this->level->fill("b", RemoteLevel::Lease{}, "x")));  // none was ever given
  EXPECT_FALSE(this->knows("b"));
}

TYPED_TEST_P(RemoteLevelContract, ARemoveVoidsTheLeaseSoThatNoStaleValueComesIn) {
  const auto before = this->lease_of("a");
  this->run(this->level->remove("a"));
  const auto after = this->lease_of("a");  // free at once
  EXPECT_FALSE(this->run(this->level->fill("a", before, "stale")));
  EXPECT_FALSE(this->run(this->level->fill_absent("a", before)));
  EXPECT_FALSE(this->knows("a"));
  EXPECT_TRUE(this->run(this->level->fill("a", after, "fresh")));
  this->run(this->level->remove("a"));
  EXPECT_FALSE(this->knows("a"));
}

TYPED_TEST_P(RemoteLevelContract, ACreationClearsTheAbsence) {
  EXPECT_TRUE(this->run(this->level->fill_absent("a", this->lease_of("a"))));
  this->run(this->level->remove("a"));
  EXPECT_FALSE(this->knows("a"));
}

TYPED_TEST_P(RemoteLevelContract, ARefreshTakesTheLeaseBesideTheValue) {
  this->put("a", "old");
  const auto mine = this->run(this->level->lease("a"));
  ASSERT_TRUE(mine);
  EXPECT_FALSE(this->run(this->level->lease("a")));
  EXPECT_TRUE(this->holds("a", "old"));  // served meanwhile
  EXPECT_TRUE(this->run(this->level->fill("a", *mine, "new")));
  EXPECT_TRUE(this->holds("a", "new"));
}

TYPED_TEST_P(RemoteLevelContract, AWriterPublishesAheadUnlessAnotherWrote) {
  const auto reader = this->lease_of("a");
  const auto writer = this->run(this->level->take_over("a"));
  EXPECT_FALSE(this->run(this->level->fill("a", reader, "stale")));
  EXPECT_TRUE(this->run(this->level->remove("a", writer)));
  EXPECT_TRUE(this->run(this->level->fill("a", writer, "1")));
  const auto one = this->run(this->level->take_over("a"));
  const auto two = this->run(this->level->take_over("a"));
  EXPECT_FALSE(this->run(this->level->remove("a", one)));
  EXPECT_FALSE(this->run(this->level->remove("a", two)));
  EXPECT_FALSE(this->run(this->level->fill("a", one, "2")));
  EXPECT_FALSE(this->run(this->level->fill("a", two, "3")));
  EXPECT_FALSE(this->knows("a"));
}

TYPED_TEST_P(RemoteLevelContract, AReleasedLeaseIsFreeAndOnlyItsHolderReleasesIt) {
  const auto first = this->lease_of("a");
  this->run(this->level->release("a", first));
  const auto second = this->lease_of("a");
  this->run(this->level->release("a", first));
  EXPECT_TRUE(this->run(this->level->fill("a", second, "1")));
}

TYPED_TEST_P(RemoteLevelContract, ManyAtOnceKeepTheirOrder) {
  this->put("a", "1");
  this->lease_of("b");
  auto answers = this->run(this->level->get_or_lease_many({"a", "b", "c", "d"}));
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_TRUE(std::holds_alternative<RemoteLevel::Hit>(answers[0]));
  EXPECT_TRUE(std::holds_alternative<RemoteLevel::Held>(answers[1]));
  std::vector<RemoteLevel::Fill> fills;
  fills.push_back({"c", std::get<RemoteLevel::Lease>(answers[2]), std::string(1'001, 'x')});  // too heavy
  fills.push_back({"b", RemoteLevel::Lease{"guessed"}, "2"});
  fills.push_back({"d", std::get<RemoteLevel::Lease>(answers[3]), std::nullopt, std::chrono::hours(1)});
  EXPECT_EQ(this->run(this->level->fill_many(std::move(fills))), (std::vector<bool>{false, false, true}));
  EXPECT_GT(this->run(this->level->get("d"))->left.count(), 2'000'000);
  EXPECT_FALSE(this->knows("c"));
  this->lease_of("c");  // too heavy a value gives its lease back
  this->run(this->level->remove_many({"a", "b", "d"}));
  EXPECT_FALSE(this->knows("a") || this->knows("b") || this->knows("d"));
  EXPECT_TRUE(this->run(this->level->get_or_lease_many({})).empty());
  EXPECT_TRUE(this->run(this->level->fill_many({})).empty());
  this->run(this->level->remove_many({}));
}

TYPED_TEST_P(RemoteLevelContract, WhoIsHeldUpWaitsForTheValueOrForItsTurn) {
  using std::chrono::seconds;
  const auto mine = this->lease_of("a");
  auto waiting = this->loop.start(this->level->get_or_wait("a", seconds(15)));
  EXPECT_TRUE(std::holds_alternative<RemoteLevel::Held>(
      this->run(this->level->get_or_wait("a", std::chrono::milliseconds(10)))));
  EXPECT_TRUE(this->run(this->level->fill("a", mine, "1")));
  EXPECT_EQ(std::get<RemoteLevel::Hit>(waiting.get()).value, "1");
  const auto failed = this->lease_of("b");
  auto next = this->loop.start(this->level->get_or_wait("b", seconds(15)));
  this->run(this->level->release("b", failed));
  EXPECT_TRUE(std::holds_alternative<RemoteLevel::Lease>(next.get()));
}

TYPED_TEST_P(RemoteLevelContract, EverythingRunsOut) {
  this->make({.lease_ttl = std::chrono::milliseconds(5)});
  const auto ran_out = this->lease_of("a");
  auto next =
      this->run(this->level->get_or_wait("a", std::chrono::seconds(5)));  // twice the lease's TTL at most
  EXPECT_TRUE(std::holds_alternative<RemoteLevel::Lease>(next));
  EXPECT_FALSE(this->run(this->level->fill("a", ran_out, "x")));
  this->make({.ttl = std::chrono::milliseconds(5)});
  this->put("a", "1");
  EXPECT_TRUE(this->soon([&] { return !this->knows("a"); }));
  // A computed TTL of nothing means neither for ever nor dead on arrival.
  for (const int ttl : {0, -1'000}) {
    const auto lease = this->run(this->level->take_over("b"));
    EXPECT_TRUE(this->run(this->level->fill("b", lease, "1", std::chrono::milliseconds(ttl))));
    EXPECT_TRUE(this->soon([&] { return !this->knows("b"); }));
  }
}

TYPED_TEST_P(RemoteLevelContract, APeekChangesNothing) {
  auto sight = this->run(this->level->peek("a"));
  EXPECT_FALSE(sight.hit || sight.leased);
  this->lease_of("a");
  sight = this->run(this->level->peek("a"));
  EXPECT_FALSE(sight.hit);
  ASSERT_TRUE(sight.leased);
  EXPECT_GT(sight.leased->count(), 10'000);
  this->put("a", "1");
  sight = this->run(this->level->peek("a"));
  ASSERT_TRUE(sight.hit);
  EXPECT_EQ(sight.hit->value, "1");
  EXPECT_GT(sight.hit->left.count(), 30'000);
  EXPECT_FALSE(sight.leased);
}

TYPED_TEST_P(RemoteLevelContract, KeysHaveALength) {
  EXPECT_THROW(this->knows(""), std::invalid_argument);
  EXPECT_THROW(this->ask(std::string(513, 'k')), std::invalid_argument);
  EXPECT_FALSE(this->knows(std::string(512, 'k')));
}

TYPED_TEST_P(RemoteLevelContract, AKeyThatCantBeUsedSpoilsNothingForTheOthers) {
  const std::string endless(513, 'k');
  this->put("a", "1");
  auto answers = this->run(this->level->get_or_lease_many({"", "a", endless, "b"}));
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_TRUE(std::holds_alternative<KeyFault>(answers[0]));
  EXPECT_EQ(std::get<RemoteLevel::Hit>(answers[1]).value, "1");
  EXPECT_TRUE(std::holds_alternative<KeyFault>(answers[2]));
  const auto lease = std::get<RemoteLevel::Lease>(answers[3]);
  std::vector<RemoteLevel::Fill> fills;
  for (const auto& key : {std::string(), std::string("b"), endless}) fills.push_back({key, lease, "2"});
  EXPECT_EQ(this->run(this->level->fill_many(std::move(fills))), (std::vector<bool>{false, true, false}));
  EXPECT_TRUE(this->holds("b", "2"));
  EXPECT_FALSE(this->run(this->level->fill(endless, lease, "2")));
  EXPECT_THROW(this->run(this->level->remove_many({"a", "", endless, "b"})), std::invalid_argument);
  EXPECT_FALSE(this->knows("a") || this->knows("b"));
}

TYPED_TEST_P(RemoteLevelContract, WhatIsOfAnotherTypeIsAFaultOfItsKeyAlone) {
  this->put("a", "1");
  this->adapter.plant_foreign("bad");
  const auto faults = [&](auto call) {
    try {
      this->run(std::move(call));
    } catch (const KeyFault& fault) {
      return std::string(fault.what()).find("bad") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(faults(this->level->get("bad")));
  EXPECT_TRUE(faults(this->level->peek("bad")));
  EXPECT_TRUE(faults(this->level->get_or_wait("bad", std::chrono::milliseconds(0))));
  EXPECT_TRUE(faults(this->level->get_or_wait("bad", std::chrono::seconds(15))));  // nobody's turn: no wait
  EXPECT_TRUE(faults(this->level->lease("bad")));
  EXPECT_TRUE(faults(this->level->release("bad", {"guessed"})));
  auto answers = this->run(this->level->get_or_lease_many({"bad", "a", "b"}));
  ASSERT_TRUE(std::holds_alternative<KeyFault>(answers[0]));
  EXPECT_NE(std::string(std::get<KeyFault>(answers[0]).what()).find("bad"), std::string::npos);
  EXPECT_EQ(std::get<RemoteLevel::Hit>(answers[1]).value, "1");
  std::vector<RemoteLevel::Fill> fills;
  fills.push_back({"bad", RemoteLevel::Lease{"guessed"}, "2"});
  fills.push_back({"b", std::get<RemoteLevel::Lease>(answers[2]), "2"});
  EXPECT_EQ(this->run(this->level->fill_many(std::move(fills))), (std::vector<bool>{false, true}));
  EXPECT_TRUE(faults(this->level->get("bad")));  // it is as it was
}

TYPED_TEST_P(RemoteLevelContract, WritesMendWhatIsOfAnotherType) {
  const auto is_free = [&](const std::string& key) {
    const bool free = !this->knows(key) && std::holds_alternative<RemoteLevel::Lease>(this->ask(key));
    this->run(this->level->remove(key));
    return free;
  };
  this->adapter.plant_foreign("a");
  this->run(this->level->remove("a"));
  EXPECT_TRUE(is_free("a"));
  this->adapter.plant_foreign("a");
  this->run(this->level->remove_many({"b", "a"}));
  EXPECT_TRUE(is_free("a"));
  this->adapter.plant_foreign("a");
  EXPECT_FALSE(this->run(this->level->remove("a", RemoteLevel::Lease{"guessed"})));
  EXPECT_TRUE(is_free("a"));
  // A writer who publishes ahead.
  this->adapter.plant_foreign("a");
  const auto writer = this->run(this->level->take_over("a"));
  EXPECT_TRUE(this->run(this->level->remove("a", writer)));
  EXPECT_TRUE(this->run(this->level->fill("a", writer, "1")));
  EXPECT_TRUE(this->holds("a", "1"));
  this->adapter.plant_foreign("a");
  EXPECT_TRUE(this->put("a", "2"));  // under a lease that is good
  EXPECT_TRUE(this->holds("a", "2"));
}

TYPED_TEST_P(RemoteLevelContract, ACrowdLoadsOnce) {
  std::atomic<int> loads{0};
  const auto read = [&]() -> boost::asio::awaitable<std::string> {
    auto answer = co_await this->level->get_or_wait("hot", std::chrono::seconds(15));
    if (auto* hit = std::get_if<RemoteLevel::Hit>(&answer)) co_return *hit->value;
    ++loads;
    co_await pause(std::chrono::milliseconds(20));
    if (auto* lease = std::get_if<RemoteLevel::Lease>(&answer))
      co_await this->level->fill("hot", *lease, "loaded");
    co_return "loaded";
  };
  std::vector<std::future<std::string>> all;
  for (int i = 0; i < 100; ++i) all.push_back(this->loop.start(read()));
  for (auto& one : all) EXPECT_EQ(one.get(), "loaded");
  EXPECT_EQ(loads, 1);
}

REGISTER_TYPED_TEST_SUITE_P(RemoteLevelContract, ValueAbsenceAndNothingAreThreeAnswers,
                            OneLeaseAKeyAndItIsUsedOnce, ARemoveVoidsTheLeaseSoThatNoStaleValueComesIn,
                            ACreationClearsTheAbsence, ARefreshTakesTheLeaseBesideTheValue,
                            AWriterPublishesAheadUnlessAnotherWrote,
                            AReleasedLeaseIsFreeAndOnlyItsHolderReleasesIt, ManyAtOnceKeepTheirOrder,
                            WhoIsHeldUpWaitsForTheValueOrForItsTurn, EverythingRunsOut, APeekChangesNothing,
                            KeysHaveALength, AKeyThatCantBeUsedSpoilsNothingForTheOthers,
                            WhatIsOfAnotherTypeIsAFaultOfItsKeyAlone, WritesMendWhatIsOfAnotherType,
                            ACrowdLoadsOnce);

}  // namespace weir::cache

#include "site/user/password.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "site/user/user.h"
#include "weir/base/fault.h"
#include "weir/testing/io_threads.h"

namespace weir::site::user {
namespace {

bool always() {
  return true;
}

TEST(Password, IsHashedAsPromised) {
  const std::string hash = PasswordHasher::hash_now("correct horse");
  EXPECT_TRUE(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$")) << hash;
  EXPECT_NE(hash, PasswordHasher::hash_now("correct horse"));  // the salt
}

TEST(Password, OnlyTheRightOneFits) {
  const std::string hash = PasswordHasher::hash_now("correct horse");
  EXPECT_TRUE(PasswordHasher::verify_now(hash, "correct horse"));
  EXPECT_FALSE(PasswordHasher::verify_now(hash, "correct horsf"));
  EXPECT_FALSE(PasswordHasher::verify_now(hash, ""));
  EXPECT_FALSE(PasswordHasher::verify_now("not a hash", "correct horse"));
}

TEST(Password, TheLongestIsLookedAtWholly) {
  const std::string longest(kMaxPasswordBytes, 'a');
  const std::string hash = PasswordHasher::hash_now(longest);
  EXPECT_TRUE(PasswordHasher::verify_now(hash, longest));
  EXPECT_FALSE(PasswordHasher::verify_now(hash, longest.substr(1)));
  EXPECT_FALSE(PasswordHasher::verify_now(hash, longest + "a"));
  EXPECT_FALSE(PasswordHasher::verify_now(hash, longest + std::string(1 << 20, 'a')));
}

TEST(PasswordHasher, NobodysHashIsNeverRight) {
  IoThreads io;
  PasswordHasher hasher({.threads = 1});
  EXPECT_FALSE(io.run(hasher.verify(std::nullopt, "password 1")));
  EXPECT_TRUE(io.run(hasher.verify(PasswordHasher::hash_now("password 1"), "password 1")));
}

// The least of several runs, so that a busy machine doesn't decide.
TEST(PasswordHasher, AnUnknownPersonCostsAsMuchAsAWrongPassword) {
  IoThreads io;
  PasswordHasher hasher({.threads = 1});
  const std::string hash = PasswordHasher::hash_now("password 1");
  const auto least = [&](std::optional<std::string> against) {
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      const auto start = std::chrono::steady_clock::now();
      io.run(hasher.verify(against, "password 2"));
      best = std::min(best, std::chrono::steady_clock::now() - start);
    }
    return std::chrono::duration<double>(best).count();
  };
  const double known = least(hash);
  const double unknown = least(std::nullopt);
  EXPECT_GT(unknown, known * 0.5);
  EXPECT_LT(unknown, known * 2);
}

TEST(PasswordHasher, AsksWhetherTheHashIsStillWanted) {
  IoThreads io;
  PasswordHasher hasher({.threads = 1});
  EXPECT_EQ(io.run(hasher.hash("password 1", [] { return false; })), std::nullopt);
  EXPECT_TRUE(io.run(hasher.hash("password 1", always)));
}

TEST(PasswordHasherConcurrency, RefusesWhenTooManyWait) {
  IoThreads io;
  PasswordHasher hasher({.threads = 1, .max_waiting = 2});
  std::promise<void> running, go_on;
  auto held = go_on.get_future().share();
  auto busy = io.start(hasher.hash("password 1", [&running, held] {
    running.set_value();
    held.wait();
    return true;
  }));
  running.get_future().wait();
  std::vector<std::future<std::optional<std::string>>> others;
  others.reserve(3);
  for (int i = 0; i < 3; ++i) others.push_back(io.start(hasher.hash("password 1", always)));
  // While the only thread is held, only the one that found no place can be answered.
  const auto answered = [](auto& one) {
    return one.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready;
  };
  while (std::ranges::none_of(others, answered)) std::this_thread::yield();
  go_on.set_value();
  int refused = 0;
  for (auto& one : others) {
    try {
      EXPECT_TRUE(one.get());
    } catch (const Unavailable&) {
      ++refused;
    }
  }
  EXPECT_TRUE(busy.get());
  EXPECT_EQ(refused, 1);
}

}  // namespace
}  // namespace weir::site::user

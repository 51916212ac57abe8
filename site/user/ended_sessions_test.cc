#include "site/user/ended_sessions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace weir::site::user {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const WallTime kStart{seconds(1'700'000'000)};

TEST(EndedSessions, KnowsWhatItWasTold) {
  EndedSessions ended(hours(1));
  ended.add("a", kStart);
  ended.add("a", kStart + seconds(1));  // again: harmless
  EXPECT_TRUE(ended.has("a", kStart - minutes(5)));
  EXPECT_FALSE(ended.has("b", kStart - minutes(5)));
  EXPECT_EQ(ended.size(), 1U);
}

TEST(EndedSessions, ForgetsWhatHasNoLiveCookieLeft) {
  EndedSessions ended(hours(1));
  ended.add("old", kStart);
  ended.add("young", kStart + minutes(59));
  EXPECT_EQ(ended.size(), 2U);
  ended.add("new", kStart + minutes(62));
  EXPECT_EQ(ended.size(), 2U);
  EXPECT_FALSE(ended.has("old", kStart));
  EXPECT_TRUE(ended.has("young", kStart));
}

// What it can't keep it must not let back in: the cookies of that time are refused, whoever's they are.
TEST(EndedSessions, RefusesOldCookiesRatherThanForgettingWhichHaveEnded) {
  EndedSessions ended(hours(24), 3);
  for (int i = 0; i < 5; ++i) ended.add("s" + std::to_string(i), kStart + minutes(10 * i));
  EXPECT_EQ(ended.size(), 3U);
  EXPECT_TRUE(ended.has("s0", kStart - minutes(1)));
  EXPECT_TRUE(ended.has("s1", kStart + minutes(9)));
  EXPECT_TRUE(ended.has("s4", kStart + minutes(39)));
  EXPECT_TRUE(ended.has("innocent", kStart + minutes(10)));
  EXPECT_FALSE(ended.has("innocent", kStart + minutes(12)));
}

TEST(EndedSessionsConcurrency, ReadersSeeEveryEndThatCameBefore) {
  EndedSessions ended(hours(1), 1'000);
  std::atomic<int> added{0};
  std::atomic<bool> wrong{false};
  std::vector<std::thread> readers;
  readers.reserve(2);
  for (int r = 0; r < 2; ++r)
    readers.emplace_back([&] {
      while (added < 1'000)
        if (const int n = added; n > 0 && !ended.has(std::to_string(n - 1), kStart)) wrong = true;
    });
  for (int i = 0; i < 1'000; ++i) {
    ended.add(std::to_string(i), kStart + seconds(1));
    added = i + 1;
  }
  for (auto& reader : readers) reader.join();
  EXPECT_FALSE(wrong);
}

}  // namespace
}  // namespace weir::site::user

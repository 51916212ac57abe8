#include "weir/base/unique_function.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>

namespace weir {
namespace {

// Counts how many of it are alive.
struct Alive {
  explicit Alive(int& count) : count_(&count) { ++*count_; }
  Alive(Alive&& other) noexcept : count_(other.count_) { ++*count_; }
  ~Alive() { --*count_; }
  int* count_;
};

template <std::size_t kPadding>
void passes_through_moves() {
  int alive = 0;
  {
    UniqueFunction<int(int)> f(
        [a = Alive(alive), pad = std::array<char, kPadding>{}, one = std::make_unique<int>(1)](int n) {
          return n + *one + static_cast<int>(pad.size());
        });
    UniqueFunction<int(int)> moved(std::move(f));
    EXPECT_FALSE(f);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(moved(2), 3 + static_cast<int>(kPadding));
    UniqueFunction<int(int)> assigned([](int) { return 0; });
    assigned = std::move(moved);
    EXPECT_EQ(assigned(3), 4 + static_cast<int>(kPadding));
    EXPECT_EQ(alive, 1);
    assigned = {};
    EXPECT_FALSE(assigned);
    EXPECT_EQ(alive, 0);
  }
  EXPECT_EQ(alive, 0);
}

TEST(UniqueFunction, PassesSmallCallablesThroughMoves) {
  passes_through_moves<1>();
}

TEST(UniqueFunction, PassesLargeCallablesThroughMoves) {
  passes_through_moves<100>();
}

TEST(UniqueFunction, MayBeReplacedByWhatItCalls) {
  UniqueFunction<void()> f;
  int calls = 0;
  f = [&] {
    ++calls;
    // As one who waits does when it is woken and waits again.
    f = [&] { calls += 10; };
  };
  auto taken = std::move(f);
  taken();
  f();
  EXPECT_EQ(calls, 11);
}

}  // namespace
}  // namespace weir

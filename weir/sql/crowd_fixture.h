// A crowd that writes at once through two nodes on one store, and how often its writes had to be tried again. For tests.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "weir/base/id.h"
#include "weir/sql/database.h"

namespace weir::sql {

inline constexpr int kAtOnce = 8;
inline constexpr Id kTurns = 40;  // of each of those who are at once
inline constexpr Id kCrowd = kAtOnce * kTurns;
// Tries again that nobody minds, as a part of all writes. Whoever reads a row before changing it meets more.
inline constexpr double kFew = 0.02;

// Runs work(node, number) for the numbers from 1 to kCrowd, kAtOnce at a time, half of them with node 0 and half with
// node 1, whose databases those are. Prints what was measured; answers which part of the writes was tried again.
inline double crowd(const char* what, std::array<const Database*, 2> nodes,
                    const std::function<void(std::size_t, Id)>& work) {
  const auto totals = [&] {
    std::pair<double, double> sum{0, 0};
    for (const Database* node : nodes) {
      const auto stats = node->stats();
      sum.first += static_cast<double>(stats.writes);
      sum.second += static_cast<double>(stats.repeats);
    }
    return sum;
  };
  const auto [writes_before, repeats_before] = totals();
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::future<void>> all;
  for (int one = 0; one < kAtOnce; ++one)
    all.push_back(std::async(std::launch::async, [&work, one] {
      for (Id turn = 0; turn < kTurns; ++turn)
        work(static_cast<std::size_t>(one % 2), 1 + turn * kAtOnce + one);
    }));
  for (auto& one : all) one.get();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
  const auto [writes_after, repeats_after] = totals();
  const double writes = writes_after - writes_before, repeats = repeats_after - repeats_before;
  std::printf("%s: %.0f writes in %.2f s, %.0f tried again\n", what, writes, passed.count(), repeats);
  return repeats / writes;
}

}  // namespace weir::sql

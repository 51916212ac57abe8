// The domain of rankings: what is hot now. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::site::ranking {

// The ranking that is always there, and its job.
inline constexpr std::string_view kHot = "hot";
inline constexpr std::string_view kHotJob = "ranking:hot";

inline constexpr std::size_t kMaxTop = 100;  // places of a ranking

// An article that may be ranked.
struct Candidate {
  Id id = 0;
  WallTime published_at{};
};

struct Ranked {
  Id id = 0;
  double score = 0;
  std::int64_t likes = 0;  // when the score was computed
  WallTime published_at{};
  bool operator==(const Ranked&) const = default;
};
// By score, and of equal scores the newer id first. It leaves no ties.
struct Better {
  bool operator()(const Ranked& a, const Ranked& b) const {
    return a.score != b.score ? a.score > b.score : a.id > b.id;
  }
};

// What a run of the job leaves: the best first.
struct Ranking {
  std::string model;
  std::vector<Ranked> items;
  bool operator==(const Ranking&) const = default;
};

}  // namespace weir::site::ranking

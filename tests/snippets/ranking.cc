// What weir/ranking/README.md takes as given.
#include <memory>
#include <span>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/id.h"

using weir::Id;
using weir::WallTime;

struct Post {
  Id id;
  std::int64_t likes;
  WallTime published_at;
};
struct Entry {
  double score;
  Id id;
};
struct BetterEntry {
  bool operator()(const Entry& a, const Entry& b) const;
};
void show(const std::vector<Entry>& entries, bool stale);

void snippet(std::span<const Post> posts, WallTime now, std::uint64_t version) {
  // SNIPPET
}

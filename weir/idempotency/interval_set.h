// IntervalSet: an exact set of numbers as the intervals that they fill. A run of a million numbers is one
// interval.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::idempotency {

// Not thread-safe.
class IntervalSet {
 public:
  struct Interval {
    std::uint64_t first, last;  // both belong to it
    bool operator==(const Interval&) const = default;
  };

  // False when the number was there. O(1) for the number after the greatest, else O(log n) to find its place
  // and O(n) to make room.
  bool insert(std::uint64_t number);
  bool contains(std::uint64_t number) const;
  const std::vector<Interval>& intervals() const { return intervals_; }
  // Keeps the first `keep` intervals, takes the others away and answers them.
  IntervalSet split(std::size_t keep);

  // As bytes: for each interval the gap before it and its length, as varints. One interval is 2 to 20 bytes.
  std::vector<std::byte> encode() const;
  // Nothing for bytes that are no set.
  static std::optional<IntervalSet> decode(std::span<const std::byte> bytes);

 private:
  std::vector<Interval> intervals_;  // ascending, with a gap between any two
};

}  // namespace weir::idempotency

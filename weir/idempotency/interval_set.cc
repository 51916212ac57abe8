#include "weir/idempotency/interval_set.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "weir/queue/wire.h"

namespace weir::idempotency {
namespace {

using Interval = IntervalSet::Interval;

// The first interval that ends at the number or after it.
auto at_or_after(auto& intervals, std::uint64_t number) {
  return std::lower_bound(intervals.begin(), intervals.end(), number,
                          [](const Interval& interval, std::uint64_t n) { return interval.last < n; });
}

}  // namespace

bool IntervalSet::insert(std::uint64_t number) {
  if (!intervals_.empty() && intervals_.back().last < number && number - intervals_.back().last == 1) {
    intervals_.back().last = number;
    return true;
  }
  const auto next = at_or_after(intervals_, number);
  if (next != intervals_.end() && next->first <= number) return false;
  const bool joins_next = next != intervals_.end() && next->first - number == 1;
  const bool joins_previous = next != intervals_.begin() && number - std::prev(next)->last == 1;
  if (joins_previous && joins_next) {
    std::prev(next)->last = next->last;
    intervals_.erase(next);
  } else if (joins_previous) {
    std::prev(next)->last = number;
  } else if (joins_next) {
    next->first = number;
  } else {
    intervals_.insert(next, {number, number});
  }
  return true;
}

bool IntervalSet::contains(std::uint64_t number) const {
  const auto found = at_or_after(intervals_, number);
  return found != intervals_.end() && found->first <= number;
}

IntervalSet IntervalSet::split(std::size_t keep) {
  const auto middle = intervals_.begin() + static_cast<std::ptrdiff_t>(std::min(keep, intervals_.size()));
  IntervalSet upper;
  upper.intervals_.assign(middle, intervals_.end());
  intervals_.erase(middle, intervals_.end());
  return upper;
}

std::vector<std::byte> IntervalSet::encode() const {
  std::string out;
  std::uint64_t previous = 0;
  for (const Interval& interval : intervals_) {
    queue::detail::put_varint(out, interval.first - previous);
    queue::detail::put_varint(out, interval.last - interval.first);
    previous = interval.last;
  }
  const auto bytes = std::as_bytes(std::span(out));
  return {bytes.begin(), bytes.end()};
}

std::optional<IntervalSet> IntervalSet::decode(std::span<const std::byte> bytes) {
  queue::detail::WireReader in(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  IntervalSet set;
  std::uint64_t previous = 0;
  while (!in.at_end()) {
    const std::uint64_t gap = in.varint();
    const std::uint64_t length = in.varint();
    const std::uint64_t first = previous + gap;
    const std::uint64_t last = first + length;
    const bool ordered = first >= previous && last >= first && (set.intervals_.empty() || gap >= 2);
    if (!in.good() || !ordered) return std::nullopt;
    set.intervals_.push_back({first, last});
    previous = last;
  }
  return set;
}

}  // namespace weir::idempotency

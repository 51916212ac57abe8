#include "weir/base/backoff.h"

#include <algorithm>

namespace weir {

std::chrono::milliseconds Backoff::next(Random& random) {
  const auto wait = std::chrono::milliseconds(random.below(static_cast<std::uint64_t>(ceiling_.count()) + 1));
  ceiling_ = std::min(max_, ceiling_ * 2);
  return wait;
}

}  // namespace weir

// Membership: what a filter in front of a store can say about a key.
#pragma once

namespace weir::cache {

enum class Membership {
  absent,   // certainly not in the store: no load is needed
  unknown,  // the store must tell
  fresh,    // the store must tell, and an absence must not be kept: the row may be about to appear
};

}  // namespace weir::cache

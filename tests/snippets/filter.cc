// What weir/filter/README.md takes as given.
#include <cstdint>
#include <vector>

#include "weir/filter/bloom_filter.h"

void show(const weir::filter::Statistics& statistics);
std::vector<std::uint64_t> ids_in_the_store();

void snippet() {
  // SNIPPET
}

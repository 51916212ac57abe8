// Replaying a trace of keys: what a cache of some size would have made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace weir::site {

// A trace as numbers: the same for the same key, from 0 in the order in which keys first came.
struct Trace {
  std::vector<std::uint32_t> requests;
  std::uint32_t keys = 0;
};

// One key a line, gzipped or not; empty lines and a carriage return at a line's end are no part of it. Throws
// Unusable when the file can't be read, is damaged or cut short, holds no key, or a key of more than 64 KiB.
// Memory: four bytes a request and each key once.
Trace read_trace(const std::filesystem::path& file);

// How many of the requests were hits, when each miss puts its key.
struct Replay {
  std::size_t capacity = 0;  // entries
  std::size_t requests = 0;
  std::size_t weir = 0;     // through weir::cache::LocalCache
  std::size_t lru = 0;      // the least recently used goes
  std::size_t optimal = 0;  // Belady's: who is asked for last goes, a new one too. No cache can do better.
};

// O(requests * log(requests)). The same for the same trace.
Replay replay(const Trace& trace, std::size_t capacity);

std::size_t lru_hits(const Trace& trace, std::size_t capacity);
std::size_t optimal_hits(const Trace& trace, std::size_t capacity);

}  // namespace weir::site

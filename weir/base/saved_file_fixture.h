// For the fuzz targets of saved files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "weir/base/saved_file.h"

namespace weir {

// libFuzzer reports an abort together with the input that led to it.
inline void must(bool holds) {
  if (!holds) std::abort();
}

// Writes the number over the eight bytes that are there.
inline void overwrite_number(std::string& bytes, std::size_t at, std::uint64_t number) {
  std::string little_endian;
  append_number(little_endian, number);
  bytes.replace(at, little_endian.size(), little_endian);
}

}  // namespace weir

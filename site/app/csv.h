// CSV files by libcsv, gzipped or not.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace weir::site {

// Calls on_row for each row of the file, in order, with the row's number from 1. Throws Unusable when the
// file can't be read or isn't CSV (RFC 4180), and what on_row throws. Memory: a row.
void read_csv(const std::filesystem::path& file,
              const std::function<void(std::size_t number, const std::vector<std::string>& row)>& on_row);

}  // namespace weir::site

// Texts of statements whose length is known at run time.
#pragma once

#include <cstddef>
#include <string>

namespace weir::sql {

// SQLite takes at most this many parameters in one statement (MySQL 65,535).
inline constexpr std::size_t kMaxParameters = 32'766;

// placeholders(3) is "?,?,?", for IN (..). IN () of nothing is an error in MySQL, so n must be positive:
// throws Error misuse for 0 and above kMaxParameters.
std::string placeholders(std::size_t n);

// rows(2, 3) is "(?,?,?),(?,?,?)", for VALUES. The same limits for the product.
std::string rows(std::size_t rows, std::size_t columns);

}  // namespace weir::sql

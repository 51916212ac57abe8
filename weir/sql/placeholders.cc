#include "weir/sql/placeholders.h"

#include "weir/sql/error.h"

namespace weir::sql {
namespace {

// The piece n times, with commas between.
std::string repeat(const std::string& piece, std::size_t n) {
  std::string text;
  text.reserve(n * (piece.size() + 1));
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) text += ',';
    text += piece;
  }
  return text;
}

void check(std::size_t rows, std::size_t columns) {
  if (rows == 0 || columns == 0) throw Error(ErrorKind::misuse, "a list of no placeholders");
  if (columns > kMaxParameters || rows > kMaxParameters / columns)
    throw Error(ErrorKind::misuse, "more than " + std::to_string(kMaxParameters) + " placeholders");
}

}  // namespace

std::string placeholders(std::size_t n) {
  check(n, 1);
  return repeat("?", n);
}

std::string rows(std::size_t rows, std::size_t columns) {
  check(rows, columns);
  return repeat('(' + repeat("?", columns) + ')', rows);
}

}  // namespace weir::sql

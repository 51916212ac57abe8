#include "weir/sql/error.h"

namespace weir::sql {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::busy:
      return "busy";
    case ErrorKind::unique_violation:
      return "unique_violation";
    case ErrorKind::constraint:
      return "constraint";
    case ErrorKind::full:
      return "full";
    case ErrorKind::corrupt:
      return "corrupt";
    case ErrorKind::io:
      return "io";
    case ErrorKind::misuse:
      return "misuse";
    case ErrorKind::lost:
      return "lost";
    case ErrorKind::unknown:
      return "unknown_outcome";
  }
  return "unknown";
}

}  // namespace weir::sql

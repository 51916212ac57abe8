#include "weir/base/fault.h"

#include <cerrno>
#include <system_error>

namespace weir {

std::string errno_text(const std::string& what) {
  return what + ": " + std::generic_category().message(errno);
}

}  // namespace weir

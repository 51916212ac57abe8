// The server that the tests of weir::mysql share. For tests.
#pragma once

#include "weir/testing/mariadb_server.h"

namespace weir::sql {

inline MariadbServer& shared_server() {
  static MariadbServer one;
  return one;
}

}  // namespace weir::sql

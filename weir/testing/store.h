// A store for tests.
#pragma once

#include "weir/sql/database.h"
#include "weir/testing/temp_dir.h"

namespace weir {

// weir.db in the directory, without waits for the disk. Opening it again is a restart.
inline sql::Options store_in(const TempDir& directory) {
  sql::Options options;
  options.path = directory / "weir.db";
  options.full_sync = false;
  return options;
}

}  // namespace weir

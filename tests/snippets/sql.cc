// What weir/sql/README.md takes as given.
#include "weir/sql/database.h"

namespace weir {

extern const std::span<const sql::Migration> kMigrations;

boost::asio::awaitable<void> snippet(Id article) {
  // SNIPPET
}

}  // namespace weir

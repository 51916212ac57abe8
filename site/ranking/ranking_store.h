// RankingStore: the last good edition of each ranking, in SQL, so that it doesn't matter which process
// computed it, and a process that starts has one at once.
//
// Thread-safe. All calls block: for jobs and start-up, never an I/O thread. Throws sql::Error when the store
// fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "site/ranking/ranking.h"
#include "weir/sql/database.h"

namespace weir::site::ranking {

struct SavedRanking {
  std::uint64_t version = 0;
  WallTime computed_at{};
  Ranking ranking;
};

class RankingStore {
 public:
  // Brings the table up to date; blocks. The database must outlive the store.
  explicit RankingStore(sql::Database& database);

  // Replaces what is saved under the name; its version, which grows by one each time.
  std::uint64_t save_now(std::string_view name, const Ranking& ranking, WallTime computed_at);
  // 0: nothing was ever saved.
  std::uint64_t version_now(std::string_view name);
  std::optional<SavedRanking> load_now(std::string_view name);

 private:
  sql::Database& database_;
};

}  // namespace weir::site::ranking

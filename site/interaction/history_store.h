// HistoryStore: what each person read, newest first, in SQL. A thing is in it once, with the last time.
//
// Thread-safe. Throws sql::Error when the store fails.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <span>

#include "site/interaction/interaction.h"
#include "weir/idempotency/inbox.h"
#include "weir/sql/database.h"

namespace weir::site::interaction {

class HistoryStore {
 public:
  // Rows that one step of clearing deletes, so that other writes don't wait long.
  static constexpr std::int64_t kClearedAtOnce = 1'000;

  // Brings the tables up to date, the inbox's too; blocks. The database must outlive the store.
  explicit HistoryStore(sql::Database& database);

  boost::asio::awaitable<Listing<Entry>> list(Id user, EntrySlice slice);
  // Forgets all that was read up to `now`. It also writes down when, so that an event which was under way at
  // that moment doesn't come back into the history.
  boost::asio::awaitable<void> clear(Id user, WallTime now);

  // Remembers the reads that the inbox hasn't seen and that somebody known made. Throws Unusable for a
  // message that is no read. Blocks: for consumers.
  void record_now(const idempotency::Inbox& inbox, std::span<const queue::Message> messages);

 private:
  sql::Database& database_;
};

}  // namespace weir::site::interaction

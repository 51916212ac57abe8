// Counters that lose nothing: counts per (biz, biz_id), moved by whole batches of events.
//
//     counter::Counter reads({.table = "interactions", .column = "read_count"});
//     idempotency::Inbox inbox({.consumer = "interaction"});
//     auto counts = counter::count_batch(store, inbox, reads, messages);   // one transaction
//     for (const auto& count : counts) cache.fill_if_newer(...);           // after the commit
//
// A batch is aggregated by key and written by multi-row upserts, rows in key order: `cnt = cnt + ?, version =
// version + 1` in SQL. Nothing reads, adds and writes back. A count never goes below zero.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/id.h"
#include "weir/idempotency/inbox.h"
#include "weir/queue/event.h"
#include "weir/sql/database.h"

namespace weir::counter {

// What is counted: "article:42" in an event's key.
struct Subject {
  std::string_view biz;
  Id biz_id = 0;
};
// Nothing when the text isn't BIZ:ID with a BIZ of [a-z][a-z0-9_]{0,31} and a canonical id.
std::optional<Subject> parse_subject(std::string_view key);
std::string format_subject(std::string_view biz, Id biz_id);

struct Delta {
  std::string biz;
  Id biz_id = 0;
  std::int64_t by = 0;
};

// A count after a change. Of two of the same subject the one with the greater version is newer.
struct Count {
  std::string biz;
  Id biz_id = 0;
  std::int64_t count = 0;
  std::int64_t version = 0;
};

// Where the counts are. The table belongs to the caller; it must have `biz` TEXT and `biz_id` INTEGER, which
// together are its primary key, the column, `version` INTEGER, and defaults for all other columns. (On MySQL VARCHAR and
// BIGINT.)
struct Table {
  std::string table = "interactions";
  std::string column = "read_count";
  std::string module = "consumer";  // what its statements are counted as
};

class Counter {
 public:
  // Rows of one statement at most.
  static constexpr std::size_t kRowsPerStatement = 128;

  explicit Counter(Table table);

  // Adds each delta to its row in the session's transaction, creating rows that are missing; several deltas
  // of a subject are summed. A negative one stops at zero and creates nothing. Answers the rows that it
  // touched, in key order (biz, biz_id). O(n log n).
  std::vector<Count> add(sql::Session& session, std::vector<Delta> deltas) const;

 private:
  void add_rows(sql::Session& session, std::span<const Delta> deltas, std::vector<Count>& touched) const;
  void subtract(sql::Session& session, const Delta& delta, std::vector<Count>& touched) const;

  Table table_;
  std::vector<sql::Query>
      upserts_;  // for 1, 2, 4, .. kRowsPerStatement rows, so that prepared statements are few
  std::vector<sql::Query> selects_;  // for MySQL: what the upsert of so many rows left
  sql::Query decrement_;
};

// Sums the messages by their keys, one for each. Throws Unusable for a key that is no subject, so that the
// consumer isolates and parks that message.
std::vector<Delta> aggregate(std::span<const queue::Message> messages);

// One transaction: the inbox, then one count for each fresh message. Answers the rows that it touched.
// Blocks.
std::vector<Count> count_batch(sql::Database& store, const idempotency::Inbox& inbox, const Counter& counter,
                               std::span<const queue::Message> messages);

}  // namespace weir::counter

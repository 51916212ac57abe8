// InteractionStore: counts and likes in SQL.
//
// A like is a row with a status that is never deleted; the count moves in the same transaction, and only when
// the status really changed. So liking twice counts once, whatever happens in between, and taking a like back
// that never was changes nothing. Reads are counted by whole batches, in one transaction with their inbox.
//
// Thread-safe. Throws sql::Error when the store fails.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/interaction/interaction.h"
#include "weir/counter/counter.h"
#include "weir/idempotency/inbox.h"
#include "weir/sql/database.h"

namespace weir::site::interaction {

class InteractionStore {
 public:
  // Rows of one transaction in bulk, so that other writes don't wait long.
  static constexpr std::size_t kMaxBatch = 1'000;

  // Brings the tables up to date, the inbox's too; blocks. The database must outlive the store.
  explicit InteractionStore(sql::Database& database);

  boost::asio::awaitable<std::optional<Counts>> counts(Subject subject);
  // Those that have counts, in any order.
  boost::asio::awaitable<std::vector<SubjectCounts>> counts_of(std::vector<Subject> subjects);
  boost::asio::awaitable<Mine> mine(Id user, Subject subject);
  // In the order of `ids`, of which there are at most kMaxBulk; one statement.
  boost::asio::awaitable<std::vector<Mine>> mine_of(Id user, std::string biz, std::vector<Id> ids);

  // The counts after the change, or nothing when it already was so. Two statements when it changes, one when
  // it doesn't; on MySQL up to two more.
  boost::asio::awaitable<std::optional<Counts>> set_like(Id user, Subject subject, bool liked, WallTime now);

  // --- These block: for consumers, jobs and commands, never an I/O thread ---

  // Counts the reads that the inbox hasn't seen; the counts of all things that it touched.
  std::vector<SubjectCounts> count_reads_now(const idempotency::Inbox& inbox,
                                             std::span<const queue::Message> messages);
  // How much each is liked, in the order of `ids` (at most sql::kMaxParameters - 1), by one statement off the
  // primary key.
  std::vector<std::int64_t> like_counts_now(std::string_view biz, std::span<const Id> ids);
  // All things of the kind that are liked at least so often (`likes` > 0), off a covering index; nothing when
  // they are more than `limit`.
  std::optional<std::vector<std::pair<Id, std::int64_t>>> liked_at_least_now(std::string_view biz,
                                                                             std::int64_t likes,
                                                                             std::size_t limit);
  // Likes that are there already stay as they are.
  void like_many_now(std::string_view biz, std::span<const Like> likes);
  // Sets how many likes each brought along, replacing what an earlier import said.
  void import_likes_now(std::string_view biz, std::span<const ImportedLikes> likes);
  void add_reads_now(std::string_view biz, std::span<const std::pair<Id, std::int64_t>> reads);

  // Puts the counts of likes and collections of the `limit` things behind `after` right, from their rows: finds
  // those that are wrong, at one moment, and mends them in one transaction. Says where it came to (nothing at the
  // end) and what it changed.
  struct Recounted {
    std::optional<Subject> last;
    std::vector<SubjectCounts> changed;
  };
  Recounted recount_now(const Subject& after, std::size_t limit);

 private:
  sql::Database& database_;
  const counter::Counter reads_;
};

}  // namespace weir::site::interaction

#include "site/interaction/history_store.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "weir/base/fault.h"
#include "weir/counter/counter.h"
#include "weir/sql/transaction.h"

namespace weir::site::interaction {
namespace {

const std::array kMigrations{sql::Migration{1, "history", R"sql(
  CREATE TABLE history (
    id      INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    biz     TEXT NOT NULL,
    biz_id  INTEGER NOT NULL,
    read_at INTEGER NOT NULL,
    UNIQUE (user_id, biz, biz_id)
  ) STRICT;
  CREATE INDEX history_of_user ON history (user_id, read_at);
  CREATE TABLE history_cleared (
    user_id    INTEGER PRIMARY KEY,
    cleared_at INTEGER NOT NULL
  ) STRICT;
)sql",
                                            R"sql(
  CREATE TABLE history (
    id      BIGINT NOT NULL AUTO_INCREMENT UNIQUE,
    user_id BIGINT NOT NULL,
    biz     VARCHAR(32) NOT NULL,
    biz_id  BIGINT NOT NULL,
    read_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, biz, biz_id)
  );
  CREATE INDEX history_of_user ON history (user_id, read_at, id);
  CREATE TABLE history_cleared (
    user_id    BIGINT NOT NULL PRIMARY KEY,
    cleared_at BIGINT NOT NULL
  );
)sql"}};

const sql::Query kRecord{
    "consumer", "history",
    "INSERT INTO history (user_id, biz, biz_id, read_at) SELECT ?, ?, ?, ? WHERE NOT EXISTS "
    "(SELECT 1 FROM history_cleared WHERE user_id = ? AND cleared_at >= ?) "
    "ON CONFLICT (user_id, biz, biz_id) DO UPDATE SET read_at = excluded.read_at "
    "WHERE excluded.read_at > read_at",
    "INSERT INTO history (user_id, biz, biz_id, read_at) SELECT ?, ?, ?, ? FROM DUAL WHERE NOT EXISTS "
    "(SELECT 1 FROM history_cleared WHERE user_id = ? AND cleared_at >= ?) "
    "ON DUPLICATE KEY UPDATE read_at = greatest(history.read_at, VALUES(read_at))"};
const sql::Query kList{"interaction", "history",
                       "SELECT id, biz, biz_id, read_at FROM history WHERE user_id = ? "
                       "ORDER BY read_at DESC, id DESC LIMIT ? OFFSET ?"};
const sql::Query kListAfter{"interaction", "history",
                            "SELECT id, biz, biz_id, read_at FROM history WHERE user_id = ? AND read_at <= ? "
                            "AND (read_at, id) < (?, ?) "
                            "ORDER BY read_at DESC, id DESC LIMIT ?"};
const sql::Query kTotal{"interaction", "history_total", "SELECT count(*) FROM history WHERE user_id = ?"};
const sql::Query kCleared{
    "interaction", "history_cleared",
    "INSERT INTO history_cleared (user_id, cleared_at) VALUES (?, ?) ON CONFLICT (user_id) "
    "DO UPDATE SET cleared_at = max(cleared_at, excluded.cleared_at)",
    "INSERT INTO history_cleared (user_id, cleared_at) VALUES (?, ?) ON DUPLICATE KEY UPDATE "
    "cleared_at = greatest(cleared_at, VALUES(cleared_at))"};
const sql::Query kClear{"interaction", "clear_history",
                        "DELETE FROM history WHERE id IN "
                        "(SELECT id FROM history WHERE user_id = ? AND read_at <= ? LIMIT ?)",
                        "DELETE FROM history WHERE user_id = ? AND read_at <= ? LIMIT ?"};

Entry read_entry(const sql::Row& row) {
  return {row.get<Id>(0), {row.get<std::string>(1), row.get<Id>(2)}, row.get<WallTime>(3)};
}

// The last time that each person read each thing, in key order.
using Reads = std::map<std::tuple<Id, std::string_view, Id>, WallTime>;

Reads last_reads(std::span<const queue::Message> messages) {
  Reads reads;
  for (const auto& message : messages) {
    const auto user = decode_read(message.payload);
    const auto subject = counter::parse_subject(message.key);
    if (!user || !subject) throw Unusable("not a read of a thing by somebody");
    if (*user == 0) continue;
    auto& at = reads[{*user, subject->biz, subject->biz_id}];
    at = std::max(at, message.appended_at);
  }
  return reads;
}

}  // namespace

HistoryStore::HistoryStore(sql::Database& database) : database_(database) {
  database_.migrate("idempotency", idempotency::migrations());
  database_.migrate("history", kMigrations);
}

boost::asio::awaitable<Listing<Entry>> HistoryStore::list(Id user, EntrySlice slice) {
  co_return co_await database_.read([user, slice](sql::Session& session) {
    const sql::Transaction same_moment(session);
    auto listing =
        listing_of(slice.after ? session.all(kListAfter, read_entry, user, slice.after->at, slice.after->at,
                                             slice.after->row, slice.limit + 1)
                               : session.all(kList, read_entry, user, slice.limit + 1, slice.offset),
                   slice.limit);
    if (slice.with_total) listing.total = session.one(kTotal, sql::first<std::int64_t>, user);
    return listing;
  });
}

boost::asio::awaitable<void> HistoryStore::clear(Id user, WallTime now) {
  co_await database_.write([user, now](sql::Session& session) { session.execute(kCleared, user, now); });
  for (std::int64_t deleted = kClearedAtOnce; deleted == kClearedAtOnce;)
    deleted = co_await database_.write([user, now](sql::Session& session) {
      return session.execute(kClear, user, now, kClearedAtOnce).rows;
    });
}

void HistoryStore::record_now(const idempotency::Inbox& inbox, std::span<const queue::Message> messages) {
  inbox.process(database_, messages, [](sql::Session& session, std::span<const queue::Message> fresh) {
    for (const auto& [key, at] : last_reads(fresh)) {
      const auto& [user, biz, id] = key;
      session.execute(kRecord, user, biz, id, at, user, at);
    }
  });
}

}  // namespace weir::site::interaction

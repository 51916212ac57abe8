#include "site/interaction/interaction_store.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "site/interaction/counts_table.h"
#include "weir/sql/placeholders.h"
#include "weir/sql/transaction.h"

namespace weir::site::interaction {
namespace {

// `imported_likes` are those that a thing brought along from elsewhere, whose givers have no rows here:
// like_count is they and the rows together.
const std::array kMigrations{sql::Migration{1, "interactions", R"sql(
  CREATE TABLE interactions (
    biz            TEXT NOT NULL,
    biz_id         INTEGER NOT NULL,
    read_count     INTEGER NOT NULL DEFAULT 0 CHECK (read_count >= 0),
    like_count     INTEGER NOT NULL DEFAULT 0 CHECK (like_count >= 0),
    collect_count  INTEGER NOT NULL DEFAULT 0 CHECK (collect_count >= 0),
    imported_likes INTEGER NOT NULL DEFAULT 0 CHECK (imported_likes >= 0),
    version        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (biz, biz_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX interactions_by_likes ON interactions (biz, like_count) WHERE like_count > 0;
  CREATE TABLE likes (
    user_id    INTEGER NOT NULL,
    biz        TEXT NOT NULL,
    biz_id     INTEGER NOT NULL,
    status     INTEGER NOT NULL CHECK (status IN (0, 1)),
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, biz, biz_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX likes_of_thing ON likes (biz, biz_id) WHERE status = 1;
)sql",
                                            R"sql(
  CREATE TABLE interactions (
    biz            VARCHAR(32) NOT NULL,
    biz_id         BIGINT NOT NULL,
    read_count     BIGINT NOT NULL DEFAULT 0 CHECK (read_count >= 0),
    like_count     BIGINT NOT NULL DEFAULT 0 CHECK (like_count >= 0),
    collect_count  BIGINT NOT NULL DEFAULT 0 CHECK (collect_count >= 0),
    imported_likes BIGINT NOT NULL DEFAULT 0 CHECK (imported_likes >= 0),
    version        BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (biz, biz_id)
  );
  CREATE INDEX interactions_by_likes ON interactions (biz, like_count);
  CREATE TABLE likes (
    user_id    BIGINT NOT NULL,
    biz        VARCHAR(32) NOT NULL,
    biz_id     BIGINT NOT NULL,
    status     TINYINT NOT NULL CHECK (status IN (0, 1)),
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, biz, biz_id)
  );
  CREATE INDEX likes_of_thing ON likes (biz, biz_id, status);
)sql"}};

// On MySQL this makes the row of a like that isn't given, if there is none, and locks it; kGiveLike tells whether it was
// given then. An update alone that finds no row locks the gap where others put theirs.
const sql::Query kLike{
    "interaction", "like",
    "INSERT INTO likes (user_id, biz, biz_id, status, updated_at) VALUES (?, ?, ?, 1, ?) "
    "ON CONFLICT (user_id, biz, biz_id) DO UPDATE SET status = 1, updated_at = excluded.updated_at "
    "WHERE status = 0",
    "INSERT INTO likes (user_id, biz, biz_id, status, updated_at) VALUES (?, ?, ?, 0, ?) "
    "ON DUPLICATE KEY UPDATE status = status"};
const sql::Query kGiveLike{"interaction", "give_like",
                           "UPDATE likes SET status = 1, updated_at = ? "
                           "WHERE user_id = ? AND biz = ? AND biz_id = ? AND status = 0"};
const sql::Query kUnlike{"interaction", "unlike",
                         "UPDATE likes SET status = 0, updated_at = ? "
                         "WHERE user_id = ? AND biz = ? AND biz_id = ? AND status = 1"};
// Both lie on the unique indexes of their tables.
const sql::Query kMine{
    "interaction", "mine",
    "SELECT EXISTS (SELECT 1 FROM likes WHERE user_id = ? AND biz = ? AND biz_id = ? AND status = 1), "
    "EXISTS (SELECT 1 FROM collected WHERE user_id = ? AND biz = ? AND biz_id = ? AND status = 1)"};
const sql::Query kLikesBetween{
    "ranking", "likes_between",
    "SELECT biz_id, like_count FROM interactions WHERE biz = ? AND biz_id BETWEEN ? AND ?"};
// "> 0" is what tells SQLite that the partial index has them all.
const sql::Query kLikedAtLeast{"ranking", "liked_at_least",
                               "SELECT biz_id, like_count FROM interactions "
                               "WHERE biz = ? AND like_count >= ? AND like_count > 0 LIMIT ?"};
const sql::Query kImportLikes{
    "interaction", "import_likes",
    "INSERT INTO interactions (biz, biz_id, like_count, imported_likes, version) VALUES (?, ?, ?, ?, 1) "
    "ON CONFLICT (biz, biz_id) DO UPDATE SET like_count = max(like_count - imported_likes + "
    "excluded.imported_likes, 0), "
    "imported_likes = excluded.imported_likes, version = version + 1 "
    "WHERE imported_likes <> excluded.imported_likes",
    // Each assignment sees what those before it have done.
    "INSERT INTO interactions (biz, biz_id, like_count, imported_likes, version) VALUES (?, ?, ?, ?, 1) "
    "ON DUPLICATE KEY UPDATE version = version + (imported_likes <> VALUES(imported_likes)), "
    "like_count = greatest(like_count - imported_likes + VALUES(imported_likes), 0), "
    "imported_likes = VALUES(imported_likes)"};
// The next things that have a count or a row, in key order. Each part walks its index from the key on, and
// the parts are merged, so a step costs what it returns. MySQL knows no range of pairs, and merges parts that are cut.
#define WEIR_BEHIND "((biz = ? AND biz_id > ?) OR biz > ?) ORDER BY biz, biz_id LIMIT ?"
const sql::Query kNextThings{
    "interaction", "recount_next",
    "SELECT biz, biz_id FROM interactions WHERE (biz, biz_id) > (?, ?) "
    "UNION SELECT biz, biz_id FROM likes WHERE status = 1 AND (biz, biz_id) > (?, ?) "
    "UNION SELECT biz, biz_id FROM collected WHERE status = 1 AND (biz, biz_id) > (?, ?) "
    "ORDER BY biz, biz_id LIMIT ?"};
const sql::Query kNextThingsCut{
    "interaction", "recount_next",
    "(SELECT biz, biz_id FROM interactions WHERE " WEIR_BEHIND
    ") UNION (SELECT DISTINCT biz, biz_id FROM likes WHERE status = 1 AND " WEIR_BEHIND
    ") UNION (SELECT DISTINCT biz, biz_id FROM collected WHERE status = 1 AND " WEIR_BEHIND
    ") ORDER BY biz, biz_id LIMIT ?"};
#undef WEIR_BEHIND
// Whether its counts aren't what the rows are, looked at without a lock.
#define WEIR_LIKES "(SELECT count(*) FROM likes WHERE biz = ? AND biz_id = ? AND status = 1)"
#define WEIR_COLLECTS "(SELECT count(*) FROM collected WHERE biz = ? AND biz_id = ? AND status = 1)"
const sql::Query kIsRight{
    "interaction", "recount_look",
    "SELECT 1 FROM interactions WHERE biz = ? AND biz_id = ? AND like_count = imported_likes + " WEIR_LIKES
    " AND collect_count = " WEIR_COLLECTS};
const sql::Query kRecount{
    "interaction", "recount",
    "INSERT INTO interactions AS i (biz, biz_id, like_count, collect_count, version) "
    "SELECT ?, ?, " WEIR_LIKES ", " WEIR_COLLECTS
    ", 1 WHERE true "
    "ON CONFLICT (biz, biz_id) DO UPDATE SET like_count = i.imported_likes + excluded.like_count, "
    "collect_count = excluded.collect_count, version = i.version + 1 "
    "WHERE i.like_count <> i.imported_likes + excluded.like_count OR i.collect_count <> "
    "excluded.collect_count",
    "INSERT INTO interactions (biz, biz_id, like_count, collect_count, version) "
    "SELECT ?, ?, " WEIR_LIKES ", " WEIR_COLLECTS
    ", 1 FROM DUAL ON DUPLICATE KEY UPDATE "
    "version = version + (like_count <> imported_likes + VALUES(like_count) OR "
    "collect_count <> VALUES(collect_count)), "
    "like_count = imported_likes + VALUES(like_count), collect_count = VALUES(collect_count)"};
#undef WEIR_LIKES
#undef WEIR_COLLECTS

bool change_like(sql::Session& session, Id user, const Subject& subject, bool liked, WallTime now) {
  if (!liked) return session.execute(kUnlike, now, user, subject.biz, subject.id).rows > 0;
  const auto made = session.execute(kLike, user, subject.biz, subject.id, now);
  if (session.dialect() == sql::Dialect::sqlite) return made.rows > 0;
  return session.execute(kGiveLike, now, user, subject.biz, subject.id).rows > 0;
}

std::vector<Subject> next_things(sql::Session& session, const Subject& after, std::size_t limit) {
  const auto read = [](const sql::Row& row) { return Subject{row.get<std::string>(0), row.get<Id>(1)}; };
  const auto& [biz, id] = after;
  if (session.dialect() == sql::Dialect::sqlite)
    return session.all(kNextThings, read, biz, id, biz, id, biz, id, limit);
  return session.all(kNextThingsCut, read, biz, id, biz, limit, biz, id, biz, limit, biz, id, biz, limit,
                     limit);
}

bool is_right(sql::Session& session, const Subject& subject) {
  const auto& [biz, id] = subject;
  return session.one(kIsRight, sql::first<int>, biz, id, biz, id, biz, id).has_value();
}

// Puts the thing's counts right and reads them; the rows are locked before the counts, as by who likes.
Counts recount(sql::Session& session, const Subject& subject) {
  const auto& [biz, id] = subject;
  session.execute(kRecount, biz, id, biz, id, biz, id);
  return counts_table::find(session, subject).value();
}

// Those of `ids` for which the user has a row with status 1.
std::vector<Id> marked(sql::Session& session, const std::string& table, Id user, const std::string& biz,
                       const std::vector<Id>& ids) {
  std::vector<sql::Value> keys{user, biz};
  keys.insert(keys.end(), ids.begin(), ids.end());
  const sql::Query query{"interaction", table + "_of",
                         "SELECT biz_id FROM " + table +
                             " WHERE user_id = ? AND biz = ? AND status = 1 AND biz_id IN (" +
                             sql::placeholders(ids.size()) + ")"};
  return session.all_of(query, keys, sql::first<Id>);
}

// Whether walking the primary key from the least id to the greatest costs less than looking each of them up.
// Ids come in time order more or less, so it nearly always does; a look-up is worth about four steps.
bool dense(std::span<const std::size_t> order, std::span<const Id> ids) {
  const Id least = ids[order.front()], greatest = ids[order.back()];
  return static_cast<std::uint64_t>(greatest - least) < 4 * static_cast<std::uint64_t>(ids.size());
}

std::vector<std::size_t> order_of(std::span<const Id> ids) {
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return ids[i]; });
  return order;
}

}  // namespace

InteractionStore::InteractionStore(sql::Database& database)
    : database_(database), reads_({.table = "interactions", .column = "read_count", .module = "consumer"}) {
  database_.migrate("idempotency", idempotency::migrations());
  database_.migrate("interaction", kMigrations);
}

boost::asio::awaitable<std::optional<Counts>> InteractionStore::counts(Subject subject) {
  co_return co_await database_.read(
      [subject = std::move(subject)](sql::Session& session) { return counts_table::find(session, subject); });
}

boost::asio::awaitable<std::vector<SubjectCounts>> InteractionStore::counts_of(
    std::vector<Subject> subjects) {
  co_return co_await database_.read([subjects = std::move(subjects)](sql::Session& session) {
    return counts_table::find_all(session, subjects, "interaction");
  });
}

boost::asio::awaitable<Mine> InteractionStore::mine(Id user, Subject subject) {
  co_return co_await database_.read([user, subject = std::move(subject)](sql::Session& session) {
    const auto read = [](const sql::Row& row) { return Mine{row.get<bool>(0), row.get<bool>(1)}; };
    return session.one(kMine, read, user, subject.biz, subject.id, user, subject.biz, subject.id)
        .value_or(Mine{});
  });
}

boost::asio::awaitable<std::vector<Mine>> InteractionStore::mine_of(Id user, std::string biz,
                                                                    std::vector<Id> ids) {
  if (ids.empty()) co_return std::vector<Mine>{};
  co_return co_await database_.read(
      [user, biz = std::move(biz), ids = std::move(ids)](sql::Session& session) {
        const auto liked = marked(session, "likes", user, biz, ids);
        const auto collected = marked(session, "collected", user, biz, ids);
        std::vector<Mine> mine;
        mine.reserve(ids.size());
        for (const Id id : ids)
          mine.push_back({std::ranges::find(liked, id) != liked.end(),
                          std::ranges::find(collected, id) != collected.end()});
        return mine;
      });
}

boost::asio::awaitable<std::optional<Counts>> InteractionStore::set_like(Id user, Subject subject, bool liked,
                                                                         WallTime now) {
  co_return co_await database_.write(
      [user, subject = std::move(subject), liked, now](sql::Session& session) -> std::optional<Counts> {
        if (!change_like(session, user, subject, liked, now)) return std::nullopt;
        const auto by = liked ? counts_table::By::plus_one : counts_table::By::minus_one;
        return counts_table::move_likes(session, subject, by);
      });
}

std::vector<SubjectCounts> InteractionStore::count_reads_now(const idempotency::Inbox& inbox,
                                                             std::span<const queue::Message> messages) {
  return inbox.process(database_, messages,
                       [this](sql::Session& session, std::span<const queue::Message> fresh) {
                         std::vector<Subject> touched;
                         for (auto& count : reads_.add(session, counter::aggregate(fresh)))
                           touched.push_back({std::move(count.biz), count.biz_id});
                         // The other counts too, so that what is cached is replaced as a whole, and only by
                         // what is newer as a whole.
                         return counts_table::find_all(session, touched, "consumer");
                       });
}

std::vector<std::int64_t> InteractionStore::like_counts_now(std::string_view biz, std::span<const Id> ids) {
  std::vector<std::int64_t> likes(ids.size());
  if (ids.empty()) return likes;
  const auto order = order_of(ids);
  auto next = order.begin();
  // Rows come in the order of ids, so one walk over both puts each count in its place; an id may be there
  // twice.
  const auto put = [&](const sql::Row& row) {
    const Id id = row.get<Id>(0);
    while (next != order.end() && ids[*next] < id) ++next;
    for (; next != order.end() && ids[*next] == id; ++next) likes[*next] = row.get<std::int64_t>(1);
    return next != order.end();
  };
  database_.read_now([&](sql::Session& session) {
    if (dense(order, ids)) {
      session.each(kLikesBetween, put, biz, ids[order.front()], ids[order.back()]);
      return;
    }
    std::vector<sql::Value> keys{std::string(biz)};
    keys.insert(keys.end(), ids.begin(), ids.end());
    const sql::Query query{"ranking", "likes_of",
                           "SELECT biz_id, like_count FROM interactions WHERE biz = ? AND biz_id IN (" +
                               sql::placeholders(ids.size()) + ") ORDER BY biz_id"};
    session.each_of(query, keys, put);
  });
  return likes;
}

std::optional<std::vector<std::pair<Id, std::int64_t>>> InteractionStore::liked_at_least_now(
    std::string_view biz, std::int64_t likes, std::size_t limit) {
  auto found = database_.read_now([&](sql::Session& session) {
    const auto read = [](const sql::Row& row) { return std::pair(row.get<Id>(0), row.get<std::int64_t>(1)); };
    return session.all(kLikedAtLeast, read, biz, likes, limit + 1);
  });
  if (found.size() > limit) return std::nullopt;
  return found;
}

void InteractionStore::like_many_now(std::string_view biz, std::span<const Like> likes) {
  const counter::Counter counts({.table = "interactions", .column = "like_count", .module = "interaction"});
  const std::string kind(biz);
  while (!likes.empty()) {
    std::vector<Like> some(likes.begin(), likes.begin() + std::min(likes.size(), kMaxBatch));
    likes = likes.subspan(some.size());
    // First the rows, then the counts, each in the order of their keys, as single likes take them too.
    std::ranges::sort(some, {}, [](const Like& like) { return std::pair(like.user_id, like.biz_id); });
    database_.write_now([&](sql::Session& session) {
      std::vector<counter::Delta> deltas;
      for (const Like& like : some)
        if (change_like(session, like.user_id, {kind, like.biz_id}, true, like.at))
          deltas.push_back({kind, like.biz_id, 1});
      counts.add(session, std::move(deltas));
    });
  }
}

void InteractionStore::import_likes_now(std::string_view biz, std::span<const ImportedLikes> likes) {
  while (!likes.empty()) {
    // In the order of their keys; of two for one thing the later one holds.
    std::map<Id, std::int64_t> some;
    const auto batch = likes.first(std::min(likes.size(), kMaxBatch));
    for (const ImportedLikes& one : batch) some[one.biz_id] = one.likes;
    likes = likes.subspan(batch.size());
    database_.write_now([&](sql::Session& session) {
      for (const auto& [id, brought] : some) session.execute(kImportLikes, biz, id, brought, brought);
    });
  }
}

void InteractionStore::add_reads_now(std::string_view biz,
                                     std::span<const std::pair<Id, std::int64_t>> reads) {
  while (!reads.empty()) {
    const auto some = reads.first(std::min(reads.size(), kMaxBatch));
    reads = reads.subspan(some.size());
    std::vector<counter::Delta> deltas;
    for (const auto& [id, by] : some) deltas.push_back({std::string(biz), id, by});
    database_.write_now([&](sql::Session& session) { reads_.add(session, deltas); });
  }
}

InteractionStore::Recounted InteractionStore::recount_now(const Subject& after, std::size_t limit) {
  // Nearly all are right, and finding that out keeps nobody from writing.
  std::vector<Subject> things;
  std::vector<SubjectCounts> wrong;
  database_.read_now([&](sql::Session& session) {
    const sql::Transaction same_moment(session);
    things = next_things(session, after, limit);
    for (const Subject& thing : things)
      if (!is_right(session, thing))
        wrong.push_back({thing, counts_table::find(session, thing).value_or(Counts{})});
  });
  Recounted recounted;
  if (!things.empty()) recounted.last = things.back();
  if (wrong.empty()) return recounted;
  recounted.changed = database_.write_now([&](sql::Session& session) {
    std::vector<SubjectCounts> changed;
    for (const auto& [thing, before] : wrong)
      if (const Counts counts = recount(session, thing); counts != before) changed.push_back({thing, counts});
    return changed;
  });
  return recounted;
}

}  // namespace weir::site::interaction

#include "site/interaction/counts_table.h"

#include <algorithm>
#include <string>

#include "weir/sql/placeholders.h"

namespace weir::site::interaction::counts_table {
namespace {

// Keys of one statement at most: it keeps the number of different texts, which are kept prepared, small.
constexpr std::size_t kKeysPerStatement = 128;

// On SQLite it answers the counts; MySQL has no RETURNING, so there they are read after it.
sql::Query add_one(std::string operation, const std::string& column) {
  const std::string insert =
      "INSERT INTO interactions (biz, biz_id, " + column + ", version) VALUES (?, ?, 1, 1) ";
  const std::string set = column + " = " + column + " + 1, version = version + 1";
  return {"interaction", std::move(operation),
          insert + "ON CONFLICT (biz, biz_id) DO UPDATE SET " + set + " RETURNING " + std::string(kColumns),
          insert + "ON DUPLICATE KEY UPDATE " + set};
}
sql::Query take_one(std::string operation, const std::string& column) {
  const auto text = [&](const std::string& greatest) {
    return "UPDATE interactions SET " + column + " = " + greatest + "(" + column +
           " - 1, 0), version = version + 1 WHERE biz = ? AND biz_id = ?";
  };
  return {"interaction", std::move(operation), text("max") + " RETURNING " + std::string(kColumns),
          text("greatest")};
}

const sql::Query kAddLike = add_one("add_like", "like_count");
const sql::Query kTakeLike = take_one("take_like", "like_count");
const sql::Query kAddCollect = add_one("add_collect", "collect_count");
const sql::Query kTakeCollect = take_one("take_collect", "collect_count");
const sql::Query kFind{"interaction", "counts",
                       "SELECT " + std::string(kColumns) + " FROM interactions WHERE biz = ? AND biz_id = ?"};

// What a statement without RETURNING left.
const sql::Query kMoved{"interaction", "moved_counts", kFind.text};

std::optional<Counts> ask(sql::Session& session, const sql::Query& query, const Subject& subject) {
  return session.one(query, [](const sql::Row& row) { return read_counts(row, 0); }, subject.biz, subject.id);
}

std::optional<Counts> move(sql::Session& session, const sql::Query& query, const Subject& subject) {
  if (session.dialect() == sql::Dialect::sqlite) return ask(session, query, subject);
  session.execute(query, subject.biz, subject.id);
  return ask(session, kMoved, subject);
}

}  // namespace

Counts read_counts(const sql::Row& row, int first_column) {
  return {row.get<std::int64_t>(first_column), row.get<std::int64_t>(first_column + 1),
          row.get<std::int64_t>(first_column + 2), row.get<std::int64_t>(first_column + 3)};
}

std::optional<Counts> move_likes(sql::Session& session, const Subject& subject, By by) {
  return move(session, by == By::plus_one ? kAddLike : kTakeLike, subject);
}

std::optional<Counts> move_collects(sql::Session& session, const Subject& subject, By by) {
  return move(session, by == By::plus_one ? kAddCollect : kTakeCollect, subject);
}

std::optional<Counts> find(sql::Session& session, const Subject& subject) {
  return ask(session, kFind, subject);
}

std::vector<SubjectCounts> find_all(sql::Session& session, std::span<const Subject> subjects,
                                    std::string_view module) {
  std::vector<SubjectCounts> found;
  found.reserve(subjects.size());
  std::vector<sql::Value> keys;
  while (!subjects.empty()) {
    const auto some = subjects.first(std::min(subjects.size(), kKeysPerStatement));
    subjects = subjects.subspan(some.size());
    keys.clear();
    for (const Subject& subject : some) {
      keys.emplace_back(subject.biz);
      keys.emplace_back(subject.id);
    }
    const sql::Query query{
        std::string(module), "counts_of",
        "WITH asked (biz, biz_id) AS (VALUES " + sql::rows(some.size(), 2) + ") SELECT i.biz, " +
            "i.biz_id, " + std::string(kColumns) +
            " FROM asked CROSS JOIN interactions AS i ON i.biz = asked.biz AND i.biz_id = asked.biz_id",
        // Of a small table MySQL would rather read, and within a write lock, all rows.
        "SELECT biz, biz_id, " + std::string(kColumns) +
            " FROM interactions FORCE INDEX (PRIMARY) WHERE (biz, biz_id) IN (" + sql::rows(some.size(), 2) +
            ")"};
    session.each_of(query, keys, [&](const sql::Row& row) {
      found.push_back({{row.get<std::string>(0), row.get<Id>(1)}, read_counts(row, 2)});
    });
  }
  return found;
}

}  // namespace weir::site::interaction::counts_table

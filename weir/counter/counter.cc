#include "weir/counter/counter.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "weir/base/fault.h"
#include "weir/base/hash.h"
#include "weir/sql/placeholders.h"

namespace weir::counter {
namespace {

constexpr std::size_t kMaxBizBytes = 32;

bool is_biz(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= kMaxBizBytes && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

auto key_of(const auto& row) {
  return std::tie(row.biz, row.biz_id);
}

constexpr auto kByKey = [](const auto& a, const auto& b) { return key_of(a) < key_of(b); };

// "INSERT INTO t (biz, biz_id, c, version) VALUES (?, ?, ?, 1), .. ON CONFLICT .. RETURNING ..". New rows and
// old ones alike: no select before, and the database does the sum. MySQL has no RETURNING: there they are read after it.
sql::Query upsert(const Table& table, std::size_t rows) {
  const std::string& column = table.column;
  std::string text = "INSERT INTO " + table.table + " (biz, biz_id, " + column + ", version) VALUES ";
  for (std::size_t i = 0; i < rows; ++i) text += i == 0 ? "(?, ?, ?, 1)" : ", (?, ?, ?, 1)";
  return {table.module, "count_" + column,
          text + " ON CONFLICT (biz, biz_id) DO UPDATE SET " + column + " = " + column + " + excluded." +
              column + ", version = version + 1 RETURNING biz, biz_id, " + column + ", version",
          text + " ON DUPLICATE KEY UPDATE " + column + " = " + column + " + VALUES(" + column +
              "), version = version + 1"};
}

sql::Query decrement(const Table& table) {
  const std::string& column = table.column;
  const auto text = [&](const std::string& greatest) {
    return "UPDATE " + table.table + " SET " + column + " = " + greatest + "(" + column +
           " + ?, 0), version = version + 1 WHERE biz = ? AND biz_id = ?";
  };
  return {table.module, "count_down_" + column,
          text("max") + " RETURNING biz, biz_id, " + column + ", version", text("greatest")};
}

// For MySQL. Of a small table it would rather read, and lock, all rows.
sql::Query select(const Table& table, std::size_t rows) {
  return {table.module, "counts_" + table.column,
          "SELECT biz, biz_id, " + table.column + ", version FROM " + table.table +
              " FORCE INDEX (PRIMARY) WHERE (biz, biz_id) IN (" + sql::rows(rows, 2) + ")"};
}

Count read_count(const sql::Row& row) {
  return {row.get<std::string>(0), row.get<Id>(1), row.get<std::int64_t>(2), row.get<std::int64_t>(3)};
}

// Sorts, and makes one of several deltas of a subject.
void sum_up(std::vector<Delta>& deltas) {
  std::sort(deltas.begin(), deltas.end(), kByKey);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    if (kept > 0 && key_of(deltas[kept - 1]) == key_of(deltas[i])) {
      deltas[kept - 1].by += deltas[i].by;
    } else {
      if (kept != i) deltas[kept] = std::move(deltas[i]);
      ++kept;
    }
  }
  deltas.resize(kept);
}

}  // namespace

std::optional<Subject> parse_subject(std::string_view key) {
  const auto colon = key.find(':');
  if (colon == std::string_view::npos || !is_biz(key.substr(0, colon))) return std::nullopt;
  const auto id = parse_id(key.substr(colon + 1));
  if (!id) return std::nullopt;
  return Subject{key.substr(0, colon), *id};
}

std::string format_subject(std::string_view biz, Id biz_id) {
  return std::string(biz).append(":").append(std::to_string(biz_id));
}

Counter::Counter(Table table) : table_(std::move(table)), decrement_(decrement(table_)) {
  for (std::size_t rows = 1; rows <= kRowsPerStatement; rows *= 2) {
    upserts_.push_back(upsert(table_, rows));
    selects_.push_back(select(table_, rows));
  }
}

std::vector<Count> Counter::add(sql::Session& session, std::vector<Delta> deltas) const {
  sum_up(deltas);
  std::vector<Count> touched;
  touched.reserve(deltas.size());
  const std::span<const Delta> all(deltas);
  for (std::size_t at = 0; at < all.size();) {
    std::size_t end = at;
    while (end < all.size() && all[end].by > 0) ++end;
    if (end > at) {
      add_rows(session, all.subspan(at, end - at), touched);
      at = end;
    } else {
      if (all[at].by < 0) subtract(session, all[at], touched);
      ++at;
    }
  }
  // Neither store promises an order.
  if (!std::is_sorted(touched.begin(), touched.end(), kByKey))
    std::sort(touched.begin(), touched.end(), kByKey);
  return touched;
}

void Counter::add_rows(sql::Session& session, std::span<const Delta> deltas,
                       std::vector<Count>& touched) const {
  std::vector<sql::Value> values;
  std::size_t which = upserts_.size() - 1;
  while (!deltas.empty()) {
    while ((std::size_t{1} << which) > deltas.size()) --which;
    const std::size_t rows = std::size_t{1} << which;
    values.clear();
    for (const Delta& delta : deltas.first(rows)) {
      values.emplace_back(delta.biz);
      values.emplace_back(delta.biz_id);
      values.emplace_back(delta.by);
    }
    const auto take = [&](const sql::Row& row) { touched.push_back(read_count(row)); };
    session.each_of(upserts_[which], values, take);
    if (session.dialect() == sql::Dialect::mysql) {
      values.clear();
      for (const Delta& delta : deltas.first(rows)) {
        values.emplace_back(delta.biz);
        values.emplace_back(delta.biz_id);
      }
      session.each_of(selects_[which], values, take);
    }
    deltas = deltas.subspan(rows);
  }
}

void Counter::subtract(sql::Session& session, const Delta& delta, std::vector<Count>& touched) const {
  const auto take = [&](const sql::Row& row) { touched.push_back(read_count(row)); };
  session.each(decrement_, take, delta.by, delta.biz, delta.biz_id);
  if (session.dialect() == sql::Dialect::mysql) session.each(selects_.front(), take, delta.biz, delta.biz_id);
}

std::vector<Delta> aggregate(std::span<const queue::Message> messages) {
  struct Hash {
    std::size_t operator()(std::string_view text) const { return hash64(text); }
  };
  std::unordered_map<std::string_view, std::int64_t, Hash> sums;
  for (const queue::Message& message : messages) ++sums[message.key];
  std::vector<Delta> deltas;
  deltas.reserve(sums.size());
  for (const auto& [key, sum] : sums) {
    const auto subject = parse_subject(key);
    if (!subject) throw Unusable("not a subject to be counted: \"" + std::string(key) + "\"");
    deltas.push_back({std::string(subject->biz), subject->biz_id, sum});
  }
  return deltas;
}

std::vector<Count> count_batch(sql::Database& store, const idempotency::Inbox& inbox, const Counter& counter,
                               std::span<const queue::Message> messages) {
  return inbox.process(store, messages, [&](sql::Session& session, std::span<const queue::Message> fresh) {
    return counter.add(session, aggregate(fresh));
  });
}

}  // namespace weir::counter

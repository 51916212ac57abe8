#include "site/ranking/ranking_store.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/value_to.hpp>

namespace weir::site::ranking {
namespace {

const std::array kMigrations{sql::Migration{1, "boards", R"sql(
  CREATE TABLE boards (
    name        TEXT PRIMARY KEY,
    version     INTEGER NOT NULL,
    computed_at INTEGER NOT NULL,
    model       TEXT NOT NULL,
    items       TEXT NOT NULL
  ) STRICT;
)sql",
                                            R"sql(
  CREATE TABLE boards (
    name        VARCHAR(64) NOT NULL PRIMARY KEY,
    version     BIGINT NOT NULL,
    computed_at BIGINT NOT NULL,
    model       VARCHAR(64) NOT NULL,
    items       MEDIUMTEXT NOT NULL
  );
)sql"}};

#define WEIR_INSERT "INSERT INTO boards (name, version, computed_at, model, items) VALUES (?, 1, ?, ?, ?) "
const sql::Query kSave{
    "ranking", "save",
    WEIR_INSERT
    "ON CONFLICT (name) DO UPDATE SET version = version + 1, computed_at = excluded.computed_at, "
    "model = excluded.model, items = excluded.items",
    WEIR_INSERT
    "ON DUPLICATE KEY UPDATE version = version + 1, computed_at = VALUES(computed_at), "
    "model = VALUES(model), items = VALUES(items)"};
#undef WEIR_INSERT
const sql::Query kVersion{"ranking", "version", "SELECT version FROM boards WHERE name = ?"};
const sql::Query kLoad{"ranking", "load",
                       "SELECT version, computed_at, model, items FROM boards WHERE name = ?"};

// [[id, score, likes, microseconds of published_at], ..]
boost::json::array items_to_json(const std::vector<Ranked>& items) {
  boost::json::array all;
  for (const Ranked& item : items)
    all.push_back(boost::json::array{item.id, item.score, item.likes, to_micros(item.published_at)});
  return all;
}

std::vector<Ranked> items_of_json(const boost::json::value& json) {
  std::vector<Ranked> items;
  for (const auto& value : json.as_array()) {
    const auto& item = value.as_array();
    items.push_back({item.at(0).to_number<Id>(), item.at(1).to_number<double>(),
                     item.at(2).to_number<std::int64_t>(),
                     from_micros(item.at(3).to_number<std::int64_t>())});
  }
  return items;
}

SavedRanking read_saved(const sql::Row& row) {
  return {row.get<std::uint64_t>(0),
          row.get<WallTime>(1),
          {row.get<std::string>(2), items_of_json(row.get<boost::json::value>(3))}};
}

}  // namespace

RankingStore::RankingStore(sql::Database& database) : database_(database) {
  database_.migrate("ranking", kMigrations);
}

std::uint64_t RankingStore::save_now(std::string_view name, const Ranking& ranking, WallTime computed_at) {
  const auto items = items_to_json(ranking.items);
  return database_.write_now([&](sql::Session& session) {
    session.execute(kSave, name, computed_at, ranking.model, items);
    return session.one(kVersion, sql::first<std::uint64_t>, name).value();
  });
}

std::uint64_t RankingStore::version_now(std::string_view name) {
  return database_.read_now([&](sql::Session& session) {
    return session.one(kVersion, sql::first<std::uint64_t>, name).value_or(0);
  });
}

std::optional<SavedRanking> RankingStore::load_now(std::string_view name) {
  return database_.read_now([&](sql::Session& session) { return session.one(kLoad, read_saved, name); });
}

}  // namespace weir::site::ranking

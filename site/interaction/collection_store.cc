#include "site/interaction/collection_store.h"

#include <array>
#include <utility>

#include "site/interaction/counts_table.h"
#include "weir/base/fault.h"
#include "weir/sql/transaction.h"
#include "weir/telemetry/metrics.h"

namespace weir::site::interaction {
namespace {

// MySQL has no partial indexes: `default_of` is the user of a default folder and NULL, which may be there often, else.
const std::array kMigrations{sql::Migration{1, "collections", R"sql(
  CREATE TABLE collections (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id    INTEGER NOT NULL,
    name       TEXT NOT NULL,
    is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
    item_count INTEGER NOT NULL DEFAULT 0 CHECK (item_count >= 0),
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX collections_of_user ON collections (user_id);
  CREATE UNIQUE INDEX collections_default ON collections (user_id) WHERE is_default = 1;
  CREATE TABLE collected (
    id            INTEGER PRIMARY KEY,
    user_id       INTEGER NOT NULL,
    biz           TEXT NOT NULL,
    biz_id        INTEGER NOT NULL,
    collection_id INTEGER NOT NULL,
    status        INTEGER NOT NULL CHECK (status IN (0, 1)),
    collected_at  INTEGER NOT NULL,
    UNIQUE (user_id, biz, biz_id)
  ) STRICT;
  CREATE INDEX collected_in_collection ON collected (collection_id, collected_at) WHERE status = 1;
  CREATE INDEX collected_of_thing ON collected (biz, biz_id) WHERE status = 1;
)sql",
                                            R"sql(
  CREATE TABLE collections (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id    BIGINT NOT NULL,
    name       VARCHAR(64) NOT NULL,
    is_default TINYINT NOT NULL CHECK (is_default IN (0, 1)),
    item_count BIGINT NOT NULL DEFAULT 0 CHECK (item_count >= 0),
    created_at BIGINT NOT NULL,
    default_of BIGINT GENERATED ALWAYS AS (CASE WHEN is_default = 1 THEN user_id END) VIRTUAL
  );
  CREATE INDEX collections_of_user ON collections (user_id, id);
  CREATE UNIQUE INDEX collections_default ON collections (default_of);
  CREATE TABLE collected (
    id            BIGINT NOT NULL AUTO_INCREMENT UNIQUE,
    user_id       BIGINT NOT NULL,
    biz           VARCHAR(32) NOT NULL,
    biz_id        BIGINT NOT NULL,
    collection_id BIGINT NOT NULL,
    status        TINYINT NOT NULL CHECK (status IN (0, 1)),
    collected_at  BIGINT NOT NULL,
    PRIMARY KEY (user_id, biz, biz_id)
  );
  CREATE INDEX collected_in_collection ON collected (collection_id, status, collected_at, id);
  CREATE INDEX collected_of_thing ON collected (biz, biz_id, status);
)sql"}};

// What the default folder is called until its owner renames it; pages show their own word for it.
constexpr std::string_view kDefaultName = "Default";

// For MySQL: the row as one that isn't collected, if there is none. Looking for a row that isn't there would lock the
// gap where others put theirs, this locks the row alone.
const sql::Query kMakePlace{
    "interaction", "collected_where",
    "INSERT INTO collected (user_id, biz, biz_id, collection_id, status, collected_at) "
    "VALUES (?, ?, ?, 0, 0, 0) ON DUPLICATE KEY UPDATE status = status"};
const sql::Query kPlace{
    "interaction", "collected_where",
    "SELECT collection_id, status FROM collected WHERE user_id = ? AND biz = ? AND biz_id = ?",
    "SELECT collection_id, status FROM collected WHERE user_id = ? AND biz = ? AND biz_id = ? FOR UPDATE"};
#define WEIR_PUT                                                                       \
  "INSERT INTO collected (user_id, biz, biz_id, collection_id, status, collected_at) " \
  "VALUES (?, ?, ?, ?, 1, ?) "
const sql::Query kPut{
    "interaction", "collect",
    WEIR_PUT
    "ON CONFLICT (user_id, biz, biz_id) DO UPDATE SET "
    "collection_id = excluded.collection_id, status = 1, collected_at = excluded.collected_at",
    WEIR_PUT
    "ON DUPLICATE KEY UPDATE collection_id = VALUES(collection_id), status = 1, "
    "collected_at = VALUES(collected_at)"};
#undef WEIR_PUT
const sql::Query kTake{"interaction", "uncollect",
                       "UPDATE collected SET status = 0 WHERE user_id = ? AND biz = ? AND biz_id = ?"};
const sql::Query kCount{"interaction", "folder_count",
                        "UPDATE collections SET item_count = max(item_count + ?, 0) WHERE id = ?",
                        "UPDATE collections SET item_count = greatest(item_count + ?, 0) WHERE id = ?"};

#define WEIR_FOLDER_COLUMNS "id, name, is_default, item_count, created_at"
#define WEIR_FOLDER "SELECT " WEIR_FOLDER_COLUMNS " FROM collections WHERE id = ? AND user_id = ?"
const sql::Query kFolder{"interaction", "folder", WEIR_FOLDER};
// The same in a write, which changes it next: of two that had only read it neither could.
const sql::Query kFolderToChange{"interaction", "folder", WEIR_FOLDER, WEIR_FOLDER " FOR UPDATE"};
#undef WEIR_FOLDER
const sql::Query kFoldersFrom{"interaction", "folders",
                              "SELECT " WEIR_FOLDER_COLUMNS
                              " FROM collections WHERE user_id = ? AND id > ? "
                              "ORDER BY id LIMIT ? OFFSET ?"};
const sql::Query kRename{
    "interaction", "rename_folder",
    "UPDATE collections SET name = ? WHERE id = ? AND user_id = ? RETURNING " WEIR_FOLDER_COLUMNS,
    "UPDATE collections SET name = ? WHERE id = ? AND user_id = ?"};
#undef WEIR_FOLDER_COLUMNS
const sql::Query kFolderTotal{"interaction", "folder_total",
                              "SELECT count(*) FROM collections WHERE user_id = ?"};
const sql::Query kDefault{"interaction", "default_folder",
                          "SELECT id FROM collections WHERE user_id = ? AND is_default = 1",
                          "SELECT id FROM collections WHERE default_of = ?"};
const sql::Query kDefaultToChange{kDefault.module, kDefault.operation, kDefault.text,
                                  kDefault.mysql + " FOR UPDATE"};
const sql::Query kCreate{
    "interaction", "create_folder",
    "INSERT INTO collections (user_id, name, is_default, created_at) VALUES (?, ?, ?, ?)"};
const sql::Query kDelete{"interaction", "delete_folder", "DELETE FROM collections WHERE id = ?"};
const sql::Query kMove{"interaction", "move_collected",
                       "UPDATE collected SET collection_id = ? WHERE id IN "
                       "(SELECT id FROM collected WHERE collection_id = ? AND status = 1 LIMIT ?)",
                       "UPDATE collected SET collection_id = ? WHERE collection_id = ? AND status = 1 "
                       "LIMIT ?"};
const sql::Query kItems{
    "interaction", "folder_items",
    "SELECT id, biz, biz_id, collected_at FROM collected WHERE collection_id = ? AND status = 1 "
    "ORDER BY collected_at DESC, id DESC LIMIT ? OFFSET ?"};
const sql::Query kItemsAfter{
    "interaction", "folder_items",
    "SELECT id, biz, biz_id, collected_at FROM collected WHERE collection_id = ? AND status = 1 "
    "AND collected_at <= ? AND (collected_at, id) < (?, ?) ORDER BY collected_at DESC, id DESC LIMIT ?"};

Folder read_folder(const sql::Row& row) {
  return {row.get<Id>(0), row.get<std::string>(1), row.get<bool>(2), row.get<std::int64_t>(3),
          row.get<WallTime>(4)};
}
Entry read_entry(const sql::Row& row) {
  return {row.get<Id>(0), {row.get<std::string>(1), row.get<Id>(2)}, row.get<WallTime>(3)};
}

// The user's default folder, made when it is missing.
Id default_folder(sql::Session& session, Id user, WallTime now) {
  if (const auto id = session.one(kDefaultToChange, sql::first<Id>, user)) return *id;
  return session.execute(kCreate, user, kDefaultName, true, now).last_id;
}

bool owns(sql::Session& session, Id user, Id folder) {
  return session.one(kFolderToChange, sql::first<Id>, folder, user).has_value();
}

// The folder that the thing is in, if it is collected.
std::optional<Id> folder_of(sql::Session& session, Id user, const Subject& subject) {
  const auto read = [](const sql::Row& row) {
    return row.get<bool>(1) ? std::optional(row.get<Id>(0)) : std::nullopt;
  };
  return session.one(kPlace, read, user, subject.biz, subject.id).value_or(std::nullopt);
}

using Collected = CollectionStore::Collected;

Collected collect_in(sql::Session& session, Id user, const Subject& subject, std::optional<Id> folder,
                     WallTime now) {
  if (folder && !owns(session, user, *folder)) return {.folder_found = false, .counts = {}};
  if (session.dialect() == sql::Dialect::mysql) session.execute(kMakePlace, user, subject.biz, subject.id);
  const auto before = folder_of(session, user, subject);
  if (before && (!folder || *folder == *before)) return {};
  const Id target = folder ? *folder : default_folder(session, user, now);
  session.execute(kPut, user, subject.biz, subject.id, target, now);
  session.execute(kCount, 1, target);
  if (before) {
    session.execute(kCount, -1, *before);
    return {};
  }
  return {.folder_found = true,
          .counts = counts_table::move_collects(session, subject, counts_table::By::plus_one)};
}

Collected uncollect_in(sql::Session& session, Id user, const Subject& subject, std::optional<Id> folder) {
  if (folder && !owns(session, user, *folder)) return {.folder_found = false, .counts = {}};
  const auto before = folder_of(session, user, subject);
  if (!before || (folder && *folder != *before)) return {};
  session.execute(kTake, user, subject.biz, subject.id);
  session.execute(kCount, -1, *before);
  return {.folder_found = true,
          .counts = counts_table::move_collects(session, subject, counts_table::By::minus_one)};
}

// One step of deleting a folder: nothing when there is more to move.
std::optional<FolderOutcome> remove_step(sql::Session& session, Id user, Id folder, WallTime now) {
  const auto found = session.one(kFolderToChange, read_folder, folder, user);
  if (!found) return FolderOutcome::not_found;
  if (found->is_default) return FolderOutcome::is_default;
  const Id target = default_folder(session, user, now);
  const auto moved = session.execute(kMove, target, folder, CollectionStore::kMovedAtOnce).rows;
  session.execute(kCount, moved, target);
  session.execute(kCount, -moved, folder);
  if (moved == CollectionStore::kMovedAtOnce) return std::nullopt;
  session.execute(kDelete, folder);
  return FolderOutcome::done;
}

Listing<Folder> folders_in(sql::Session& session, Id user, const FolderSlice& slice) {
  const sql::Transaction same_moment(session);
  auto listing = listing_of(session.all(kFoldersFrom, read_folder, user, slice.after.value_or(0),
                                        slice.limit + 1, slice.after ? 0 : slice.offset),
                            slice.limit);
  if (slice.with_total) listing.total = session.one(kFolderTotal, sql::first<std::int64_t>, user);
  return listing;
}

}  // namespace

CollectionStore::CollectionStore(sql::Database& database) : database_(database) {
  database_.migrate("collection", kMigrations);
}

boost::asio::awaitable<Collected> CollectionStore::collect(Id user, Subject subject, std::optional<Id> folder,
                                                           WallTime now) {
  if (!folder) co_await make_default(user, now);
  co_return co_await database_.write(
      [user, subject = std::move(subject), folder, now](sql::Session& session) {
        return collect_in(session, user, subject, folder, now);
      });
}

boost::asio::awaitable<Collected> CollectionStore::uncollect(Id user, Subject subject,
                                                             std::optional<Id> folder) {
  co_return co_await database_.write([user, subject = std::move(subject), folder](sql::Session& session) {
    return uncollect_in(session, user, subject, folder);
  });
}

// In a write of its own: on MySQL, looking for what isn't there and then making it locks the gap where others make
// theirs.
boost::asio::awaitable<void> CollectionStore::make_default(Id user, WallTime now) {
  const auto has_default = co_await database_.read(
      [user](sql::Session& session) { return session.one(kDefault, sql::first<Id>, user).has_value(); });
  if (has_default) co_return;
  try {
    co_await database_.write(
        [user, now](sql::Session& session) { session.execute(kCreate, user, kDefaultName, true, now); });
  } catch (const sql::Error& error) {
    if (error.kind() != sql::ErrorKind::unique_violation) throw;  // another was faster
  }
}

boost::asio::awaitable<Listing<Folder>> CollectionStore::folders(Id user, FolderSlice slice, WallTime now) {
  // The default folder is made before all others, so a user without it has none.
  try {
    co_await make_default(user, now);
  } catch (const Unavailable& error) {
    // Reading goes on when nothing can be written; the folder is made the next time.
    telemetry::swallowed("interaction.default_folder", error);
  }
  co_return co_await database_.read(
      [user, slice](sql::Session& session) { return folders_in(session, user, slice); });
}

boost::asio::awaitable<std::optional<Folder>> CollectionStore::create(Id user, std::string name,
                                                                      WallTime now) {
  co_await make_default(user, now);
  co_return co_await database_.write(
      [user, name = std::move(name), now](sql::Session& session) -> std::optional<Folder> {
        default_folder(session, user, now);
        const auto total = session.one(kFolderTotal, sql::first<std::int64_t>, user).value_or(0);
        if (std::cmp_greater_equal(total, kMaxFolders)) return std::nullopt;
        const Id id = session.execute(kCreate, user, name, false, now).last_id;
        return Folder{id, name, false, 0, now};
      });
}

boost::asio::awaitable<std::optional<Folder>> CollectionStore::rename(Id user, Id folder, std::string name) {
  co_return co_await database_.write([user, folder, name = std::move(name)](sql::Session& session) {
    if (session.dialect() == sql::Dialect::sqlite)
      return session.one(kRename, read_folder, name, folder, user);
    session.execute(kRename, name, folder, user);
    return session.one(kFolder, read_folder, folder, user);
  });
}

boost::asio::awaitable<FolderOutcome> CollectionStore::remove(Id user, Id folder, WallTime now) {
  for (;;) {
    const auto outcome = co_await database_.write(
        [user, folder, now](sql::Session& session) { return remove_step(session, user, folder, now); });
    if (outcome) co_return *outcome;
  }
}

boost::asio::awaitable<std::optional<Listing<Entry>>> CollectionStore::items(Id user, Id folder,
                                                                             EntrySlice slice) {
  co_return co_await database_.read(
      [user, folder, slice](sql::Session& session) -> std::optional<Listing<Entry>> {
        const sql::Transaction same_moment(session);
        const auto found = session.one(kFolder, read_folder, folder, user);
        if (!found) return std::nullopt;
        auto listing =
            listing_of(slice.after ? session.all(kItemsAfter, read_entry, folder, slice.after->at,
                                                 slice.after->at, slice.after->row, slice.limit + 1)
                                   : session.all(kItems, read_entry, folder, slice.limit + 1, slice.offset),
                       slice.limit);
        if (slice.with_total) listing.total = found->item_count;
        return listing;
      });
}

}  // namespace weir::site::interaction

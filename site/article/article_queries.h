// The statements of the article module: a detail of article_store.cc and bulk_store.cc.
#pragma once

#include <array>

#include "weir/sql/migration.h"
#include "weir/sql/value.h"

namespace weir::site::article::queries {

inline const std::array kMigrations{sql::Migration{1, "articles", R"sql(
  CREATE TABLE article_drafts (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    author_id    INTEGER NOT NULL,
    title        TEXT NOT NULL,
    abstract     TEXT NOT NULL,
    status       INTEGER NOT NULL CHECK (status IN (0, 1, 2)),
    version      INTEGER NOT NULL,
    published_at INTEGER,
    updated_at   INTEGER NOT NULL,
    external_id  TEXT UNIQUE,
    content      TEXT NOT NULL
  ) STRICT;
  CREATE INDEX article_drafts_by_author ON article_drafts (author_id, id);
  CREATE TABLE article_published (
    id           INTEGER PRIMARY KEY,
    author_id    INTEGER NOT NULL,
    title        TEXT NOT NULL,
    abstract     TEXT NOT NULL,
    version      INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    content      TEXT NOT NULL
  ) STRICT;
  CREATE INDEX article_published_by_time ON article_published (published_at, id);
  CREATE TABLE article_counts (
    list  TEXT NOT NULL,
    owner INTEGER NOT NULL,
    cnt   INTEGER NOT NULL,
    PRIMARY KEY (list, owner)
  ) STRICT, WITHOUT ROWID;
)sql",
                                                   R"sql(
  CREATE TABLE article_drafts (
    id           BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    author_id    BIGINT NOT NULL,
    title        TEXT NOT NULL,
    abstract     VARCHAR(255) NOT NULL,
    status       TINYINT NOT NULL CHECK (status IN (0, 1, 2)),
    version      BIGINT NOT NULL,
    published_at BIGINT,
    updated_at   BIGINT NOT NULL,
    external_id  VARCHAR(255) UNIQUE,
    content      MEDIUMTEXT NOT NULL
  );
  CREATE INDEX article_drafts_by_author ON article_drafts (author_id, id);
  CREATE TABLE article_published (
    id           BIGINT NOT NULL PRIMARY KEY,
    author_id    BIGINT NOT NULL,
    title        TEXT NOT NULL,
    abstract     VARCHAR(255) NOT NULL,
    version      BIGINT NOT NULL,
    published_at BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    content      MEDIUMTEXT NOT NULL
  );
  CREATE INDEX article_published_by_time ON article_published (published_at, id);
  CREATE TABLE article_counts (
    list  VARCHAR(32) NOT NULL,
    owner BIGINT NOT NULL,
    cnt   BIGINT NOT NULL,
    PRIMARY KEY (list, owner)
  );
  CREATE TABLE article_gate (id TINYINT NOT NULL PRIMARY KEY);
  INSERT INTO article_gate (id) VALUES (1);
)sql"}};

// On MySQL an article has its id before others can see it. Whoever makes articles goes through this gate first and
// has it open until its transaction has ended; kCloseGate waits until everybody who is inside has left.
inline const sql::Query kEnterGate{"article", "enter_gate",
                                   "SELECT id FROM article_gate WHERE id = 1 LOCK IN SHARE MODE"};
inline const sql::Query kCloseGate{"filter", "close_gate",
                                   "SELECT id FROM article_gate WHERE id = 1 FOR UPDATE"};

// The rows of article_counts: all that is published (owner 0), and all that an author has.
inline constexpr std::string_view kPublishedList = "published";
inline constexpr std::string_view kOwnList = "own";

#define WEIR_OWN_COLUMNS \
  "d.id, d.author_id, d.title, d.abstract, d.published_at, d.updated_at, d.version, d.status"
#define WEIR_PUBLISHED_COLUMNS \
  "p.id, p.author_id, p.title, p.abstract, p.published_at, p.updated_at, p.version"

inline const sql::Query kInsert{
    "article", "insert",
    "INSERT INTO article_drafts (author_id, title, abstract, status, version, published_at, updated_at, "
    "external_id, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"};
// Locked, because what it finds is changed next: of two that had only read it neither could.
inline const sql::Query kSummaryOfOwn{
    "article", "state", "SELECT " WEIR_OWN_COLUMNS " FROM article_drafts d WHERE d.id = ?",
    "SELECT " WEIR_OWN_COLUMNS " FROM article_drafts d WHERE d.id = ? FOR UPDATE"};
inline const sql::Query kEdit{"article", "edit",
                              "UPDATE article_drafts SET title = ?, abstract = ?, content = ?, "
                              "version = version + 1, updated_at = ? WHERE id = ?"};
inline const sql::Query kSetStatus{"article", "set_status",
                                   "UPDATE article_drafts SET status = ?, published_at = ?, "
                                   "version = version + 1, updated_at = ? WHERE id = ?"};
#define WEIR_COPY                                                                                          \
  "INSERT INTO article_published (id, author_id, title, abstract, version, published_at, updated_at, "     \
  "content) "                                                                                              \
  "SELECT id, author_id, title, abstract, version, published_at, updated_at, content FROM article_drafts " \
  "WHERE id = ? "
inline const sql::Query kCopyToReaders{
    "article", "publish",
    WEIR_COPY
    "ON CONFLICT (id) DO UPDATE SET title = excluded.title, abstract = excluded.abstract, "
    "version = excluded.version, updated_at = excluded.updated_at, content = excluded.content",
    WEIR_COPY
    "ON DUPLICATE KEY UPDATE title = VALUES(title), abstract = VALUES(abstract), "
    "version = VALUES(version), updated_at = VALUES(updated_at), content = VALUES(content)"};
#undef WEIR_COPY
inline const sql::Query kTakeFromReaders{"article", "withdraw", "DELETE FROM article_published WHERE id = ?"};
inline const sql::Query kRemove{"article", "remove", "DELETE FROM article_drafts WHERE id = ?"};
inline const sql::Query kCountUp{"article", "count",
                                 "INSERT INTO article_counts (list, owner, cnt) VALUES (?, ?, ?) "
                                 "ON CONFLICT (list, owner) DO UPDATE SET cnt = cnt + excluded.cnt",
                                 "INSERT INTO article_counts (list, owner, cnt) VALUES (?, ?, ?) "
                                 "ON DUPLICATE KEY UPDATE cnt = cnt + VALUES(cnt)"};
inline const sql::Query kCountDown{
    "article", "count", "UPDATE article_counts SET cnt = cnt - 1 WHERE list = ? AND owner = ? AND cnt > 0"};
inline const sql::Query kTotal{"article", "total",
                               "SELECT cnt FROM article_counts WHERE list = ? AND owner = ?"};

inline const sql::Query kFindOwn{
    "article", "find_own", "SELECT " WEIR_OWN_COLUMNS ", d.content FROM article_drafts d WHERE d.id = ?"};
inline const sql::Query kFindPublished{"article", "find",
                                       "SELECT " WEIR_PUBLISHED_COLUMNS
                                       ", p.content FROM article_published p WHERE p.id = ?"};

// The offset is walked within the index; only the rows that are answered are read.
inline const sql::Query kNewestFrom{
    "article", "list",
    "SELECT " WEIR_PUBLISHED_COLUMNS
    " FROM (SELECT id FROM article_published ORDER BY published_at DESC, id DESC LIMIT ? OFFSET ?) k "
    "JOIN article_published p ON p.id = k.id ORDER BY p.published_at DESC, p.id DESC"};
// The pair alone is no range of the index to MySQL: the first comparison tells it where to begin.
inline const sql::Query kNewestAfter{"article", "list",
                                     "SELECT " WEIR_PUBLISHED_COLUMNS
                                     " FROM article_published p WHERE p.published_at <= ? "
                                     "AND (p.published_at, p.id) < (?, ?) "
                                     "ORDER BY p.published_at DESC, p.id DESC LIMIT ?"};
inline const sql::Query kOwnFrom{
    "article", "list_own",
    "SELECT " WEIR_OWN_COLUMNS
    " FROM (SELECT id FROM article_drafts WHERE author_id = ? ORDER BY id DESC LIMIT ? OFFSET ?) k "
    "JOIN article_drafts d ON d.id = k.id ORDER BY d.id DESC"};
inline const sql::Query kOwnAfter{"article", "list_own",
                                  "SELECT " WEIR_OWN_COLUMNS
                                  " FROM article_drafts d WHERE d.author_id = ? AND d.id < ? "
                                  "ORDER BY d.id DESC LIMIT ?"};
inline const std::string kSummaries =
    "SELECT " WEIR_PUBLISHED_COLUMNS " FROM article_published p WHERE p.id IN (";
inline const sql::Query kPlaces{
    "article", "places",
    "SELECT published_at, id FROM article_published WHERE published_at <= ? AND (published_at, id) < (?, ?) "
    "AND published_at >= ? ORDER BY published_at DESC, id DESC LIMIT ?"};

#undef WEIR_OWN_COLUMNS
#undef WEIR_PUBLISHED_COLUMNS

inline const sql::Query kIdsAbove{"filter", "read_ids",
                                  "SELECT id FROM article_drafts WHERE id > ? ORDER BY id LIMIT ?"};
inline const sql::Query kHighestId{"filter", "highest_id", "SELECT max(id) FROM article_drafts"};
inline const std::string kFindExternal = "SELECT external_id, id FROM article_drafts WHERE external_id IN (";

}  // namespace weir::site::article::queries

// CollectionStore: folders and what is collected in them, in SQL.
//
// Like a like, a collected thing is a row with a status that is never deleted; it is in one folder at a time.
// A folder keeps how much is in it, moved in the same transaction. Thread-safe. Throws sql::Error when the
// store fails.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "site/interaction/interaction.h"
#include "weir/sql/database.h"

namespace weir::site::interaction {

enum class FolderOutcome : std::uint8_t { done, not_found, is_default };

class CollectionStore {
 public:
  // What a deleted folder held is moved in steps of so many, so that other writes don't wait long.
  static constexpr std::int64_t kMovedAtOnce = 1'000;

  // Brings the tables up to date; blocks. The database must outlive the store.
  explicit CollectionStore(sql::Database& database);

  // What collecting left: whether the folder is there, and the thing's counts if they changed.
  struct Collected {
    bool folder_found = true;
    std::optional<Counts> counts;
  };
  // Into the folder, out of the one that it was in. Without a folder: it stays where it is, and goes to the
  // default folder if it wasn't collected.
  boost::asio::awaitable<Collected> collect(Id user, Subject subject, std::optional<Id> folder, WallTime now);
  // Out of its folder; with a folder, only if it is in that one.
  boost::asio::awaitable<Collected> uncollect(Id user, Subject subject, std::optional<Id> folder);

  // By id: the default folder, which is made when it is missing, comes first.
  boost::asio::awaitable<Listing<Folder>> folders(Id user, FolderSlice slice, WallTime now);
  // Nothing when the user has kMaxFolders.
  boost::asio::awaitable<std::optional<Folder>> create(Id user, std::string name, WallTime now);
  // Nothing when the user has no such folder.
  boost::asio::awaitable<std::optional<Folder>> rename(Id user, Id folder, std::string name);
  // What is in it moves to the default folder. done, not_found or is_default.
  boost::asio::awaitable<FolderOutcome> remove(Id user, Id folder, WallTime now);
  // Newest first; nothing when the user has no such folder.
  boost::asio::awaitable<std::optional<Listing<Entry>>> items(Id user, Id folder, EntrySlice slice);

 private:
  // The user's default folder, if there is none.
  boost::asio::awaitable<void> make_default(Id user, WallTime now);

  sql::Database& database_;
};

}  // namespace weir::site::interaction

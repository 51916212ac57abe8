// InteractionRepository: where interactions come from. Counts: local cache first, store second, written
// through after each change with their version, so that only newer ones replace what is cached and one's own
// next read shows one's own like. What a person likes, collects or read is not cached: few read it twice.
//
// Thread-safe. Throws weir::Unavailable when the store fails.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "site/interaction/collection_store.h"
#include "site/interaction/history_store.h"
#include "site/interaction/interaction.h"
#include "site/interaction/interaction_store.h"
#include "weir/cache/read_through.h"

namespace weir::site::interaction {

class InteractionRepository {
 public:
  // How long counts that nobody changes here are believed. Another process's changes show within it.
  static constexpr std::chrono::seconds kTtl{15};
  struct Options {
    std::size_t capacity = std::size_t{16} << 20;  // bytes of the cache of counts
    const Clock* clock = &Clock::system();
  };

  // Loads run on `loads`. The stores must outlive the repository.
  InteractionRepository(InteractionStore& interactions, CollectionStore& collections, HistoryStore& history,
                        boost::asio::any_io_executor loads, Options options);

  // From memory, at once; nothing when it isn't known here.
  std::optional<Counts> find(const Subject& subject);
  boost::asio::awaitable<Counts> counts(Subject subject);
  // In the order asked; one statement for all that the cache lacks.
  boost::asio::awaitable<std::vector<Counts>> counts_of(std::vector<Subject> subjects);
  boost::asio::awaitable<Mine> mine(Id user, Subject subject);
  boost::asio::awaitable<std::vector<Mine>> mine_of(Id user, std::string biz, std::vector<Id> ids);

  // Whether it changed anything.
  boost::asio::awaitable<bool> set_like(Id user, Subject subject, bool liked, WallTime now);
  // Whether the folder is there, and whether it changed anything.
  struct Collected {
    bool folder_found = true, changed = false;
  };
  boost::asio::awaitable<Collected> collect(Id user, Subject subject, std::optional<Id> folder, WallTime now);
  boost::asio::awaitable<Collected> uncollect(Id user, Subject subject, std::optional<Id> folder);

  // See CollectionStore and HistoryStore.
  boost::asio::awaitable<Listing<Folder>> folders(Id user, FolderSlice slice, WallTime now);
  boost::asio::awaitable<std::optional<Folder>> create_folder(Id user, std::string name, WallTime now);
  boost::asio::awaitable<std::optional<Folder>> rename_folder(Id user, Id folder, std::string name);
  boost::asio::awaitable<FolderOutcome> remove_folder(Id user, Id folder, WallTime now);
  boost::asio::awaitable<std::optional<Listing<Entry>>> items(Id user, Id folder, EntrySlice slice);
  boost::asio::awaitable<Listing<Entry>> history(Id user, EntrySlice slice);
  boost::asio::awaitable<void> clear_history(Id user, WallTime now);

  // --- These block: for consumers, jobs and commands, never an I/O thread ---

  void count_reads_now(const idempotency::Inbox& inbox, std::span<const queue::Message> messages);
  void record_history_now(const idempotency::Inbox& inbox, std::span<const queue::Message> messages);
  std::vector<std::int64_t> like_counts_now(std::string_view biz, std::span<const Id> ids);
  std::optional<std::vector<std::pair<Id, std::int64_t>>> liked_at_least_now(std::string_view biz,
                                                                             std::int64_t likes,
                                                                             std::size_t limit) {
    return interactions_.liked_at_least_now(biz, likes, limit);
  }
  void like_many_now(std::string_view biz, std::span<const Like> likes);
  void import_likes_now(std::string_view biz, std::span<const ImportedLikes> likes);
  void add_reads_now(std::string_view biz, std::span<const std::pair<Id, std::int64_t>> reads);
  // Calls `check`, which may throw, between its small steps. How many counts it put right.
  std::size_t recount_now(const std::function<void()>& check);

  // Ends the waits for loads; see cache::ReadThrough::stop.
  void stop() { counts_.stop(); }

 private:
  using CountsCache = cache::ReadThrough<Subject, Counts, SubjectHash>;

  static CountsCache::Options cache_options(InteractionStore& store, const Options& options);
  void write_through(const Subject& subject, const Counts& counts);

  InteractionStore& interactions_;
  CollectionStore& collections_;
  HistoryStore& history_;
  CountsCache counts_;
};

}  // namespace weir::site::interaction

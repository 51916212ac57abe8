// InteractionService: reading, liking, collecting, and what was read.
//
// It promises: no reader waits for a count; doing anything twice is doing it once; a person's own next read
// shows what they did; counts never go below zero.
//
// Whether a thing is there is known by whoever owns it: the service asks `exists`. A thing that isn't there
// can't be read, liked or collected; a like or a collection of one that went away can still be taken back.
//
// Thread-safe. Faults of the store and the queue are exceptions (weir::Unavailable); everything else is a
// value.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "site/interaction/interaction.h"
#include "weir/base/clock.h"
#include "weir/queue/event.h"

namespace weir::queue {
class Producer;
}
namespace weir::idempotency {
class Inbox;
}

namespace weir::site::interaction {

class InteractionRepository;

enum class Outcome : std::uint8_t {
  done,
  not_found,   // there is no such thing, or the folder isn't this user's
  is_default,  // the default folder can't be deleted
};

class InteractionService {
 public:
  // Whether readers see such a thing.
  using Exists = std::function<boost::asio::awaitable<bool>(std::string_view biz, Id biz_id)>;
  // What things are called, in the order of the ids; nothing for those that aren't there (any more).
  using Titles = std::function<boost::asio::awaitable<std::vector<std::optional<std::string>>>(
      std::string_view biz, std::vector<Id> ids)>;
  struct Doors {
    Exists exists;  // empty: everything is there
    Titles titles;  // empty: nothing has a title
  };

  // Without a producer (in commands, which don't open the journal) no read can be recorded.
  InteractionService(InteractionRepository& interactions, queue::Producer* producer, Doors doors = {},
                     const Clock& clock = Clock::system());
  InteractionService(const InteractionService&) = delete;
  InteractionService& operator=(const InteractionService&) = delete;

  // --- Counts. These don't ask whether the thing is there: for callers who know ---

  // From memory, at once; nothing when they aren't known here. No allocation for a biz of up to 15 bytes.
  std::optional<Counts> find(std::string_view biz, Id biz_id);
  boost::asio::awaitable<Counts> counts(std::string biz, Id biz_id);
  // In the order asked, zeros for what was never seen; one statement for all that the cache lacks.
  boost::asio::awaitable<std::vector<Counts>> counts_of(std::string biz, std::vector<Id> ids);
  boost::asio::awaitable<Mine> mine(Id user, std::string biz, Id biz_id);

  struct View {
    Counts counts;
    std::optional<Mine> mine;  // when a user asks
  };
  // Counts and "did I", fetched side by side. Nothing when there is no such thing.
  boost::asio::awaitable<std::optional<View>> view(Subject subject, std::optional<Id> user);
  // The same for several, in the order asked; what isn't there has zeros.
  boost::asio::awaitable<std::vector<View>> views(std::string biz, std::vector<Id> ids,
                                                  std::optional<Id> user);

  // --- Reads ---

  // One read of a thing that is there, by `user` (0: nobody known): into the journal, at once. Under a
  // microsecond, no allocation, never throws; false when the journal is full and the event was dropped (which
  // is counted).
  bool record_read(std::string_view biz, Id biz_id, Id user, std::string_view event_id = {}) noexcept;
  // The same for who wants to know: waits as the queue's acks say. not_found, or done; throws Unavailable
  // when it can't be taken now. The same event_id for the same thing counts once; it is at most
  // queue::kMaxEventIdBytes long.
  boost::asio::awaitable<Outcome> publish_read(Subject subject, Id user, std::string event_id);

  // --- Likes and collections. done, also when it already was so, or not_found ---

  boost::asio::awaitable<Outcome> like(Id user, Subject subject);
  boost::asio::awaitable<Outcome> unlike(Id user, Subject subject);
  // Without a folder: it stays in the folder that it is in, and goes to the default one if it is in none.
  boost::asio::awaitable<Outcome> collect(Id user, Subject subject, std::optional<Id> folder);
  // With a folder, only out of that one.
  boost::asio::awaitable<Outcome> uncollect(Id user, Subject subject, std::optional<Id> folder);

  // --- Folders. Names are as folder_name_fault allows ---

  boost::asio::awaitable<Listing<Folder>> folders(Id user, FolderSlice slice);
  // Nothing: too many.
  boost::asio::awaitable<std::optional<Folder>> create_folder(Id user, std::string name);
  // Nothing: not found.
  boost::asio::awaitable<std::optional<Folder>> rename_folder(Id user, Id folder, std::string name);
  // What is in it moves to the default folder. done, not_found or is_default.
  boost::asio::awaitable<Outcome> remove_folder(Id user, Id folder);

  struct TitledEntry {
    Entry entry;
    std::optional<std::string> title;
  };
  // What is in the folder, newest first. Nothing: not found.
  boost::asio::awaitable<std::optional<Listing<TitledEntry>>> items(Id user, Id folder, EntrySlice slice);

  // --- History ---

  boost::asio::awaitable<Listing<TitledEntry>> history(Id user, EntrySlice slice);
  boost::asio::awaitable<void> clear_history(Id user);

  // --- These block: for consumers, jobs and commands, never an I/O thread ---

  void count_reads_now(const idempotency::Inbox& inbox, std::span<const queue::Message> messages);
  void record_history_now(const idempotency::Inbox& inbox, std::span<const queue::Message> messages);
  // How much each is liked, in the order of `ids` (at most 32,000), by one statement.
  std::vector<std::int64_t> like_counts_now(std::string_view biz, std::span<const Id> ids);
  // All things of the kind that are liked at least so often (`likes` > 0), in no order; nothing when they are
  // more than `limit`. O(what it returns).
  std::optional<std::vector<std::pair<Id, std::int64_t>>> liked_at_least_now(std::string_view biz,
                                                                             std::int64_t likes,
                                                                             std::size_t limit);
  // In transactions of at most 1,000 rows.
  void like_many_now(std::string_view biz, std::span<const Like> likes);
  // Sets how many likes each brought along from elsewhere; importing again replaces them.
  void import_likes_now(std::string_view biz, std::span<const ImportedLikes> likes);
  // Adds reads that came along from elsewhere.
  void add_reads_now(std::string_view biz, std::span<const std::pair<Id, std::int64_t>> reads);
  // Puts the counts of likes and collections right from their rows, in small steps; calls `check`, which may
  // throw, between them. How many it put right.
  std::size_t recount_now(const std::function<void()>& check = [] {});

 private:
  boost::asio::awaitable<bool> exists(const Subject& subject);
  boost::asio::awaitable<std::vector<TitledEntry>> with_titles(std::vector<Entry> entries);

  InteractionRepository& interactions_;
  queue::Producer* producer_;
  const Doors doors_;
  const Clock& clock_;
};

}  // namespace weir::site::interaction

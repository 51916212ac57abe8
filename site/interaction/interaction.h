// The domain of interactions: what people do with a thing (read, like, collect), and how often it was done.
//
// A thing is named by what kind it is (`biz`: "article", "course") and its id there, so that whatever is
// added to the platform later has counts from its first day. Plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/hash.h"
#include "weir/base/id.h"

namespace weir::site::interaction {

// The topic of reads, and the groups that consume it: one counts, one remembers what each person read.
inline constexpr std::string_view kReadTopic = "read_events";
inline constexpr std::string_view kCountGroup = "interaction";
inline constexpr std::string_view kHistoryGroup = "history";

// Limits that the API tells.
inline constexpr std::size_t kMaxBulk = 100;  // ids of one bulk read
inline constexpr std::size_t kMaxBizBytes = 32;
inline constexpr std::size_t kMaxFolderNameCodePoints = 64;
inline constexpr std::size_t kMaxFolders = 1'000;  // of one person

struct Subject {
  std::string biz;
  Id id = 0;
  auto operator<=>(const Subject&) const = default;
};
struct SubjectHash {
  std::uint64_t operator()(const Subject& subject, std::uint64_t seed) const {
    return hash64(subject.biz, mix64(static_cast<std::uint64_t>(subject.id) ^ seed));
  }
};

// How often. Of two counts of one thing, the one with the greater version is newer; never seen is all zeros.
struct Counts {
  std::int64_t reads = 0, likes = 0, collects = 0;
  std::int64_t version = 0;
  bool operator==(const Counts&) const = default;
};
struct SubjectCounts {
  Subject subject;
  Counts counts;
};

// What one person did with it.
struct Mine {
  bool liked = false, collected = false;
  bool operator==(const Mine&) const = default;
};

// A folder of collected things. Everybody has one default folder, which can be renamed and not deleted.
struct Folder {
  Id id = 0;
  std::string name;
  bool is_default = false;
  std::int64_t item_count = 0;
  WallTime created_at{};
};

// A line of a folder or of the history: the thing, and when it was collected or last read.
struct Entry {
  Id row = 0;
  Subject subject;
  WallTime at{};
};

// A place in a list of entries, newest first: by time, then by row.
struct Place {
  WallTime at{};
  Id row = 0;
};

// Which part of a list is asked for: what comes behind `after` when it is set, else what comes from `offset`
// on.
template <class After>
struct Slice {
  std::int64_t limit = 20;
  std::int64_t offset = 0;
  std::optional<After> after{};
  bool with_total = false;
};
using EntrySlice = Slice<Place>;
using FolderSlice = Slice<Id>;

template <class T>
struct Listing {
  std::vector<T> items;
  bool more = false;  // there are rows behind the last item
  std::optional<std::int64_t> total{};
};
// Of rows that were asked for with one more than the limit, which tells whether there are more.
template <class T>
Listing<T> listing_of(std::vector<T> rows, std::int64_t limit) {
  Listing<T> listing;
  listing.more = std::cmp_greater(rows.size(), limit);
  if (listing.more) rows.resize(static_cast<std::size_t>(limit));
  listing.items = std::move(rows);
  return listing;
}

// A like that is written in bulk, by seeding.
struct Like {
  Id user_id = 0;
  Id biz_id = 0;
  WallTime at{};
};
// Likes that a thing brought along from elsewhere, whose givers aren't known here.
struct ImportedLikes {
  Id biz_id = 0;
  std::int64_t likes = 0;
};

// "1 to 64 characters": why a name can't be one, or nothing.
std::optional<std::string> folder_name_fault(std::string_view name);

// The payload of a read event: who read, 0 for nobody known; 8 bytes, little-endian.
inline constexpr std::size_t kReadPayloadBytes = 8;
void encode_read(Id user, char (&payload)[kReadPayloadBytes]);
// Nothing for bytes that are none.
std::optional<Id> decode_read(std::string_view payload);

}  // namespace weir::site::interaction

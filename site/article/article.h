// The article, as plain values. Each article has two copies under one id: the author's (drafts too, with a
// status and a version) and, while it is published, the readers', which only publishing changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::site::article {

// What interactions and events call an article: the `biz` of its counts.
inline constexpr std::string_view kBiz = "article";

inline constexpr std::size_t kMaxTitleCodePoints = 10'000;
// A request's body is at most 2 MiB; 64 KiB of it are left to the title and JSON's punctuation.
inline constexpr std::size_t kMaxContentBytes = (2 << 20) - (64 << 10);
inline constexpr std::size_t kAbstractCodePoints = 128;

enum class Status : std::uint8_t { draft = 0, published = 1, withdrawn = 2 };
// "draft", "published", "withdrawn".
std::string_view to_text(Status status);

// The author's copy. `version` grows with every change and starts at 1.
struct OwnArticle {
  Id id = 0;
  Id author_id = 0;
  std::string title, abstract, content;
  Status status = Status::draft;
  std::int64_t version = 1;
  std::optional<WallTime> published_at;  // the first publication, kept ever after
  WallTime updated_at{};                 // the last change, publishing and withdrawing included
};

// One line of a list: never the content.
struct Summary {
  Id id = 0;
  Id author_id = 0;
  std::string title, abstract;
  std::optional<Status> status;  // only on the author's side
  std::optional<WallTime> published_at;
  WallTime updated_at{};
  std::int64_t version = 0;
};
Summary summary_of(const OwnArticle& article);

// The readers' copy as the store has it.
struct PublishedArticle {
  Id id = 0;
  Id author_id = 0;
  std::string title, abstract, content;
  std::int64_t version = 0;  // the author's version that was published
  WallTime published_at{}, updated_at{};
};

// The readers' copy as it is cached: what an answer needs is rendered once, when the copy is loaded, so that
// answering is appending a few pieces. Immutable and so thread-safe. The content is kept only in its JSON
// form, not twice.
class ReaderCopy {
 public:
  explicit ReaderCopy(const PublishedArticle& article);

  Id id, author_id;
  std::string title, abstract;
  std::int64_t version;
  WallTime published_at, updated_at;

  // The answer's JSON from `{"id":` up to where the author's nickname comes, a JSON string with its
  // quotes ...
  std::string_view json_to_nickname() const { return std::string_view(json_).substr(0, split_); }
  // ... and from behind the nickname up to where the interaction's object comes. A `}` ends the answer.
  std::string_view json_to_interaction() const { return std::string_view(json_).substr(split_); }
  // The Markdown, made from the JSON at each call: for who renders it once and keeps that.
  std::string content() const;
  std::size_t content_bytes() const { return content_bytes_; }
  // What it weighs in a cache, in bytes.
  std::size_t weight() const;

 private:
  std::string json_;
  std::size_t split_ = 0, content_begin_ = 0, content_end_ = 0, content_bytes_ = 0;
};
using ReaderCopyPtr = std::shared_ptr<const ReaderCopy>;

// A place in the list of published articles, newest first: by first publication, then by id. It never changes
// for an article, so that a walk from place to place neither skips nor repeats one.
struct Place {
  WallTime published_at{};
  Id id = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// Rows that an offset may skip: skipping costs time for each row, which a cursor doesn't.
inline constexpr std::uint64_t kMaxDepth = 100'000;

// Which part of a list is asked for: the rows behind `after` when it is set, else those from `offset` on.
template <class After>
struct Slice {
  std::size_t limit = 20;
  std::uint64_t offset = 0;
  std::optional<After> after{};
  bool with_total = false;
};
using NewestSlice = Slice<Place>;
using OwnSlice = Slice<Id>;  // an author's list is ordered by id, newest first

struct Listing {
  std::vector<Summary> items;
  bool more = false;  // there are rows behind the last item
  // The offset lies within the list, but deeper than kMaxDepth: nothing was read.
  bool too_deep = false;
  std::optional<std::int64_t> total;
};

// An article that comes from elsewhere already published, with its own times.
struct ImportedArticle {
  Id author_id = 0;
  std::string title, content;
  WallTime published_at{};
  std::string external_id;  // empty: none. An external id that is known already is not imported again.
};
struct Imported {
  Id id = 0;
  bool inserted = false;
};

enum class Outcome : std::uint8_t { done, not_found, not_author, version_mismatch };

// What a change left: the outcome and, when it was done, the author's copy as it is now.
struct Changed {
  Outcome outcome = Outcome::done;
  Summary article;
};

// Why a title or a content can't be taken, or nothing. Both must be valid UTF-8 without NUL.
std::optional<std::string> title_fault(std::string_view title);
std::optional<std::string> content_fault(std::string_view content);

// The first 128 code points of the Markdown's text: no markup, no HTML, whitespace collapsed. Looks at no
// more than the first 16 KiB. O(1) in the size of the content beyond that.
std::string abstract_of(std::string_view markdown);

}  // namespace weir::site::article

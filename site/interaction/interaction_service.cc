#include "site/interaction/interaction_service.h"

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <charconv>
#include <cstring>
#include <utility>

#include "site/interaction/interaction_repository.h"
#include "weir/base/fault.h"
#include "weir/queue/producer.h"

namespace weir::site::interaction {
namespace {

// "article:42" without an allocation.
class EventKey {
 public:
  // `biz` has at most kMaxBizBytes; what is longer doesn't name anything, and would make a key that no
  // consumer reads.
  EventKey(std::string_view biz, Id id) {
    const std::size_t length = std::min(biz.size(), kMaxBizBytes);
    std::memcpy(text_.data(), biz.data(), length);
    text_[length] = ':';
    const auto end = std::to_chars(text_.data() + length + 1, text_.data() + text_.size(), id);
    size_ = static_cast<std::size_t>(end.ptr - text_.data());
  }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, kMaxBizBytes + 1 + 20> text_;
  std::size_t size_;
};

Outcome outcome_of(FolderOutcome outcome) {
  switch (outcome) {
    case FolderOutcome::done:
      return Outcome::done;
    case FolderOutcome::is_default:
      return Outcome::is_default;
    case FolderOutcome::not_found:
      break;
  }
  return Outcome::not_found;
}

}  // namespace

InteractionService::InteractionService(InteractionRepository& interactions, queue::Producer* producer,
                                       Doors doors, const Clock& clock)
    : interactions_(interactions), producer_(producer), doors_(std::move(doors)), clock_(clock) {}

boost::asio::awaitable<bool> InteractionService::exists(const Subject& subject) {
  co_return !doors_.exists || co_await doors_.exists(subject.biz, subject.id);
}

std::optional<Counts> InteractionService::find(std::string_view biz, Id biz_id) {
  return interactions_.find({std::string(biz), biz_id});
}

boost::asio::awaitable<Counts> InteractionService::counts(std::string biz, Id biz_id) {
  co_return co_await interactions_.counts({std::move(biz), biz_id});
}

boost::asio::awaitable<std::vector<Counts>> InteractionService::counts_of(std::string biz,
                                                                          std::vector<Id> ids) {
  std::vector<Subject> subjects;
  subjects.reserve(ids.size());
  for (const Id id : ids) subjects.push_back({biz, id});
  co_return co_await interactions_.counts_of(std::move(subjects));
}

boost::asio::awaitable<Mine> InteractionService::mine(Id user, std::string biz, Id biz_id) {
  co_return co_await interactions_.mine(user, {std::move(biz), biz_id});
}

boost::asio::awaitable<std::optional<InteractionService::View>> InteractionService::view(
    Subject subject, std::optional<Id> user) {
  using namespace boost::asio::experimental::awaitable_operators;
  if (!co_await exists(subject)) co_return std::nullopt;
  const auto known = interactions_.find(subject);
  if (!user) co_return View{known ? *known : co_await interactions_.counts(subject), std::nullopt};
  if (known) co_return View{*known, co_await interactions_.mine(*user, subject)};
  auto [counts, mine] = co_await (interactions_.counts(subject) && interactions_.mine(*user, subject));
  co_return View{counts, mine};
}

boost::asio::awaitable<std::vector<InteractionService::View>> InteractionService::views(
    std::string biz, std::vector<Id> ids, std::optional<Id> user) {
  std::vector<Mine> mine;
  if (user) mine = co_await interactions_.mine_of(*user, biz, ids);
  std::vector<View> views;
  for (const Counts& counts : co_await counts_of(std::move(biz), std::move(ids))) {
    const std::size_t at = views.size();
    views.push_back({counts, user ? std::optional(mine[at]) : std::nullopt});
  }
  co_return views;
}

bool InteractionService::record_read(std::string_view biz, Id biz_id, Id user,
                                     std::string_view event_id) noexcept {
  const EventKey key(biz, biz_id);
  char payload[kReadPayloadBytes];
  encode_read(user, payload);
  return producer_ != nullptr &&
         producer_->publish({kReadTopic, key.view(), {payload, sizeof payload}, event_id});
}

boost::asio::awaitable<Outcome> InteractionService::publish_read(Subject subject, Id user,
                                                                 std::string event_id) {
  if (!co_await exists(subject)) co_return Outcome::not_found;
  const EventKey key(subject.biz, subject.id);
  char payload[kReadPayloadBytes];
  encode_read(user, payload);
  const queue::Event event{kReadTopic, key.view(), {payload, sizeof payload}, event_id};
  if (producer_ == nullptr || !co_await producer_->publish_acked(event))
    throw Unavailable("no room for another event");
  co_return Outcome::done;
}

boost::asio::awaitable<Outcome> InteractionService::like(Id user, Subject subject) {
  if (!co_await exists(subject)) co_return Outcome::not_found;
  co_await interactions_.set_like(user, std::move(subject), true, clock_.now());
  co_return Outcome::done;
}

boost::asio::awaitable<Outcome> InteractionService::unlike(Id user, Subject subject) {
  if (co_await interactions_.set_like(user, subject, false, clock_.now())) co_return Outcome::done;
  // Nothing was there to take back: fine, unless the thing isn't there either.
  co_return co_await exists(subject) ? Outcome::done : Outcome::not_found;
}

boost::asio::awaitable<Outcome> InteractionService::collect(Id user, Subject subject,
                                                            std::optional<Id> folder) {
  if (!co_await exists(subject)) co_return Outcome::not_found;
  const auto collected = co_await interactions_.collect(user, std::move(subject), folder, clock_.now());
  co_return collected.folder_found ? Outcome::done : Outcome::not_found;
}

boost::asio::awaitable<Outcome> InteractionService::uncollect(Id user, Subject subject,
                                                              std::optional<Id> folder) {
  const auto collected = co_await interactions_.uncollect(user, subject, folder);
  if (!collected.folder_found) co_return Outcome::not_found;
  if (collected.changed) co_return Outcome::done;
  co_return co_await exists(subject) ? Outcome::done : Outcome::not_found;
}

boost::asio::awaitable<Listing<Folder>> InteractionService::folders(Id user, FolderSlice slice) {
  co_return co_await interactions_.folders(user, slice, clock_.now());
}

boost::asio::awaitable<std::optional<Folder>> InteractionService::create_folder(Id user, std::string name) {
  co_return co_await interactions_.create_folder(user, std::move(name), clock_.now());
}

boost::asio::awaitable<std::optional<Folder>> InteractionService::rename_folder(Id user, Id folder,
                                                                                std::string name) {
  co_return co_await interactions_.rename_folder(user, folder, std::move(name));
}

boost::asio::awaitable<Outcome> InteractionService::remove_folder(Id user, Id folder) {
  co_return outcome_of(co_await interactions_.remove_folder(user, folder, clock_.now()));
}

boost::asio::awaitable<std::vector<InteractionService::TitledEntry>> InteractionService::with_titles(
    std::vector<Entry> entries) {
  std::vector<TitledEntry> titled;
  titled.reserve(entries.size());
  for (Entry& entry : entries) titled.push_back({std::move(entry), std::nullopt});
  if (!doors_.titles) co_return titled;
  // One question for each kind of thing, and hardly ever is there more than one.
  std::vector<std::pair<std::string, std::vector<std::size_t>>> kinds;
  for (std::size_t i = 0; i < titled.size(); ++i) {
    const auto& biz = titled[i].entry.subject.biz;
    auto kind = std::ranges::find(kinds, biz, [](const auto& k) -> const std::string& { return k.first; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {biz, {}});
    kind->second.push_back(i);
  }
  for (const auto& [biz, places] : kinds) {
    std::vector<Id> ids;
    for (const std::size_t place : places) ids.push_back(titled[place].entry.subject.id);
    auto titles = co_await doors_.titles(biz, std::move(ids));
    for (std::size_t i = 0; i < places.size() && i < titles.size(); ++i)
      titled[places[i]].title = std::move(titles[i]);
  }
  co_return titled;
}

boost::asio::awaitable<std::optional<Listing<InteractionService::TitledEntry>>> InteractionService::items(
    Id user, Id folder, EntrySlice slice) {
  auto found = co_await interactions_.items(user, folder, slice);
  if (!found) co_return std::nullopt;
  co_return Listing<TitledEntry>{co_await with_titles(std::move(found->items)), found->more, found->total};
}

boost::asio::awaitable<Listing<InteractionService::TitledEntry>> InteractionService::history(
    Id user, EntrySlice slice) {
  auto found = co_await interactions_.history(user, slice);
  co_return Listing<TitledEntry>{co_await with_titles(std::move(found.items)), found.more, found.total};
}

boost::asio::awaitable<void> InteractionService::clear_history(Id user) {
  co_await interactions_.clear_history(user, clock_.now());
}

void InteractionService::count_reads_now(const idempotency::Inbox& inbox,
                                         std::span<const queue::Message> messages) {
  interactions_.count_reads_now(inbox, messages);
}

void InteractionService::record_history_now(const idempotency::Inbox& inbox,
                                            std::span<const queue::Message> messages) {
  interactions_.record_history_now(inbox, messages);
}

std::vector<std::int64_t> InteractionService::like_counts_now(std::string_view biz, std::span<const Id> ids) {
  return interactions_.like_counts_now(biz, ids);
}

std::optional<std::vector<std::pair<Id, std::int64_t>>> InteractionService::liked_at_least_now(
    std::string_view biz, std::int64_t likes, std::size_t limit) {
  return interactions_.liked_at_least_now(biz, likes, limit);
}

void InteractionService::like_many_now(std::string_view biz, std::span<const Like> likes) {
  interactions_.like_many_now(biz, likes);
}

void InteractionService::import_likes_now(std::string_view biz, std::span<const ImportedLikes> likes) {
  interactions_.import_likes_now(biz, likes);
}

void InteractionService::add_reads_now(std::string_view biz,
                                       std::span<const std::pair<Id, std::int64_t>> reads) {
  interactions_.add_reads_now(biz, reads);
}

std::size_t InteractionService::recount_now(const std::function<void()>& check) {
  return interactions_.recount_now(check);
}

}  // namespace weir::site::interaction

#include "site/interaction/interaction_repository.h"

#include <map>
#include <memory>
#include <utility>

namespace weir::site::interaction {
namespace {

// Things of one step of recounting: a step holds the store's writer for a few milliseconds.
constexpr std::size_t kRecountedAtOnce = 200;

// What was never seen has counts too: zeros. So they are cached as long as others, and a first like replaces
// them.
boost::asio::awaitable<std::optional<Counts>> load(InteractionStore& store, Subject subject) {
  const auto found = co_await store.counts(std::move(subject));
  co_return found.value_or(Counts{});
}

boost::asio::awaitable<std::vector<std::pair<Subject, Counts>>> load_all(InteractionStore& store,
                                                                         std::vector<Subject> subjects) {
  std::map<Subject, Counts> counts;
  for (auto& subject : subjects) counts.emplace(subject, Counts{});
  for (const auto& [subject, found] : co_await store.counts_of(std::move(subjects))) counts[subject] = found;
  co_return std::vector<std::pair<Subject, Counts>>(counts.begin(), counts.end());
}

}  // namespace

InteractionRepository::CountsCache::Options InteractionRepository::cache_options(InteractionStore& store,
                                                                                 const Options& options) {
  CountsCache::Options cache;
  cache.name = "interaction";
  cache.capacity = options.capacity;
  cache.ttl = kTtl;
  cache.clock = options.clock;
  cache.weigher = [](const Subject& subject, const Counts&) {
    return sizeof(Counts) + (subject.biz.size() < sizeof(std::string) / 2 ? 0 : subject.biz.size() + 1);
  };
  cache.bulk_load = [&store](std::vector<Subject> subjects) { return load_all(store, std::move(subjects)); };
  return cache;
}

InteractionRepository::InteractionRepository(InteractionStore& interactions, CollectionStore& collections,
                                             HistoryStore& history, boost::asio::any_io_executor loads,
                                             Options options)
    : interactions_(interactions),
      collections_(collections),
      history_(history),
      counts_(
          cache_options(interactions, options),
          [&interactions](Subject subject) { return load(interactions, std::move(subject)); },
          std::move(loads)) {}

std::optional<Counts> InteractionRepository::find(const Subject& subject) {
  const auto found = counts_.find(subject);
  if (!found) return std::nullopt;
  return *found ? **found : Counts{};
}

boost::asio::awaitable<Counts> InteractionRepository::counts(Subject subject) {
  const auto found = co_await counts_.get(std::move(subject));
  co_return found ? *found : Counts{};
}

boost::asio::awaitable<std::vector<Counts>> InteractionRepository::counts_of(std::vector<Subject> subjects) {
  std::vector<Counts> counts;
  counts.reserve(subjects.size());
  for (const auto& found : co_await counts_.get_all(subjects)) counts.push_back(found ? *found : Counts{});
  co_return counts;
}

boost::asio::awaitable<Mine> InteractionRepository::mine(Id user, Subject subject) {
  co_return co_await interactions_.mine(user, std::move(subject));
}

boost::asio::awaitable<std::vector<Mine>> InteractionRepository::mine_of(Id user, std::string biz,
                                                                         std::vector<Id> ids) {
  co_return co_await interactions_.mine_of(user, std::move(biz), std::move(ids));
}

// What isn't cached is left alone: the next reader loads it. In either case a load under way, which may have
// read older counts, can't fill the cache any more.
void InteractionRepository::write_through(const Subject& subject, const Counts& counts) {
  const auto fresh = std::make_shared<const Counts>(counts);
  counts_.update(subject,
                 [&](const Counts& current) { return current.version < fresh->version ? fresh : nullptr; });
}

boost::asio::awaitable<bool> InteractionRepository::set_like(Id user, Subject subject, bool liked,
                                                             WallTime now) {
  const auto counts = co_await interactions_.set_like(user, subject, liked, now);
  if (counts) write_through(subject, *counts);
  co_return counts.has_value();
}

boost::asio::awaitable<InteractionRepository::Collected> InteractionRepository::collect(
    Id user, Subject subject, std::optional<Id> folder, WallTime now) {
  const auto collected = co_await collections_.collect(user, subject, folder, now);
  if (collected.counts) write_through(subject, *collected.counts);
  co_return Collected{collected.folder_found, collected.counts.has_value()};
}

boost::asio::awaitable<InteractionRepository::Collected> InteractionRepository::uncollect(
    Id user, Subject subject, std::optional<Id> folder) {
  const auto collected = co_await collections_.uncollect(user, subject, folder);
  if (collected.counts) write_through(subject, *collected.counts);
  co_return Collected{collected.folder_found, collected.counts.has_value()};
}

boost::asio::awaitable<Listing<Folder>> InteractionRepository::folders(Id user, FolderSlice slice,
                                                                       WallTime now) {
  co_return co_await collections_.folders(user, slice, now);
}

boost::asio::awaitable<std::optional<Folder>> InteractionRepository::create_folder(Id user, std::string name,
                                                                                   WallTime now) {
  co_return co_await collections_.create(user, std::move(name), now);
}

boost::asio::awaitable<std::optional<Folder>> InteractionRepository::rename_folder(Id user, Id folder,
                                                                                   std::string name) {
  co_return co_await collections_.rename(user, folder, std::move(name));
}

boost::asio::awaitable<FolderOutcome> InteractionRepository::remove_folder(Id user, Id folder, WallTime now) {
  co_return co_await collections_.remove(user, folder, now);
}

boost::asio::awaitable<std::optional<Listing<Entry>>> InteractionRepository::items(Id user, Id folder,
                                                                                   EntrySlice slice) {
  co_return co_await collections_.items(user, folder, slice);
}

boost::asio::awaitable<Listing<Entry>> InteractionRepository::history(Id user, EntrySlice slice) {
  co_return co_await history_.list(user, slice);
}

boost::asio::awaitable<void> InteractionRepository::clear_history(Id user, WallTime now) {
  co_await history_.clear(user, now);
}

void InteractionRepository::count_reads_now(const idempotency::Inbox& inbox,
                                            std::span<const queue::Message> messages) {
  for (const auto& [subject, counts] : interactions_.count_reads_now(inbox, messages))
    write_through(subject, counts);
}

void InteractionRepository::record_history_now(const idempotency::Inbox& inbox,
                                               std::span<const queue::Message> messages) {
  history_.record_now(inbox, messages);
}

std::vector<std::int64_t> InteractionRepository::like_counts_now(std::string_view biz,
                                                                 std::span<const Id> ids) {
  return interactions_.like_counts_now(biz, ids);
}

void InteractionRepository::like_many_now(std::string_view biz, std::span<const Like> likes) {
  interactions_.like_many_now(biz, likes);
  for (const Like& like : likes) counts_.invalidate({std::string(biz), like.biz_id});
}

void InteractionRepository::import_likes_now(std::string_view biz, std::span<const ImportedLikes> likes) {
  interactions_.import_likes_now(biz, likes);
  for (const ImportedLikes& one : likes) counts_.invalidate({std::string(biz), one.biz_id});
}

void InteractionRepository::add_reads_now(std::string_view biz,
                                          std::span<const std::pair<Id, std::int64_t>> reads) {
  interactions_.add_reads_now(biz, reads);
  for (const auto& [id, by] : reads) counts_.invalidate({std::string(biz), id});
}

std::size_t InteractionRepository::recount_now(const std::function<void()>& check) {
  std::size_t changed = 0;
  for (Subject after;;) {
    check();
    auto step = interactions_.recount_now(after, kRecountedAtOnce);
    for (const auto& [subject, counts] : step.changed) write_through(subject, counts);
    changed += step.changed.size();
    if (!step.last) return changed;
    after = *std::move(step.last);
  }
}

}  // namespace weir::site::interaction

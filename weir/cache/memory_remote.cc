#include "weir/cache/memory_remote.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "weir/base/fault.h"
#include "weir/cache/ttl.h"

namespace weir::cache {

MemoryRemote::MemoryRemote(Options options)
    : options_(std::move(options)),
      metrics_(options_.name),
      random_(options_.seed != 0 ? options_.seed : secure_random64()) {}
MemoryRemote::~MemoryRemote() = default;

void MemoryRemote::set_trouble(Trouble trouble) {
  std::shared_ptr<Gate> mended;
  {
    const std::lock_guard lock(mutex_);
    trouble_ = trouble;
    if (!trouble.hangs) mended = std::move(mended_);
  }
  if (mended) mended->open([] {});
}

auto MemoryRemote::arrive(std::size_t looks) -> Awaitable<void> {
  Millis latency{0};
  {
    const std::lock_guard lock(mutex_);
    ++calls_;
    latency = trouble_.latency;
  }
  if (latency > Millis(0)) co_await options_.pause(latency);
  std::shared_ptr<Gate> mended;
  bool refused = false;
  {
    const std::lock_guard lock(mutex_);
    refused = trouble_.refuses;
    if (trouble_.hangs && !mended_) mended_ = std::make_shared<Gate>();
    if (trouble_.hangs) mended = mended_;
  }
  if (!refused && (!mended || co_await opened_within(mended, options_.timeout, options_.pause))) co_return;
  metrics_.error.add(static_cast<double>(looks));
  if (refused) throw Unavailable("the remote level refuses");
  throw TimedOut("the remote level doesn't answer");
}

void MemoryRemote::leave(std::size_t looks) {
  const std::lock_guard lock(mutex_);
  if (!trouble_.loses_replies) return;
  metrics_.error.add(static_cast<double>(looks));
  throw Unavailable("the remote level's reply was lost");
}

// The rest up to the next break is under the lock.

// Why the key can't be used.
std::optional<std::string> MemoryRemote::fault_of(const std::string& key) const {
  if (!key.empty() && key.size() <= options_.max_key_bytes) return std::nullopt;
  return "a key has " + std::to_string(key.size()) + " bytes";
}

void MemoryRemote::check(const std::string& key) const {
  if (auto why = fault_of(key)) throw std::invalid_argument(*why);
}

void MemoryRemote::refuse_foreign(const std::string& key, bool is_foreign) {
  if (is_foreign) throw KeyFault("what is under the key " + key + " is of another type");
}

// Null when there is none.
auto MemoryRemote::find(const std::string& key) -> Entry* {
  check(key);
  const auto at = entries_.find(key);
  return at == entries_.end() ? nullptr : &at->second;
}

auto MemoryRemote::entry_of(const std::string& key) -> Entry& {
  if (Entry* const entry = find(key)) return *entry;
  make_room({&key, 1});
  return entries_[key];
}

void MemoryRemote::make_room(std::span<const std::string> keys) {
  const auto too_many = [&] {
    const auto missing =
        std::ranges::count_if(keys, [&](const auto& key) { return !fault_of(key) && find(key) == nullptr; });
    return entries_.size() + static_cast<std::size_t>(missing) > options_.max_keys;
  };
  if (!too_many()) return;
  purge();
  if (too_many()) throw Unavailable("the remote level is full");
}

// O(keys), and only when it is full: what is dead goes.
void MemoryRemote::purge() {
  std::erase_if(entries_, [&](auto& each) {
    const Entry& entry = each.second;
    return !hit_of(entry) && !is_leased(entry) && !entry.foreign_value && !entry.foreign_lease &&
           std::ranges::all_of(entry.waiting, [](const auto& gate) { return gate.expired(); });
  });
}

auto MemoryRemote::hit_of(const Entry& entry) const -> std::optional<Hit> {
  const SteadyTime now = options_.clock->steady_now();
  if (!entry.known || now >= entry.expires) return std::nullopt;
  return Hit{entry.value, std::chrono::duration_cast<Millis>(entry.expires - now)};
}

bool MemoryRemote::is_leased(const Entry& entry) const {
  return !entry.token.empty() && options_.clock->steady_now() < entry.lease_expires;
}

auto MemoryRemote::new_lease(Entry& entry) -> Lease {
  entry.token = std::to_string(++last_token_);
  entry.foreign_lease = false;
  entry.lease_expires = options_.clock->steady_now() + options_.lease_ttl;
  return {entry.token};
}

auto MemoryRemote::ask(const std::string& key) -> Answer {
  Entry& entry = entry_of(key);
  refuse_foreign(key, entry.foreign_value);
  if (auto hit = hit_of(entry)) return std::move(*hit);
  refuse_foreign(key, entry.foreign_lease);
  if (is_leased(entry))
    return Held{std::chrono::ceil<Millis>(entry.lease_expires - options_.clock->steady_now())};
  return new_lease(entry);
}

bool MemoryRemote::put(const std::string& key, const Lease& lease, std::optional<std::string> value,
                       std::optional<Millis> ttl) {
  Entry* const there = fault_of(key) ? nullptr : find(key);
  if (there == nullptr || !is_leased(*there) || there->token != lease.token) return false;
  Entry& entry = *there;
  entry.token.clear();
  wake(entry);
  if (value && value->size() > options_.max_value_bytes) return false;
  const Millis base = ttl.value_or(value ? options_.ttl : options_.negative_ttl);
  entry.known = true;
  entry.foreign_value = false;
  entry.value = std::move(value);
  entry.expires = options_.clock->steady_now() + jittered(base, options_.jitter, random_);
  return true;
}

void MemoryRemote::forget(const std::string& key) {
  Entry* const entry = find(key);
  if (entry != nullptr) clear(*entry);
}

void MemoryRemote::clear(Entry& entry) {
  entry.known = entry.foreign_value = entry.foreign_lease = false;
  entry.token.clear();
  wake(entry);
}

void MemoryRemote::wake(Entry& entry) {
  for (const auto& waiting : std::exchange(entry.waiting, {}))
    if (const auto gate = waiting.lock()) gate->open([] {});
}

// The calls.

auto MemoryRemote::get(std::string key) -> Awaitable<std::optional<Hit>> {
  co_await arrive(1);
  std::optional<Hit> hit;
  {
    const std::lock_guard lock(mutex_);
    if (const Entry* const entry = find(key)) {
      refuse_foreign(key, entry->foreign_value);
      hit = hit_of(*entry);
    }
  }
  leave(1);
  if (hit) {
    metrics_.count(*hit);
  } else {
    metrics_.miss.add();
  }
  co_return hit;
}

auto MemoryRemote::peek(std::string key) -> Awaitable<Sight> {
  co_await arrive();
  Sight sight;
  {
    const std::lock_guard lock(mutex_);
    if (const Entry* const entry = find(key)) {
      refuse_foreign(key, entry->foreign_value || entry->foreign_lease);
      sight.hit = hit_of(*entry);
      if (is_leased(*entry))
        sight.leased = std::chrono::ceil<Millis>(entry->lease_expires - options_.clock->steady_now());
    }
  }
  leave();
  co_return sight;
}

auto MemoryRemote::get_or_wait(std::string key, Millis patience) -> Awaitable<Answer> {
  const SteadyTime give_up =
      options_.clock->steady_now() + std::clamp(patience, Millis(0), options_.lease_ttl * 2);
  for (;;) {
    co_await arrive(1);
    std::optional<Answer> answer;
    const auto changed = std::make_shared<Gate>();
    {
      const std::lock_guard lock(mutex_);
      answer = ask(key);
      auto& waiting = entry_of(key).waiting;
      std::erase_if(waiting, [](const auto& gate) { return gate.expired(); });
      waiting.push_back(changed);
    }
    leave(1);
    const auto left = give_up - options_.clock->steady_now();
    const auto* held = std::get_if<Held>(&*answer);
    if (held == nullptr || left <= Duration::zero()) {
      metrics_.count(*answer);  // once, however often we have looked
      co_return std::move(*answer);
    }
    co_await opened_within(changed, std::min<Duration>(left, held->left), options_.pause);
  }
}

auto MemoryRemote::get_or_lease_many(std::vector<std::string> keys) -> Awaitable<std::vector<Answer>> {
  co_await arrive(keys.size());
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mutex_);
    make_room(keys);  // for all or none: an answer that isn't given must grant no lease
    for (const auto& key : keys) {
      try {
        answers.push_back(ask(key));
      } catch (const KeyFault& fault) {
        answers.emplace_back(fault);
      } catch (const std::invalid_argument& unusable) {
        answers.emplace_back(KeyFault(unusable.what()));
      }
    }
  }
  leave(keys.size());
  for (const auto& answer : answers) metrics_.count(answer);
  co_return answers;
}

auto MemoryRemote::lease(std::string key) -> Awaitable<std::optional<Lease>> {
  co_await arrive();
  std::optional<Lease> granted;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(key);
    refuse_foreign(key, entry.foreign_lease);
    if (!is_leased(entry)) granted = new_lease(entry);
  }
  leave();
  (granted ? metrics_.granted : metrics_.held).add();
  co_return granted;
}

auto MemoryRemote::take_over(std::string key) -> Awaitable<Lease> {
  co_await arrive();
  Lease granted;
  {
    const std::lock_guard lock(mutex_);
    granted = new_lease(entry_of(key));
  }
  leave();
  metrics_.granted.add();
  co_return granted;
}

auto MemoryRemote::fill_many(std::vector<Fill> fills) -> Awaitable<std::vector<bool>> {
  co_await arrive();
  std::vector<bool> done(fills.size());
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < fills.size(); ++i)
      done[i] = put(fills[i].key, fills[i].lease, std::move(fills[i].value), fills[i].ttl);
  }
  leave();
  metrics_.count_fills(done.size(), static_cast<std::size_t>(std::ranges::count(done, true)));
  co_return done;
}

auto MemoryRemote::release(std::string key, Lease lease) -> Awaitable<void> {
  co_await arrive();
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = find(key);
    refuse_foreign(key, entry != nullptr && entry->foreign_lease);
    if (entry != nullptr && entry->token == lease.token) {
      entry->token.clear();
      wake(*entry);
    }
  }
  leave();
}

auto MemoryRemote::remove_many(std::vector<std::string> keys) -> Awaitable<void> {
  co_await arrive();
  std::exception_ptr unusable;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& key : keys) {
      try {
        forget(key);
      } catch (const std::invalid_argument&) {
        if (!unusable) unusable = std::current_exception();  // the others are dropped all the same
      }
    }
  }
  leave();
  if (unusable) std::rethrow_exception(unusable);
}

auto MemoryRemote::remove(std::string key, Lease own) -> Awaitable<bool> {
  co_await arrive();
  bool good = false;
  {
    const std::lock_guard lock(mutex_);
    Entry* const entry = find(key);
    good = entry != nullptr && is_leased(*entry) && entry->token == own.token;
    if (good) {
      entry->known = entry->foreign_value = false;
    } else {
      forget(key);
    }
  }
  leave();
  co_return good;
}

void MemoryRemote::evict_value(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (Entry* const entry = find(key)) entry->known = false;
}

void MemoryRemote::evict_lease(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Entry* const entry = find(key);
  if (entry == nullptr) return;
  entry->token.clear();
  wake(*entry);
}

void MemoryRemote::flush() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) clear(entry);
}

void MemoryRemote::plant(const std::string& key, std::string bytes) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(key);
  entry.known = true;
  entry.value = std::move(bytes);
  entry.expires = options_.clock->steady_now() + options_.ttl;
}

void MemoryRemote::plant_foreign(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(key);
  clear(entry);
  entry.foreign_value = entry.foreign_lease = true;
}

std::uint64_t MemoryRemote::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

}  // namespace weir::cache

// RemoteStep: what a ReadThrough asks of the level that nodes share, and what it tells it, in values instead of
// bytes. Failures of the level end here: they are answers ("away"), counted, and the breaker's business. So do those of
// one key, which aren't the breaker's ("unusable"), and whatever a codec throws.
//
// Used by ReadThrough's core, which outlives every call. Thread-safe.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/fault.h"
#include "weir/cache/breaker.h"
#include "weir/cache/cache_metrics.h"
#include "weir/cache/owed_drops.h"
#include "weir/cache/read_through_options.h"
#include "weir/cache/ttl.h"
#include "weir/telemetry/metrics.h"

namespace weir::cache {

template <class K, class V>
class RemoteStep {
 public:
  using Millis = std::chrono::milliseconds;
  using Value = std::shared_ptr<const V>;
  template <class T>
  using Awaitable = boost::asio::awaitable<T>;

  enum class Turn {
    known,     // it has told the value, or the absence
    ours,      // to load and to share, under the lease
    held,      // another node loads, and the patience has ended
    away,      // it has failed, or wasn't asked because it is known to
    unusable,  // the key can't be used there, or what is under it: load, and share nothing
  };
  struct Answer {
    Turn turn = Turn::away;
    Value value{};     // of `known`; null: absent
    Millis left{0};    // of its TTL there
    Duration age{0};   // since it was loaded
    Duration took{0};  // to load
    RemoteLevel::Lease lease{};
  };
  // How offering a value ended. Refused: a write came between, or the lease ran out; then what was read may be old.
  enum class Shared { kept, refused, unknown };
  struct Offer {
    K key;
    RemoteLevel::Lease lease;
    Value value;
    std::optional<Millis> ttl;  // none: the cache's own, which so bounds the value's age on all nodes
  };

  RemoteStep(const ReadThroughOptions<K, V>& options, CacheMetrics& metrics)
      : name_(options.name),
        use_(options.remote),
        level_(*options.remote.level),
        clock_(*options.clock),
        metrics_(metrics),
        ttl_(options.ttl),
        negative_ttl_(options.negative_ttl),
        patience_(!use_.lease                      ? Millis(0)
                  : use_.patience > Millis::zero() ? use_.patience
                                                   : options.load_timeout / 2),
        breaker_(clock_, use_.retry_first, use_.retry_last),
        owed_(clock_, kLongestKept) {
    if (!use_.codec.key || !use_.codec.encode || !use_.codec.decode)
      throw std::invalid_argument("the cache " + name_ + " has a remote level and no codec for it");
    // Or a slow load's lease would run out under it, and another node would load beside it.
    if (level_.lease_ttl() < options.load_timeout)
      throw std::invalid_argument("the remote lease of the cache " + name_ +
                                  " is shorter than its load_timeout");
    if (patience_ >= options.load_timeout)
      throw std::invalid_argument("the patience of the cache " + name_ + " leaves no time for a load");
  }

  // Before a load: what is known, or whose turn it is.
  Awaitable<Answer> ask(K key) {
    const auto name = name_of(key);
    if (!name) co_return Answer{.turn = Turn::unusable};
    if (!allowed() || (owed_.any() && !co_await made_up({*name}))) co_return Answer{};
    auto tried = co_await attempt(level_.get_or_wait(*name, patience_));
    if (!tried.answer) co_return failed(tried.usable);
    if (auto known = understood(*name, std::move(*tried.answer))) co_return std::move(*known);
    co_return co_await lease_of(*name);  // damaged, so as good as a miss: to be replaced
  }

  // Before a refresh: what another node has loaded within `fresh_for`, or the lease although a value is there.
  Awaitable<Answer> ask_refresh(K key, Duration fresh_for) {
    const auto name = name_of(key);
    if (!name) co_return Answer{.turn = Turn::unusable};
    if (!allowed() || (owed_.any() && !co_await made_up({*name}))) co_return Answer{};
    auto there = co_await attempt(level_.get(*name));
    if (!there.answer) co_return failed(there.usable);
    if (*there.answer) {
      auto known = decoded(*name, std::move(**there.answer));
      if (known && known->age < fresh_for) co_return std::move(*known);
    }
    co_return co_await lease_of(*name);
  }

  // Without patience, for many, in the keys' order; one round trip. A damaged value has no lease with it, and to ask
  // for each would be a round trip for each: it is loaded and not shared, and stays until its TTL ends or the next
  // single read replaces it.
  Awaitable<std::vector<Answer>> ask_many(std::vector<K> keys) {
    std::vector<Answer> answers(keys.size());
    std::vector<std::string> names;
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (auto name = name_of(keys[i])) {
        names.push_back(std::move(*name));
        at.push_back(i);
      } else {
        answers[i].turn = Turn::unusable;
      }
    }
    if (names.empty() || !allowed() || (owed_.any() && !co_await made_up(names))) co_return answers;
    auto tried = co_await attempt(level_.get_or_lease_many(names));
    if (!tried.answer) {
      for (const std::size_t i : at) answers[i] = failed(tried.usable);
      co_return answers;
    }
    for (std::size_t i = 0; i < at.size(); ++i) {
      const auto& answer = (*tried.answer)[i];
      if (const auto* fault = std::get_if<KeyFault>(&answer)) note_key(*fault);
      if (const auto* part = std::get_if<RemoteLevel::Away>(&answer))
        swallowed("a part of " + name_, part->why);
      auto known = understood(names[i], std::move((*tried.answer)[i]));
      answers[at[i]] = known ? std::move(*known) : Answer{.turn = Turn::unusable};
    }
    co_return answers;
  }

  // After a load: for each offer, in their order, how it ended.
  Awaitable<std::vector<Shared>> share(std::vector<Offer> offers, Duration took) {
    std::vector<Shared> ends(offers.size(), Shared::unknown);
    std::vector<RemoteLevel::Fill> fills;
    std::vector<std::size_t> at;
    const Origin origin{clock_.now(), std::chrono::duration_cast<std::chrono::microseconds>(took)};
    if (breaker_.is_open()) co_return ends;  // the leases run out
    for (std::size_t i = 0; i < offers.size(); ++i) {
      if (auto fill = encoded(offers[i], origin)) {
        fills.push_back(std::move(*fill));
        at.push_back(i);
      } else {
        co_await give_back(offers[i].key, std::move(offers[i].lease));
      }
    }
    if (fills.empty()) co_return ends;
    const auto tried = co_await attempt(level_.fill_many(std::move(fills)));
    for (std::size_t i = 0; tried.answer && i < at.size(); ++i)
      ends[at[i]] = (*tried.answer)[i] ? Shared::kept : Shared::refused;
    co_return ends;
  }

  // After a load that failed.
  Awaitable<void> give_back(K key, RemoteLevel::Lease lease) {
    if (breaker_.is_open()) co_return;
    if (const auto name = name_of(key)) co_await attempt(level_.release(*name, std::move(lease)));
  }

  // Before a write: the lease to publish ahead under; nothing when the level is away.
  Awaitable<std::optional<RemoteLevel::Lease>> take_over(K key) {
    const auto name = name_of(key);
    if (!name || !allowed()) co_return std::nullopt;
    co_return (co_await attempt(level_.take_over(*name))).answer;
  }

  // After a write's commit. Tried even while the level is known to fail: what stays there is a lie.
  struct Dropped {
    bool done = false;
    bool still_ours = false;  // the lease that was given is still good
  };
  Awaitable<Dropped> drop(K key, std::optional<RemoteLevel::Lease> own) {
    if (!own) co_return Dropped{.done = co_await drop_many({std::move(key)})};
    Dropped dropped;
    if (const auto name = name_of(key)) {
      const auto tried = co_await attempt(level_.remove(*name, std::move(*own)));
      dropped = {tried.answer.has_value(), tried.answer.value_or(false)};
      co_await note_drop({*name}, dropped.done, tried.usable);
    }
    count_drops(1, dropped.done);
    co_return dropped;
  }
  Awaitable<bool> drop_many(std::vector<K> keys) {
    std::vector<std::string> names;
    for (const K& key : keys)
      if (auto name = name_of(key)) names.push_back(std::move(*name));
    const std::size_t usable = names.size();
    const auto tried = co_await attempt(level_.remove_many(names));
    const bool done = tried.answer.has_value();
    co_await note_drop(std::move(names), done, tried.usable);
    count_drops(keys.size(), done && usable == keys.size());
    co_return done&& usable == keys.size();
  }

  // For people: nothing is counted or changed, and the breaker isn't told. Throws what the level throws, and KeyFault
  // when the codec has no name for the key.
  struct Sight {
    std::optional<Answer> known;
    bool damaged = false;  // there is something, and it is no value of ours
    std::optional<Millis> leased;
  };
  Awaitable<Sight> peek(K key) {
    std::string name;
    try {
      name = use_.codec.key(key);
    } catch (...) {
      throw KeyFault("the codec has no name for the key");
    }
    auto seen = co_await level_.peek(name);
    Sight sight;
    sight.leased = seen.leased;
    if (seen.hit) {
      try {
        sight.known = read(name, std::move(*seen.hit));
      } catch (...) {
        sight.known.reset();  // as when it is read
      }
      sight.damaged = !sight.known;
    }
    co_return sight;
  }

  std::size_t owed() const { return owed_.size(); }  // drops that failed, and weren't made up yet
  // Whether it failed when it was asked last, and how long it isn't asked from now on (zero or less: the next one
  // asks).
  bool is_away() const { return breaker_.is_open(); }
  Duration quiet_for() const { return breaker_.quiet_for(); }
  Millis patience() const { return patience_; }

 private:
  // No value stands at the level for longer; what was written with a longer TTL isn't looked after beyond.
  static constexpr std::chrono::hours kLongestKept{24};

  // Whether what is believed of these keys may be: those whose drop had failed are dropped now, or it is false.
  Awaitable<bool> made_up(std::vector<std::string> names) {
    auto debts = owed_.among(names);
    if (debts.empty()) co_return true;
    co_return co_await pay(std::move(debts));
  }
  Awaitable<bool> pay(std::vector<OwedDrops::Debt> debts) {
    std::vector<std::string> names;
    names.reserve(debts.size());
    for (const auto& [name, number] : debts) names.push_back(name);
    const bool done = (co_await attempt(level_.remove_many(std::move(names)))).answer.has_value();
    if (done) owed_.paid(debts);
    co_return done;
  }
  // A drop that gets through takes with it what earlier ones left; a key that can't be used is nowhere.
  Awaitable<void> note_drop(std::vector<std::string> names, bool done, bool usable) {
    if (!done && usable) owed_.add(names);
    if (done && owed_.any()) co_await pay(owed_.all());
  }

  // What a call has answered; nothing: it failed, or can't be made (then not `usable`).
  template <class T>
  struct Tried {
    std::optional<T> answer{};
    bool usable = true;
  };
  struct Done {};

  static Awaitable<Done> done_after(Awaitable<void> call) {
    co_await std::move(call);
    co_return Done{};
  }
  Awaitable<Tried<Done>> attempt(Awaitable<void> call) { return attempt(done_after(std::move(call))); }
  template <class T>
  Awaitable<Tried<T>> attempt(Awaitable<T> call) {
    Tried<T> tried;
    try {
      tried.answer = co_await std::move(call);
      breaker_.succeeded();
    } catch (const std::invalid_argument& unusable) {
      tried.usable = false;
      note_key(unusable);
    } catch (const KeyFault& fault) {
      tried.usable = false;
      note_key(fault);
    } catch (const boost::system::system_error& error) {
      if (error.code() == boost::asio::error::operation_aborted) throw;  // the load's own end, not a failure
      fail(error);
    } catch (const std::exception& error) {
      fail(error);
    }
    co_return tried;
  }
  void fail(const std::exception& error) {
    if (breaker_.failed()) telemetry::swallowed("the remote level of " + name_, error);
  }
  void note_key(const std::exception& why) {
    metrics_.key_failed.add();
    telemetry::swallowed("a key of " + name_, why);
  }
  static Answer failed(bool usable) { return {.turn = usable ? Turn::away : Turn::unusable}; }

  bool allowed() {
    if (breaker_.allows()) return true;
    metrics_.remote_skipped.add();
    return false;
  }
  void count_drops(std::size_t keys, bool done) {
    (done ? metrics_.drop_ok : metrics_.drop_error).add(static_cast<double>(keys));
    if (!done)
      telemetry::swallowed("remote drop of " + name_,
                           Unavailable("what was written may be served old until its TTL ends"));
  }

  std::optional<std::string> name_of(const K& key) {
    try {
      return use_.codec.key(key);
    } catch (...) {
      metrics_.key_failed.add();
      swallowed("a key of " + name_, std::current_exception());
      return std::nullopt;
    }
  }

  // Nothing: what is there is damaged, or can't be used.
  std::optional<Answer> understood(const std::string& name, RemoteLevel::Answer answer) {
    if (auto* hit = std::get_if<RemoteLevel::Hit>(&answer)) return decoded(name, std::move(*hit));
    if (auto* lease = std::get_if<RemoteLevel::Lease>(&answer))
      return Answer{.turn = Turn::ours, .lease = std::move(*lease)};
    if (std::holds_alternative<RemoteLevel::Held>(answer)) return Answer{.turn = Turn::held};
    if (std::holds_alternative<RemoteLevel::Away>(answer)) return Answer{.turn = Turn::away};
    return std::nullopt;
  }
  Awaitable<Answer> lease_of(std::string name) {
    auto tried = co_await attempt(level_.lease(std::move(name)));
    if (!tried.answer) co_return failed(tried.usable);
    if (!*tried.answer) co_return Answer{.turn = Turn::held};
    co_return Answer{.turn = Turn::ours, .lease = std::move(**tried.answer)};
  }

  std::optional<Answer> decoded(const std::string& name, RemoteLevel::Hit hit) {
    std::optional<Answer> known;
    try {
      known = read(name, std::move(hit));
    } catch (...) {
      swallowed("what the remote level has of " + name_, std::current_exception());
    }
    if (!known) metrics_.decode_failed.add();
    return known;
  }
  // Throws what the codec throws.
  std::optional<Answer> read(const std::string& name, RemoteLevel::Hit hit) const {
    Answer known{.turn = Turn::known, .left = hit.left};
    if (!hit.value) return known;
    const auto unsealed = unseal(name_, name, *hit.value);
    auto value = unsealed ? use_.codec.decode(unsealed->value) : std::nullopt;
    if (!value) return std::nullopt;
    known.value = std::make_shared<const V>(std::move(*value));
    // Clocks of nodes differ a little; the age only decides when to refresh.
    known.age = std::max<Duration>(Duration(0), clock_.now() - unsealed->origin.loaded_at);
    known.took = unsealed->origin.took;
    return known;
  }

  // Nothing when it can't be, or is too heavy.
  std::optional<RemoteLevel::Fill> encoded(const Offer& offer, const Origin& origin) {
    auto name = name_of(offer.key);
    if (!name) return std::nullopt;
    const Millis ttl = offer.ttl.value_or(offer.value ? ttl_ : negative_ttl_);
    if (!offer.value) return RemoteLevel::Fill{std::move(*name), offer.lease, std::nullopt, ttl};
    try {
      std::string bytes = seal(name_, *name, use_.codec.encode(*offer.value), origin);
      if (bytes.size() > level_.max_value_bytes()) return std::nullopt;
      return RemoteLevel::Fill{std::move(*name), offer.lease, std::move(bytes), ttl};
    } catch (...) {
      metrics_.encode_failed.add();
      swallowed("a value of " + name_, std::current_exception());
      return std::nullopt;
    }
  }

  const std::string name_;
  const RemoteUse<K, V> use_;
  RemoteLevel& level_;
  const Clock& clock_;
  CacheMetrics& metrics_;
  const Millis ttl_;
  const Millis negative_ttl_;
  const Millis patience_;
  Breaker breaker_;
  OwedDrops owed_;
};

}  // namespace weir::cache

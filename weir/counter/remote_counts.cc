#include "weir/counter/remote_counts.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>

#include "remote_counts_scripts.h"
#include "weir/cache/cache_metrics.h"
#include "weir/cache/lease_answers.h"
#include "weir/redis/script.h"
#include "weir/telemetry/metrics.h"

namespace weir::counter {

using cache::detail::failure_of;
using cache::detail::left_of;
using cache::detail::new_token;
using redis::Reply;
using redis::Script;

namespace {

const Script& find_or_lease_script() {
  static const Script script("countsFindOrLease", scripts::kFindOrLease, Script::Repeat::harmless);
  return script;
}
// Not to be repeated: it would take its own first run for another's.
const Script& fill_script() {
  static const Script script("countsFill", scripts::kFill);
  return script;
}
const Script& update_script() {
  static const Script script("countsUpdate", scripts::kUpdate, Script::Repeat::harmless);
  return script;
}
const Script& release_script() {
  static const Script script("countsRelease", scripts::kRelease, Script::Repeat::harmless);
  return script;
}

bool is_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string names_of(const RemoteCountsOptions& options) {
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument("the remote counts " + options.name + ": " + why);
  };
  if (!is_name(options.name)) refuse("the name is of a-z, 0-9 and _");
  if (options.prefix.empty() || options.prefix.find_first_of("{}") != std::string::npos)
    refuse("the prefix is empty or has braces");
  if (options.fields.empty()) refuse("there are no fields");
  for (const auto& field : options.fields)
    if (!is_name(field) || field == "version" || std::ranges::count(options.fields, field) > 1)
      refuse("a field's name is of a-z, 0-9 and _, isn't \"version\", and is there once");
  // Or a lease could outlive the counts that voided it.
  if (options.lease_ttl <= RemoteCountsOptions::Millis(0) || options.lease_ttl >= options.ttl)
    refuse("lease_ttl isn't between 0 and ttl");
  return options.prefix + ":v" + std::to_string(options.version) + ":" + options.name + ":{";
}

telemetry::Counter updates(const std::string& name, const char* outcome) {
  return telemetry::counter("weir_remote_counts_updates_total", "Counts told to Redis after their commit",
                            {{"cache", name}, {"outcome", outcome}});
}

std::optional<std::int64_t> number(const std::string& digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

RemoteCounts::RemoteCounts(redis::Client& client, Options options)
    : client_(client),
      options_(std::move(options)),
      names_(names_of(options_)),
      metrics_(options_.name),
      written_(updates(options_.name, "written")),
      newer_(updates(options_.name, "newer")),
      absent_(updates(options_.name, "absent")),
      unknown_(updates(options_.name, "unknown")) {}

bool RemoteCounts::usable(std::string_view key) const {
  // An empty hash tag is none: the two names would be in different slots of a cluster.
  return !key.empty() && key.size() <= options_.max_key_bytes && !key.starts_with('}');
}

std::string RemoteCounts::hash_name(std::string_view key) const {
  if (!usable(key))
    throw std::invalid_argument("a key of the counts " + options_.name + " can't be used: it has " +
                                std::to_string(key.size()) + " bytes, or begins with a brace");
  std::string name;
  name.reserve(names_.size() + key.size() + 1);
  return name.append(names_).append(key).append("}");
}
std::string RemoteCounts::lease_name(std::string_view key) const {
  return hash_name(key) + ":lease";
}

void RemoteCounts::append(std::vector<std::string>& arguments, const Counts& counts) const {
  if (counts.values.size() != options_.fields.size())
    throw std::invalid_argument("counts of " + options_.name +
                                " have another number of values than of fields");
  constexpr std::int64_t kMost = 1'000'000'000'000'000;  // far below 2^53, and of 16 digits
  if (counts.version < 0 || counts.version > kMost)
    throw std::invalid_argument("the version of a count of " + options_.name + " isn't between 0 and 10^15");
  arguments.emplace_back("version");
  arguments.push_back(std::to_string(counts.version));
  for (std::size_t i = 0; i < counts.values.size(); ++i) {
    arguments.push_back(options_.fields[i]);
    arguments.push_back(std::to_string(counts.values[i]));
  }
}

auto RemoteCounts::answer_from(const std::string& key, Reply reply, std::string token) const -> Answer {
  if (redis::error_kind(reply.error_text()) == redis::ErrorKind::wrong_type)
    return cache::KeyFault("what is under " + hash_name(key) + " or its lease is of another type");
  if (auto why = failure_of(reply, find_or_lease_script().name())) return Away{std::move(why)};
  const auto parts = std::move(reply).array();
  const auto code = parts.empty() ? 0 : parts[0].integer();
  if (code == 2) return Lease{std::move(token)};
  if (code == 3 && parts.size() == 2) return Held{left_of(parts[1])};
  if (code != 1 || parts.size() != 3 || parts[1].array().size() != options_.fields.size() + 1)
    throw redis::Error(redis::ErrorKind::unexpected, "a script's answer isn't one of its own");
  Counts counts;
  for (const Reply& part : parts[1].array()) {
    const auto value = number(part.text());
    if (!value) throw redis::Error(redis::ErrorKind::unexpected, "a count isn't a number");
    counts.values.push_back(*value);
  }
  counts.version = counts.values.front();
  counts.values.erase(counts.values.begin());
  return Hit{std::move(counts), left_of(parts[2])};
}

auto RemoteCounts::find_or_lease_many(std::vector<std::string> keys) -> Awaitable<std::vector<Answer>> {
  std::vector<Answer> answers(keys.size());
  std::vector<redis::ScriptCall> calls;
  std::vector<std::string> tokens;
  std::vector<std::size_t> asked;  // whose
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!usable(keys[i])) {
      answers[i] = cache::KeyFault("a key of the counts " + options_.name + " can't be used");
      continue;
    }
    tokens.push_back(new_token());
    std::vector<std::string> arguments{tokens.back(), std::to_string(options_.lease_ttl.count()), "version"};
    arguments.insert(arguments.end(), options_.fields.begin(), options_.fields.end());
    calls.push_back({{hash_name(keys[i]), lease_name(keys[i])}, std::move(arguments)});
    asked.push_back(i);
  }
  std::exception_ptr failure;
  std::size_t away = 0;
  try {
    auto replies = co_await client_.eval_many(find_or_lease_script(), std::move(calls), options_.timeout);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      auto answer = answer_from(keys[asked[i]], std::move(replies[i]), std::move(tokens[i]));
      if (const auto* part = std::get_if<Away>(&answer)) {
        failure = part->why;
        ++away;
      }
      answers[asked[i]] = std::move(answer);
    }
    if (failure && away == asked.size()) std::rethrow_exception(failure);
  } catch (...) {
    metrics_.error.add(static_cast<double>(keys.size()));
    throw;
  }
  for (const auto& answer : answers) {
    const bool granted = std::holds_alternative<Lease>(answer);
    const bool held = std::holds_alternative<Held>(answer);
    (std::holds_alternative<Hit>(answer) ? metrics_.hit
     : granted || held                   ? metrics_.miss
                                         : metrics_.error)
        .add();
    if (granted || held) (granted ? metrics_.granted : metrics_.held).add();
  }
  co_return answers;
}

auto RemoteCounts::fill_many(std::vector<Fill> fills) -> Awaitable<std::vector<bool>> {
  std::vector<bool> done(fills.size());
  std::vector<redis::ScriptCall> calls;
  std::vector<std::size_t> called;  // whose
  for (std::size_t i = 0; i < fills.size(); ++i) {
    if (!usable(fills[i].key)) continue;  // it never had a lease
    std::vector<std::string> arguments{std::move(fills[i].lease.token), std::to_string(options_.ttl.count())};
    append(arguments, fills[i].counts);
    calls.push_back({{hash_name(fills[i].key), lease_name(fills[i].key)}, std::move(arguments)});
    called.push_back(i);
  }
  const auto replies = co_await client_.eval_many(fill_script(), std::move(calls), options_.timeout);
  std::exception_ptr failure;
  for (std::size_t i = 0; i < called.size(); ++i) {
    // A lease of another type is none.
    if (redis::error_kind(replies[i].error_text()) == redis::ErrorKind::wrong_type) continue;
    if (auto why = failure_of(replies[i], fill_script().name())) {
      failure = std::move(why);
    } else {
      done[called[i]] = replies[i].integer() == 1;
    }
  }
  metrics_.count_fills(done.size(), static_cast<std::size_t>(std::ranges::count(done, true)));
  if (failure) std::rethrow_exception(failure);
  co_return done;
}

auto RemoteCounts::release(std::string key, Lease lease) -> Awaitable<void> {
  co_await client_.eval(release_script(), {lease_name(key)}, {std::move(lease.token)}, options_.timeout);
}

auto RemoteCounts::update_many(std::vector<Update> updates) -> Awaitable<std::vector<Told>> {
  std::vector<Told> told(updates.size(), Told::unknown);
  std::vector<redis::ScriptCall> calls;
  std::vector<std::size_t> called;  // whose
  for (std::size_t i = 0; i < updates.size(); ++i) {
    if (!usable(updates[i].key)) {
      told[i] = Told::unusable;
      continue;
    }
    std::vector<std::string> arguments{std::to_string(options_.ttl.count())};
    append(arguments, updates[i].counts);
    calls.push_back({{hash_name(updates[i].key), lease_name(updates[i].key)}, std::move(arguments)});
    called.push_back(i);
  }
  const std::string where = "telling the counts " + options_.name;
  try {
    const auto replies = co_await client_.eval_many(update_script(), std::move(calls), options_.timeout);
    for (std::size_t i = 0; i < called.size(); ++i) {
      if (replies[i].is_error()) {
        cache::swallowed(where, failure_of(replies[i], update_script().name()));
        continue;
      }
      const auto code = replies[i].integer();
      told[called[i]] = code == 2 ? Told::written : code == 1 ? Told::newer : Told::absent;
    }
  } catch (const Unavailable& error) {
    telemetry::swallowed(where, error);
  }
  for (const Told one : told) {
    if (one == Told::written) written_.add();
    if (one == Told::newer) newer_.add();
    if (one == Told::absent) absent_.add();
    if (one == Told::unknown) unknown_.add();
  }
  co_return told;
}

}  // namespace weir::counter

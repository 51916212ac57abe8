#include "weir/cache/remote_cache.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <stdexcept>

#include "remote_scripts.h"
#include "weir/cache/lease_answers.h"
#include "weir/cache/ttl.h"
#include "weir/redis/script.h"
#include "weir/telemetry/metrics.h"

namespace weir::cache {

namespace asio = boost::asio;
using detail::failure_of;
using detail::left_of;
using detail::new_token;
using redis::Command;
using redis::Reply;
using redis::Script;

namespace {

// A value begins with what it is.
constexpr char kValue = 'V';
constexpr char kAbsent = 'N';

// Letters only, for metrics. Those that may be repeated are: a repeated fill would take its own first run for
// another's.
const Script& find_or_lease_script() {
  static const Script script("findOrLease", scripts::kFindOrLease, Script::Repeat::harmless);
  return script;
}
const Script& look_script() {
  static const Script script("look", scripts::kLook, Script::Repeat::harmless);
  return script;
}
const Script& lease_script() {
  static const Script script("lease", scripts::kLease, Script::Repeat::harmless);
  return script;
}
const Script& fill_script() {
  static const Script script("fill", scripts::kFill);
  return script;
}
const Script& put_script() {
  static const Script script("put", scripts::kPut);
  return script;
}
const Script& release_script() {
  static const Script script("release", scripts::kRelease, Script::Repeat::harmless);
  return script;
}

std::string milliseconds(RemoteCache::Millis time) {
  return std::to_string(std::max<RemoteCache::Millis::rep>(time.count(), 1));
}

std::string names_of(const RemoteCacheOptions& options) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (options.name.empty() || !std::ranges::all_of(options.name, plain))
    throw std::invalid_argument("the name of a remote cache is of a-z, 0-9 and _: " + options.name);
  if (options.prefix.empty() || options.prefix.find_first_of("{}") != std::string::npos)
    throw std::invalid_argument("the prefix of a remote cache is empty or has braces: " + options.prefix);
  return options.prefix + ":v" + std::to_string(options.version) + ":" + options.name + ":{";
}

// What can't be understood is as good as nothing: the next fill replaces it.
std::optional<RemoteCache::Hit> hit_from(Reply&& value, const Reply& left) {
  if (value.is_nil()) return std::nullopt;
  std::string bytes = std::move(value).text();
  if (bytes == std::string_view(&kAbsent, 1)) return RemoteCache::Hit{std::nullopt, left_of(left)};
  if (bytes.empty() || bytes.front() != kValue) return std::nullopt;
  bytes.erase(bytes.begin());
  return RemoteCache::Hit{std::move(bytes), left_of(left)};
}

// Of GET or MGET, which tells nothing of what isn't a text, and PTTL: something that isn't there has no TTL, not even none.
RemoteCache::Look look_from(const std::string& name, Reply&& value, const Reply& left) {
  constexpr std::int64_t kNotThere = -2;
  if (value.is_error() || (value.is_nil() && left.integer() != kNotThere))
    return KeyFault("GET of " + name + ": what is there is of another type");
  if (auto hit = hit_from(std::move(value), left)) return std::move(*hit);
  return RemoteCache::Unknown{};
}

// Of find_or_lease.
RemoteCache::Answer answer_from(Reply&& reply, std::string token) {
  auto parts = std::move(reply).array();
  const auto code = parts.empty() ? 0 : parts[0].integer();
  if (code == 1 && parts.size() == 3) {
    if (auto hit = hit_from(std::move(parts[1]), parts[2])) return std::move(*hit);
  }
  if (code == 2) return RemoteCache::Lease{std::move(token)};
  if (code == 3 && parts.size() == 2) return RemoteCache::Held{left_of(parts[1])};
  throw redis::Error(redis::ErrorKind::unexpected, "a script's answer isn't one of its own");
}

}  // namespace

RemoteCache::RemoteCache(redis::Client& client, Options options)
    : client_(client), options_(std::move(options)), names_(names_of(options_)), metrics_(options_.name) {}

// Why the key can't be used.
std::optional<std::string> RemoteCache::fault_of(std::string_view key) const {
  // An empty hash tag is none, and the key's two names would have different slots of a cluster.
  if (key.starts_with('}')) return "a key of the cache " + options_.name + " begins with a brace";
  if (!key.empty() && key.size() <= options_.max_key_bytes) return std::nullopt;
  return "a key of the cache " + options_.name + " has " + std::to_string(key.size()) + " bytes";
}
void RemoteCache::check(std::string_view key) const {
  if (auto why = fault_of(key)) throw std::invalid_argument(*why);
}

std::string RemoteCache::value_name(std::string_view key) const {
  check(key);
  std::string name;
  name.reserve(names_.size() + key.size() + 1);
  return name.append(names_).append(key).append("}");
}
std::string RemoteCache::lease_name(std::string_view key) const {
  return value_name(key) + ":lease";
}

std::string RemoteCache::encoded(std::optional<std::string> value) const {
  if (!value) return std::string(1, kAbsent);
  value->insert(value->begin(), kValue);
  return std::move(*value);
}

std::string RemoteCache::ttl_text(bool absent, std::optional<Millis> asked) const {
  // Longer than a year is as good as for ever, and Redis takes no more than 2^63 ms.
  constexpr Millis kLongest = std::chrono::hours(24) * 365;
  const Millis base =
      std::clamp(asked.value_or(absent ? options_.negative_ttl : options_.ttl), Millis(1), kLongest);
  return milliseconds(std::chrono::ceil<Millis>(jittered(base, options_.jitter, thread_random())));
}

// A wrong type is about the key; whatever else Redis refuses with is about Redis.
std::optional<KeyFault> RemoteCache::key_fault(const Reply& reply, std::string_view what,
                                               std::string_view key) const {
  if (redis::error_kind(reply.error_text()) != redis::ErrorKind::wrong_type) return std::nullopt;
  std::string text(what);
  return KeyFault(
      text.append(" of ").append(value_name(key)).append(" or its lease: ").append(reply.error_text()));
}
void RemoteCache::throw_if_failed(const Reply& reply, std::string_view what, std::string_view key) const {
  if (!reply.is_error()) return;
  if (const auto fault = key_fault(reply, what, key)) throw *fault;
  reply.throw_if_error(what);
}

auto RemoteCache::get(std::string key) -> Awaitable<std::optional<Hit>> {
  check(key);
  auto looks = co_await get_many(std::vector<std::string>{std::move(key)});
  if (const auto* fault = std::get_if<KeyFault>(&looks.front())) throw *fault;
  auto* hit = std::get_if<Hit>(&looks.front());
  co_return hit != nullptr ? std::optional(std::move(*hit)) : std::nullopt;
}

// One transaction, so that no value is told with another's TTL. It costs a tenth more than the commands do without, and
// for values of some hundred bytes two thirds of what a script costs; but a server that is full refuses whatever is in
// one, reads too, while it lets a script read.
auto RemoteCache::look_at(std::vector<std::string> names) -> Awaitable<std::vector<Look>> {
  if (std::ranges::any_of(
          names, [&](const auto& name) { return client_.group_of(name) != client_.group_of(names.front()); }))
    co_return co_await look_in_groups(std::move(names));
  const std::vector<Command::Argument> all(names.begin(), names.end());
  std::vector<Command> commands;
  commands.reserve(names.size() + 3);  // with MULTI and EXEC
  commands.push_back(Command("MGET", std::span(all)).idempotent());
  for (const auto& name : names) commands.push_back(Command::read("PTTL", name));
  std::vector<Look> looks;
  looks.reserve(names.size());
  Reply::Array replies;
  try {
    replies = co_await client_.transaction(std::move(commands), options_.timeout);
  } catch (const redis::Error& error) {
    if (error.kind() != redis::ErrorKind::aborted) throw;
  }
  if (replies.empty()) {
    auto seen = (co_await client_.eval(look_script(), names, {}, options_.timeout)).array();
    if (seen.size() != 2 * names.size())
      throw redis::Error(redis::ErrorKind::unexpected, "a script answered for another number of keys");
    for (std::size_t i = 0; i < names.size(); ++i)
      looks.push_back(look_from(names[i], std::move(seen[2 * i]), seen[2 * i + 1]));
    co_return looks;
  }
  for (const auto& reply : replies) reply.throw_if_error("MGET");
  auto values = std::move(replies.front()).array();
  if (values.size() != names.size())
    throw redis::Error(redis::ErrorKind::unexpected, "MGET answered for another number of keys");
  for (std::size_t i = 0; i < names.size(); ++i)
    looks.push_back(look_from(names[i], std::move(values[i]), replies[i + 1]));
  co_return looks;
}

// Of a cluster, whose slots have a key each, mostly: one script each, where MULTI would be four commands each.
auto RemoteCache::look_in_groups(std::vector<std::string> names) -> Awaitable<std::vector<Look>> {
  std::map<std::size_t, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < names.size(); ++i) groups[client_.group_of(names[i])].push_back(i);
  std::vector<redis::ScriptCall> calls(groups.size());
  auto call = calls.begin();
  for (const auto& [group, members] : groups) {
    for (const std::size_t i : members) call->keys.push_back(names[i]);
    ++call;
  }
  auto replies = co_await client_.eval_many(look_script(), std::move(calls), options_.timeout);
  std::vector<Look> looks(names.size());
  std::exception_ptr failure;
  std::size_t away = 0;
  auto reply = replies.begin();
  for (const auto& [group, members] : groups) {
    auto why = failure_of(*reply, look_script().name());
    auto seen = why ? Reply::Array{} : std::move(*reply).array();
    if (!why && seen.size() != 2 * members.size())
      throw redis::Error(redis::ErrorKind::unexpected, "a script answered for another number of keys");
    for (std::size_t i = 0; i < members.size(); ++i)
      looks[members[i]] =
          why ? Look(Away{why}) : look_from(names[members[i]], std::move(seen[2 * i]), seen[2 * i + 1]);
    away += why ? 1 : 0;
    if (why) failure = std::move(why);
    ++reply;
  }
  if (away == groups.size()) std::rethrow_exception(failure);
  co_return looks;
}

auto RemoteCache::get_many(std::vector<std::string> keys) -> Awaitable<std::vector<Look>> {
  std::vector<Look> looks(keys.size());
  std::vector<std::string> names;
  std::vector<std::size_t> asked;  // whose
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (auto why = fault_of(keys[i])) {
      looks[i] = KeyFault(*why);
    } else {
      names.push_back(value_name(keys[i]));
      asked.push_back(i);
    }
  }
  try {
    if (!names.empty()) {
      auto seen = co_await look_at(std::move(names));
      for (std::size_t i = 0; i < seen.size(); ++i) looks[asked[i]] = std::move(seen[i]);
    }
  } catch (...) {
    metrics_.error.add(static_cast<double>(keys.size()));
    throw;
  }
  for (const auto& look : looks) {
    if (const auto* hit = std::get_if<Hit>(&look)) {
      metrics_.count(*hit);
    } else {
      (std::holds_alternative<Unknown>(look) ? metrics_.miss : metrics_.error).add();
    }
  }
  co_return looks;
}

auto RemoteCache::peek(std::string key) -> Awaitable<Sight> {
  const auto reply = co_await run(look_script(), key, {value_name(key), lease_name(key)}, {});
  auto seen = reply.array();
  if (seen.size() != 4) throw redis::Error(redis::ErrorKind::unexpected, "a look at two keys isn't of two");
  for (const auto& part : seen) throw_if_failed(part, "GET", key);
  Sight sight;
  sight.hit = hit_from(std::move(seen[0]), seen[1]);
  if (seen[3].integer() >= 0) sight.leased = left_of(seen[3]);
  co_return sight;
}

// For each key in its place, an answer.
auto RemoteCache::ask(std::vector<std::string> keys) -> Awaitable<std::vector<Answer>> {
  std::vector<Answer> answers(keys.size());
  std::vector<redis::Client::ScriptCall> calls;
  std::vector<std::string> tokens;
  std::vector<std::size_t> asked;  // whose
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (auto why = fault_of(keys[i])) {
      answers[i] = KeyFault(*why);
      continue;
    }
    tokens.push_back(new_token());
    calls.push_back(
        {{value_name(keys[i]), lease_name(keys[i])}, {tokens.back(), milliseconds(options_.lease_ttl)}});
    asked.push_back(i);
  }
  const auto& script = find_or_lease_script();
  try {
    auto replies = co_await client_.eval_many(script, std::move(calls), options_.timeout);
    std::exception_ptr failure;
    std::size_t away = 0;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Answer& answer = answers[asked[i]];
      if (auto fault = key_fault(replies[i], script.name(), keys[asked[i]])) {
        answer = std::move(*fault);
      } else if (auto why = failure_of(replies[i], script.name())) {
        answer = Away{why};
        failure = std::move(why);
        ++away;
      } else {
        answer = answer_from(std::move(replies[i]), std::move(tokens[i]));
      }
    }
    if (failure && away == asked.size()) std::rethrow_exception(failure);
  } catch (...) {
    metrics_.error.add(static_cast<double>(keys.size()));
    throw;
  }
  co_return answers;
}

auto RemoteCache::get_or_lease(std::string key) -> Awaitable<Answer> {
  co_return co_await get_or_wait(std::move(key), Millis(0));
}

auto RemoteCache::get_or_lease_many(std::vector<std::string> keys) -> Awaitable<std::vector<Answer>> {
  auto answers = co_await ask(std::move(keys));
  for (const auto& answer : answers) metrics_.count(answer);
  co_return answers;
}

auto RemoteCache::get_or_wait(std::string key, Millis patience) -> Awaitable<Answer> {
  check(key);
  const auto give_up =
      std::chrono::steady_clock::now() + std::clamp(patience, Millis(0), options_.lease_ttl * 2);
  asio::steady_timer timer(co_await asio::this_coro::executor);
  Millis pace = std::max(options_.look_first, Millis(1));
  for (;;) {
    Answer answer = std::move((co_await ask(std::vector<std::string>{key})).front());
    const auto now = std::chrono::steady_clock::now();
    if (!std::holds_alternative<Held>(answer) || now >= give_up) {
      metrics_.count(answer);  // once, however often we have looked
      if (const auto* fault = std::get_if<KeyFault>(&answer)) throw *fault;
      co_return answer;
    }
    const auto wait =
        std::chrono::duration_cast<std::chrono::nanoseconds>(jittered(pace, 0.5, thread_random()));
    timer.expires_at(std::min(give_up, now + wait));
    co_await timer.async_wait(asio::use_awaitable);
    pace = std::min(pace * 2, std::max(options_.look_last, Millis(1)));
  }
}

// The script's answer for one key, which isn't an error.
auto RemoteCache::run(const Script& script, std::string key, std::vector<std::string> names,
                      std::vector<std::string> arguments) -> Awaitable<Reply> {
  std::vector<redis::Client::ScriptCall> one(1);
  one[0] = {std::move(names), std::move(arguments)};
  auto replies = co_await client_.eval_many(script, std::move(one), options_.timeout);
  throw_if_failed(replies.front(), script.name(), key);
  co_return std::move(replies.front());
}

auto RemoteCache::lease(std::string key) -> Awaitable<std::optional<Lease>> {
  std::string token = new_token();
  const auto reply =
      co_await run(lease_script(), key, {lease_name(key)}, {token, milliseconds(options_.lease_ttl)});
  const bool granted = reply.integer() == 1;
  (granted ? metrics_.granted : metrics_.held).add();
  if (!granted) co_return std::nullopt;
  co_return Lease{std::move(token)};
}

auto RemoteCache::take_over(std::string key) -> Awaitable<Lease> {
  std::string token = new_token();
  co_await client_.execute(Command("SET", lease_name(key), token, "PX", milliseconds(options_.lease_ttl)),
                           options_.timeout);
  metrics_.granted.add();
  co_return Lease{std::move(token)};
}

auto RemoteCache::fill_many(std::vector<Fill> fills) -> Awaitable<std::vector<bool>> {
  std::vector<redis::Client::ScriptCall> calls;
  std::vector<std::size_t> called;  // whose
  std::vector<redis::Client::ScriptCall> heavy;
  for (std::size_t i = 0; i < fills.size(); ++i) {
    Fill& one = fills[i];
    if (fault_of(one.key)) continue;
    if (one.value && one.value->size() > options_.max_value_bytes) {
      heavy.push_back({{lease_name(one.key)}, {std::move(one.lease.token)}});
      continue;
    }
    std::string ttl = ttl_text(!one.value, one.ttl);
    calls.push_back({{value_name(one.key), lease_name(one.key)},
                     {std::move(one.lease.token), encoded(std::move(one.value)), std::move(ttl)}});
    called.push_back(i);
  }
  std::vector<bool> done(fills.size());
  const auto& script = fill_script();
  const auto replies = co_await client_.eval_many(script, std::move(calls), options_.timeout);
  std::exception_ptr failure;
  for (std::size_t i = 0; i < called.size(); ++i) {
    if (const auto fault = key_fault(replies[i], script.name(), fills[called[i]].key)) {
      telemetry::swallowed("a lease of the cache " + options_.name,
                           *fault);  // it is void, which is an answer
      continue;
    }
    if (auto why = failure_of(replies[i], script.name())) {
      failure = std::move(why);  // told when the others' are counted
      continue;
    }
    done[called[i]] = replies[i].integer() == 1;
  }
  metrics_.count_fills(done.size(), static_cast<std::size_t>(std::ranges::count(done, true)));
  if (!heavy.empty()) co_await client_.eval_many(release_script(), std::move(heavy), options_.timeout);
  if (failure) std::rethrow_exception(failure);
  co_return done;
}

auto RemoteCache::release(std::string key, Lease lease) -> Awaitable<void> {
  co_await run(release_script(), key, {lease_name(key)}, {std::move(lease.token)});
}

auto RemoteCache::put_encoded(std::string key, std::string bytes, std::string ttl) -> Awaitable<void> {
  co_await client_.eval(put_script(), {value_name(key), lease_name(key)}, {std::move(bytes), std::move(ttl)},
                        options_.timeout);
}

auto RemoteCache::put(std::string key, std::string value, std::optional<Millis> ttl) -> Awaitable<void> {
  if (value.size() > options_.max_value_bytes) {
    metrics_.refused.add();
    co_await remove(std::move(key));
    co_return;
  }
  co_await put_encoded(std::move(key), encoded(std::move(value)), ttl_text(false, ttl));
}

auto RemoteCache::put_absent(std::string key, std::optional<Millis> ttl) -> Awaitable<void> {
  co_await put_encoded(std::move(key), encoded(std::nullopt), ttl_text(true, ttl));
}

}  // namespace weir::cache

// What a write does to the remote level after its commit.
#include <algorithm>

#include "remote_scripts.h"
#include "weir/cache/remote_cache.h"
#include "weir/redis/script.h"

namespace weir::cache {

using redis::Command;
using redis::Script;

namespace {

const Script& remove_but_own_script() {
  static const Script script("removeButOwn", scripts::kRemoveButOwn, Script::Repeat::harmless);
  return script;
}

// The answer of a cluster whose slot is on its way from node to node, to what has two keys that aren't both there.
bool is_torn(std::string_view error) {
  return error.find("TRYAGAIN") != std::string_view::npos;
}

}  // namespace

auto RemoteCache::remove_many(std::vector<std::string> keys) -> Awaitable<void> {
  // A key and its lease go in one command, which is one step; different keys needn't.
  std::vector<Command> commands;
  std::optional<std::string> unusable;
  std::erase_if(keys, [&](const std::string& key) {
    auto why = fault_of(key);
    if (!why) return false;
    unusable = std::move(why);  // the others are removed all the same
    return true;
  });
  for (const auto& key : keys)
    commands.push_back(Command("UNLINK", value_name(key), lease_name(key)).idempotent());
  const auto replies = co_await client_.pipeline(std::move(commands), options_.timeout);
  std::vector<std::string> torn;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (is_torn(replies[i].error_text())) torn.push_back(std::move(keys[i]));
  if (!torn.empty()) co_await remove_apart(std::move(torn));
  for (const auto& reply : replies)
    if (!is_torn(reply.error_text())) reply.throw_if_error("UNLINK");
  if (unusable) throw std::invalid_argument(*unusable);
}

// In two steps, each of one key a command, which can always be done. The lease goes first: once it is void nothing old
// is filled, so what the second step removes stays away; the other way round an old value could come in between.
auto RemoteCache::remove_apart(std::vector<std::string> keys) -> Awaitable<void> {
  for (const bool lease : {true, false}) {
    std::vector<Command> commands;
    for (const auto& key : keys)
      commands.push_back(Command("UNLINK", lease ? lease_name(key) : value_name(key)).idempotent());
    for (const auto& reply : co_await client_.pipeline(std::move(commands), options_.timeout))
      reply.throw_if_error("UNLINK");
  }
}

auto RemoteCache::remove(std::string key, Lease own) -> Awaitable<bool> {
  try {
    const auto reply = co_await client_.eval(remove_but_own_script(), {value_name(key), lease_name(key)},
                                             {std::move(own.token)}, options_.timeout);
    co_return reply.integer() == 1;
  } catch (const redis::Error& error) {
    if (!is_torn(error.what())) throw;
  }
  std::vector<std::string> torn;
  torn.push_back(std::move(key));
  co_await remove_apart(std::move(torn));
  co_return false;  // the writer's own lease went, too
}

}  // namespace weir::cache

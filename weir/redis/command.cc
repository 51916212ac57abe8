#include "weir/redis/command.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace weir::redis {
namespace {

constexpr std::size_t kMaxName = 32;

// Sorted. They change what the connection is, or hold up everybody behind them.
constexpr std::array<std::string_view, 32> kNotShared{
    "ASKING",    "AUTH",         "BLMOVE",  "BLMPOP",      "BLPOP",     "BRPOP",   "BRPOPLPUSH", "BZMPOP",
    "BZPOPMAX",  "BZPOPMIN",     "DISCARD", "EXEC",        "HELLO",     "MONITOR", "MULTI",      "PSUBSCRIBE",
    "PSYNC",     "PUNSUBSCRIBE", "QUIT",    "READONLY",    "READWRITE", "RESET",   "SELECT",     "SSUBSCRIBE",
    "SUBSCRIBE", "SUNSUBSCRIBE", "SYNC",    "UNSUBSCRIBE", "UNWATCH",   "WAIT",    "WAITAOF",    "WATCH"};
static_assert(std::ranges::is_sorted(kNotShared));

// CLIENT REPLY OFF would leave everybody waiting.
bool is_reply(std::string_view word) {
  constexpr std::string_view kReply = "reply";
  return std::ranges::equal(word, kReply, [](char a, char b) { return (a | 0x20) == b; });
}

std::string checked_name(std::string_view given) {
  std::string name(given);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c < 'A' || c > 'Z') throw std::invalid_argument("not the name of a Redis command: " + name);
  }
  if (name.empty() || name.size() > kMaxName)
    throw std::invalid_argument("a Redis command has a name of 1 to 32 letters");
  return name;
}

std::string encode(std::string_view name, std::span<const Command::Argument> arguments) {
  std::vector<const char*> texts{name.data()};
  std::vector<std::size_t> lengths{name.size()};
  texts.reserve(arguments.size() + 1);
  lengths.reserve(arguments.size() + 1);
  for (const auto& argument : arguments) {
    texts.push_back(argument.text().data());
    lengths.push_back(argument.text().size());
  }
  char* encoded = nullptr;
  const int length =
      redisFormatCommandArgv(&encoded, static_cast<int>(texts.size()), texts.data(), lengths.data());
  if (length < 0) throw std::bad_alloc();
  const std::unique_ptr<char, decltype(&redisFreeCommand)> owner(encoded, redisFreeCommand);
  return {encoded, static_cast<std::size_t>(length)};
}

}  // namespace

Command::Command(Unchecked, std::string_view name, std::span<const Argument> arguments)
    : name_(checked_name(name)), bytes_(encode(name_, arguments)) {}

Command::Command(std::string_view name, std::span<const Argument> arguments)
    : Command(Unchecked{}, name, arguments) {
  const bool silences = name_ == "CLIENT" && !arguments.empty() && is_reply(arguments[0].text());
  if (silences || std::ranges::binary_search(kNotShared, name_))
    throw std::invalid_argument(name_ + " can't be used on a connection that others share");
}

}  // namespace weir::redis

#include "weir/redis/slot.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::redis {
namespace {

constexpr std::array<std::uint16_t, 256> kTable = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned sum = byte << 8;
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 0x8000) != 0 ? (sum << 1) ^ 0x1021 : sum << 1;
    table[byte] = static_cast<std::uint16_t>(sum);
  }
  return table;
}();

// Where a command has its keys.
enum class Keys {
  nowhere,     // and any node may do it
  refused,     // it is about one node, or its keys aren't told by their places
  all,         // every argument
  every_2nd,   // the 1st, the 3rd ..
  two,         // the first two
  second,      // the second
  after_1st,   // all but the first argument
  counted,     // the first argument says how many follow
  counted_2nd  // the second says it, after a script
};

// Sorted. What isn't here has one key, in front.
constexpr std::array<std::pair<std::string_view, Keys>, 74> kKeys{{
    {"ACL", Keys::refused},
    {"BGREWRITEAOF", Keys::refused},
    {"BGSAVE", Keys::refused},
    {"BITOP", Keys::after_1st},
    {"CLIENT", Keys::refused},
    {"CLUSTER", Keys::refused},
    {"COMMAND", Keys::refused},
    {"CONFIG", Keys::refused},
    {"COPY", Keys::two},
    {"DBSIZE", Keys::refused},
    {"DEBUG", Keys::refused},
    {"DEL", Keys::all},
    {"ECHO", Keys::nowhere},
    {"EVAL", Keys::counted_2nd},
    {"EVALSHA", Keys::counted_2nd},
    {"EXISTS", Keys::all},
    {"FAILOVER", Keys::refused},
    {"FCALL", Keys::counted_2nd},
    {"FLUSHALL", Keys::refused},
    {"FLUSHDB", Keys::refused},
    {"FUNCTION", Keys::refused},
    {"GEOSEARCHSTORE", Keys::two},
    {"INFO", Keys::refused},
    {"KEYS", Keys::refused},
    {"LASTSAVE", Keys::refused},
    {"LATENCY", Keys::refused},
    {"LCS", Keys::two},
    {"LMOVE", Keys::two},
    {"LMPOP", Keys::counted},
    {"LOLWUT", Keys::refused},
    {"MEMORY", Keys::second},
    {"MGET", Keys::all},
    {"MIGRATE", Keys::refused},
    {"MODULE", Keys::refused},
    {"MSET", Keys::every_2nd},
    {"MSETNX", Keys::every_2nd},
    {"OBJECT", Keys::second},
    {"PFCOUNT", Keys::all},
    {"PFMERGE", Keys::all},
    {"PING", Keys::nowhere},
    {"PUBLISH", Keys::nowhere},
    {"PUBSUB", Keys::refused},
    {"RANDOMKEY", Keys::refused},
    {"RENAME", Keys::two},
    {"RENAMENX", Keys::two},
    {"REPLICAOF", Keys::refused},
    {"ROLE", Keys::refused},
    {"RPOPLPUSH", Keys::two},
    {"SAVE", Keys::refused},
    {"SCAN", Keys::refused},
    {"SCRIPT", Keys::refused},
    {"SDIFF", Keys::all},
    {"SDIFFSTORE", Keys::all},
    {"SHUTDOWN", Keys::refused},
    {"SINTER", Keys::all},
    {"SINTERCARD", Keys::counted},
    {"SINTERSTORE", Keys::all},
    {"SLAVEOF", Keys::refused},
    {"SLOWLOG", Keys::refused},
    {"SMOVE", Keys::two},
    {"SUNION", Keys::all},
    {"SUNIONSTORE", Keys::all},
    {"SWAPDB", Keys::refused},
    {"TIME", Keys::nowhere},
    {"TOUCH", Keys::all},
    {"UNLINK", Keys::all},
    {"XGROUP", Keys::second},
    {"XINFO", Keys::second},
    {"XREAD", Keys::refused},
    {"XREADGROUP", Keys::refused},
    {"ZDIFF", Keys::counted},
    {"ZINTER", Keys::counted},
    {"ZRANGESTORE", Keys::two},
    {"ZUNION", Keys::counted},
}};
static_assert(std::ranges::is_sorted(kKeys, {}, &std::pair<std::string_view, Keys>::first));

// A command's own bytes, so they are right: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".
class Words {
 public:
  explicit Words(std::string_view bytes) : bytes_(bytes) {
    const std::size_t words = number('*');
    for (std::size_t i = 0; i < words; ++i) {
      const std::size_t size = number('$');
      if (i > 0) all.push_back(bytes_.substr(0, size));  // the name isn't one of them
      bytes_.remove_prefix(size + 2);
    }
  }
  std::vector<std::string_view> all;

 private:
  std::size_t number(char mark) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(bytes_.data() + 1, bytes_.data() + bytes_.size(), value);
    if (bytes_.front() != mark || error != std::errc()) throw std::invalid_argument("not an encoded command");
    bytes_.remove_prefix(static_cast<std::size_t>(end - bytes_.data()) + 2);
    return value;
  }
  std::string_view bytes_;
};

// As many as the word at `count` says, from behind it.
std::span<const std::string_view> counted(std::span<const std::string_view> words, std::size_t count) {
  std::size_t keys = 0;
  if (count < words.size())
    std::from_chars(words[count].data(), words[count].data() + words[count].size(), keys);
  words = words.subspan(std::min(count + 1, words.size()));
  return words.first(std::min(keys, words.size()));
}

std::vector<std::string_view> every_second(std::span<const std::string_view> words) {
  std::vector<std::string_view> keys;
  for (std::size_t i = 0; i < words.size(); i += 2) keys.push_back(words[i]);
  return keys;
}

}  // namespace

std::uint16_t crc16(std::string_view bytes) {
  unsigned sum = 0;
  for (const char c : bytes) sum = ((sum << 8) & 0xffff) ^ kTable[(sum >> 8) ^ static_cast<unsigned char>(c)];
  return static_cast<std::uint16_t>(sum);
}

Slot slot_of(std::string_view key) {
  if (const auto open = key.find('{'); open != std::string_view::npos) {
    const auto close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  return static_cast<Slot>(crc16(key) % kSlots);
}

std::optional<Slot> common_slot(std::span<const std::string_view> keys, std::string_view what) {
  std::optional<Slot> slot;
  for (const auto& key : keys) {
    const Slot one = slot_of(key);
    if (slot.value_or(one) != one)
      throw std::invalid_argument(
          std::string(what) +
          ": its keys have different slots of the cluster; a hash tag ({..}) keeps keys together");
    slot = one;
  }
  return slot;
}

std::optional<Slot> slot_of_command(const Command& command) {
  const auto* known = std::ranges::lower_bound(kKeys, std::string_view(command.name()), {},
                                               &std::pair<std::string_view, Keys>::first);
  const bool listed = known != kKeys.end() && known->first == command.name();
  const auto where = listed ? known->second : Keys::nowhere;
  const auto refuse = [&](const char* why) { throw std::invalid_argument(command.name() + why); };
  if (listed && where == Keys::nowhere) return std::nullopt;
  if (where == Keys::refused) refuse(" is of one node, or of keys in no certain place: not for a cluster");
  const Words words(command.bytes());
  const std::span<const std::string_view> all(words.all);
  if (all.empty()) refuse(" has no key that would tell its node");
  const auto first = [&](std::size_t from, std::size_t count) {
    const auto rest = all.subspan(std::min(from, all.size()));
    return rest.first(std::min(count, rest.size()));
  };
  if (!listed) return common_slot(first(0, 1), command.name());
  switch (where) {
    case Keys::all:
      return common_slot(all, command.name());
    case Keys::every_2nd:
      return common_slot(every_second(all), command.name());
    case Keys::two:
      return common_slot(first(0, 2), command.name());
    case Keys::second:
      return common_slot(first(1, 1), command.name());
    case Keys::after_1st:
      return common_slot(first(1, all.size()), command.name());
    case Keys::counted:
      return common_slot(counted(all, 0), command.name());
    default:
      return common_slot(counted(all, 1), command.name());
  }
}

}  // namespace weir::redis

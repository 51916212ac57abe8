#include "weir/redis/slot.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "weir/redis/reply_reader.h"
#include "weir/redis/slot_map.h"

namespace weir::redis {
namespace {

// The values of the specification's appendix, and of a server's CLUSTER KEYSLOT.
TEST(Slot, IsTheSumOfTheKeyOrOfItsHashTag) {
  EXPECT_EQ(crc16("123456789"), 0x31C3);
  EXPECT_EQ(crc16(""), 0);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("user1000"), slot_of("{user1000}.following"));
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
  EXPECT_EQ(slot_of("foo{}{bar}"), crc16("foo{}{bar}") % kSlots);  // an empty tag is none
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_EQ(slot_of("foo{bar"), crc16("foo{bar") % kSlots);
  EXPECT_EQ(slot_of("}foo{bar}"), slot_of("bar"));
}

TEST(Slot, OfACommandIsThatOfItsKeys) {
  const Slot a = slot_of("{a}"), b = slot_of("b");
  EXPECT_EQ(slot_of_command(Command("GET", "{a}1")), a);
  EXPECT_EQ(slot_of_command(Command("SET", "b", "{a}", "PX", 5)), b);
  EXPECT_EQ(slot_of_command(Command("UNLINK", "{a}1", "{a}2")), a);
  EXPECT_EQ(slot_of_command(Command("MSET", "{a}1", "b", "{a}2", "c")), a);
  EXPECT_EQ(slot_of_command(Command("EVALSHA", "x", 2, "{a}1", "{a}2", "b")), a);
  EXPECT_EQ(slot_of_command(Command("EVAL", "return 1", 0, "b")), std::nullopt);
  EXPECT_EQ(slot_of_command(Command("RENAME", "{a}1", "{a}2")), a);
  EXPECT_EQ(slot_of_command(Command("OBJECT", "ENCODING", "b")), b);
  EXPECT_EQ(slot_of_command(Command("BITOP", "AND", "{a}1", "{a}2")), a);
  EXPECT_EQ(slot_of_command(Command("ZINTER", 2, "{a}1", "{a}2", "WEIGHTS", 1, 2)), a);
  EXPECT_EQ(slot_of_command(Command("SOMENEWCOMMAND", "b", "c")), b);
  for (const char* anywhere : {"PING", "TIME"}) EXPECT_EQ(slot_of_command(Command(anywhere)), std::nullopt);
  EXPECT_EQ(slot_of_command(Command("PUBLISH", "b", "{a}")), std::nullopt);
}

TEST(Slot, RefusesWhatNoNodeCanDoAlone) {
  for (const Command& command :
       {Command("MGET", "a", "b"), Command("UNLINK", "a", "b"), Command("MSET", "a", 1, "b", 2),
        Command("EVALSHA", "x", 2, "a", "b"), Command("RENAME", "a", "b"), Command("FLUSHALL"),
        Command("SCAN", 0), Command("CONFIG", "SET", "maxmemory", 1), Command("XREAD", "STREAMS", "a", 0),
        Command("GET")})
    EXPECT_THROW(slot_of_command(command), std::invalid_argument) << command.name();
}

Reply read(std::string_view bytes) {
  Reply reply;
  ReplyReader reader(1 << 20);
  reader.feed(bytes, [&](Reply&& one) { reply = std::move(one); });
  return reply;
}
// A range of slots with its nodes; a node is a host and a port.
std::string range(int first, int last, const std::vector<std::pair<std::string, int>>& nodes) {
  std::string text = "*" + std::to_string(nodes.size() + 2) + "\r\n:" + std::to_string(first) +
                     "\r\n:" + std::to_string(last) + "\r\n";
  for (const auto& [host, port] : nodes)
    text += "*3\r\n$" + std::to_string(host.size()) + "\r\n" + host + "\r\n:" + std::to_string(port) +
            "\r\n$2\r\nid\r\n";
  return text;
}

const Address kTeller{.host = "10.0.0.1", .port = 7000, .password = "secret"};

TEST(SlotMap, IsReadFromANodesAnswer) {
  const auto map = SlotMap::read(
      read("*4\r\n" + range(0, 99, {{"10.0.0.1", 7000}, {"10.0.0.2", 7000}}) + range(100, 100, {{"", 7001}}) +
           range(200, 16'383, {{"10.0.0.1", 7000}, {"10.0.0.2", 7000}}) + range(101, 101, {{"?", 7002}})),
      kTeller);
  ASSERT_EQ(map.primaries.size(), 2U);
  EXPECT_EQ(map.primaries[1].endpoint(), "10.0.0.1:7001");  // without a host: who has answered
  EXPECT_EQ(map.primaries[1].password, "secret");
  EXPECT_EQ(map.replicas.size(), 1U);
  EXPECT_EQ(map.owner[99], 0);
  EXPECT_EQ(map.owner[100], 1);
  EXPECT_EQ(map.owner[101], SlotMap::kNobody);
  EXPECT_EQ(map.covered(), 101 + 16'184U);
  EXPECT_EQ(SlotMap::read(read("*0\r\n"), kTeller).covered(), 0U);
}

TEST(SlotMap, IsNotReadFromNonsense) {
  for (const std::string& nonsense :
       {std::string("+OK\r\n"), std::string("$-1\r\n"), std::string(":1\r\n"), std::string("*1\r\n:5\r\n"),
        std::string("*1\r\n*2\r\n:0\r\n:1\r\n"), std::string("*1\r\n*3\r\n:0\r\n:1\r\n:2\r\n"),
        std::string("*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\nh\r\n"), "*1\r\n" + range(-1, 5, {{"h", 1}}),
        "*1\r\n" + range(5, 4, {{"h", 1}}), "*1\r\n" + range(0, 16'384, {{"h", 1}}),
        "*1\r\n" + range(0, 1, {{"h", 65'536}}), "*1\r\n" + range(0, 1, {{"h", -1}}),
        "*1\r\n" + range(0, 1, {{"a b", 1}}), "*1\r\n" + range(0, 1, {{std::string(256, 'h'), 1}}),
        "*1\r\n" + range(0, 1, {})})
    EXPECT_THROW(SlotMap::read(read(nonsense), kTeller), ProtocolError) << nonsense;
  std::string crowd = "*1001\r\n";
  for (int i = 0; i <= 1'000; ++i) crowd += range(i, i, {{"h", i + 1}});
  EXPECT_THROW(SlotMap::read(read(crowd), kTeller), ProtocolError);
}

TEST(Redirect, IsReadOrIsNone) {
  const auto moved = Redirect::read("MOVED 3999 127.0.0.1:6381", kTeller);
  ASSERT_TRUE(moved);
  EXPECT_FALSE(moved->ask);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->to.endpoint(), "127.0.0.1:6381");
  EXPECT_EQ(moved->to.password, "secret");
  const auto ask = Redirect::read("ASK 16383 fe80::1:6381", kTeller);
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->ask);
  EXPECT_EQ(ask->to.endpoint(), "[fe80::1]:6381");
  EXPECT_EQ(Redirect::read("MOVED 1 :6381", kTeller)->to.endpoint(), "10.0.0.1:6381");
  for (const char* none :
       {"", "MOVED", "MOVED 1", "MOVED x h:1", "MOVED 16384 h:1", "MOVED -1 h:1", "MOVED 1 h", "MOVED 1 h:0",
        "MOVED 1 h:65536", "MOVED 1 h:1x", "MOVED 1 ?:1", "MOVED 1 a b:1", "MOVE 1 h:1", "ERR no"})
    EXPECT_FALSE(Redirect::read(none, kTeller)) << none;
}

}  // namespace
}  // namespace weir::redis

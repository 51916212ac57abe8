#include "weir/redis/reply_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "weir/base/random.h"

namespace weir::redis {
namespace {

using Kind = Reply::Kind;

std::vector<Reply> read(std::string_view bytes, std::size_t step = 1 << 20, std::size_t max_reply = 1 << 20) {
  ReplyReader reader(max_reply);
  std::vector<Reply> replies;
  for (std::size_t at = 0; at < bytes.size(); at += step)
    reader.feed(bytes.substr(at, step), [&](Reply&& reply) { replies.push_back(std::move(reply)); });
  return replies;
}

Reply text(std::string value) {
  return {Kind::text, std::move(value)};
}
Reply integer(std::int64_t value) {
  return Reply(value);
}

std::string sample() {
  using namespace std::string_literals;
  return "+OK\r\n-WRONGTYPE no\r\n:-9223372036854775808\r\n:9223372036854775807\r\n$-1\r\n*-1\r\n$0\r\n\r\n"
         "$5\r\na\r\n\0b\r\n*0\r\n*4\r\n:1\r\n*2\r\n$1\r\nx\r\n*1\r\n-ERR in\r\n$-1\r\n*0\r\n"s;
}

std::vector<Reply> expected() {
  return {Reply(Kind::status, "OK"),
          Reply(Kind::error, "WRONGTYPE no"),
          integer(INT64_MIN),
          integer(INT64_MAX),
          Reply(),
          Reply(),
          text(""),
          text(std::string("a\r\n\0b", 5)),
          Reply(Reply::Array{}),
          Reply(Reply::Array{
              integer(1), Reply(Reply::Array{text("x"), Reply(Reply::Array{Reply(Kind::error, "ERR in")})}),
              Reply(), Reply(Reply::Array{})})};
}

TEST(ReplyReader, ReadsEveryKindHoweverItIsCut) {
  for (const std::size_t step : {1, 2, 3, 7, 1000}) EXPECT_EQ(read(sample(), step), expected()) << step;
}

TEST(ReplyReader, GrowingArraysKeepWhatTheyHold) {
  // Nested and large enough that vectors move while their elements come.
  std::string bytes = "*1000\r\n";
  for (int i = 0; i < 1000; ++i)
    bytes += "*2\r\n:" + std::to_string(i) + "\r\n*3\r\n$1\r\na\r\n$1\r\nb\r\n:7\r\n";
  const auto replies = read(bytes, 5);
  ASSERT_EQ(replies.size(), 1U);
  const auto& rows = replies[0].array();
  ASSERT_EQ(rows.size(), 1000U);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(rows[i].array()[0].integer(), i);
    EXPECT_EQ(rows[i].array()[1].array()[2].integer(), 7);
  }
}

TEST(ReplyReader, WhatIsAnnouncedCostsNothing) {
  // Half a gigabyte of text, two billion elements: the bytes never come.
  for (const char* bytes : {"$536870911\r\nabc", "*2147483647\r\n:1\r\n", "*1\r\n*2147483647\r\n"})
    EXPECT_TRUE(read(bytes).empty()) << bytes;
}

TEST(ReplyReader, RefusesWhatIsntRedis) {
  for (const char* bytes : {"HTTP/1.1 400 Bad Request\r\n", ":12a\r\n", "$abc\r\n", "$-2\r\n", "*-2\r\n",
                            "*99999999999\r\n", "\r\n", "\0", ":99999999999999999999\r\n",
                            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"}) {
    const std::string_view all = *bytes == 0 ? std::string_view("\0", 1) : std::string_view(bytes);
    EXPECT_THROW(read(all), ProtocolError) << bytes;
  }
}

TEST(ReplyReader, RefusesTooMuch) {
  const std::string large = "$100000\r\n" + std::string(100'000, 'x') + "\r\n";
  EXPECT_EQ(read(large, 1000).size(), 1U);
  EXPECT_THROW(read(large, 1000, 50'000), ProtocolError);
  // Many small ones in an array, of which the parser keeps no bytes.
  std::string many = "*100000\r\n";
  for (int i = 0; i < 100'000; ++i) many += "$1\r\nx\r\n";
  EXPECT_THROW(read(many, 4096, 1'000'000), ProtocolError);
  // The bound is one reply's, not the connection's.
  std::string each;
  for (int i = 0; i < 100; ++i) each += "$10000\r\n" + std::string(10'000, 'x') + "\r\n";
  EXPECT_EQ(read(each, 1 << 20, 50'000).size(), 100U);
}

// Replies that come, whether they end with a refusal.
std::pair<std::size_t, bool> verdict(std::string_view bytes, std::size_t step, std::size_t max_reply) {
  ReplyReader reader(max_reply);
  std::size_t replies = 0;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += step)
      reader.feed(bytes.substr(at, step), [&](Reply&&) { ++replies; });
  } catch (const ProtocolError&) {
    EXPECT_THROW(reader.feed("+OK\r\n", [&](Reply&&) { ++replies; }), ProtocolError);
    return {replies, true};
  }
  return {replies, false};
}

TEST(ReplyReader, TheVerdictIsTheSameHoweverTheBytesAreCut) {
  const std::string begun = "+OK\r\n$5000\r\n" + std::string(4000, 'x');
  const std::string line = "+OK\r\n-ERR " + std::string(4000, 'x');
  for (const std::size_t step : {1, 7, 1000, 3000, 1 << 20}) {
    SCOPED_TRACE(step);
    EXPECT_EQ(verdict(begun, step, 3900), std::pair(std::size_t{1}, true));
    EXPECT_EQ(verdict(begun, step, 4900), std::pair(std::size_t{1}, false));
    EXPECT_EQ(verdict(line, step, 3900), std::pair(std::size_t{1}, true));
    EXPECT_EQ(verdict(line, step, 4900), std::pair(std::size_t{1}, false));
    // Small ones of which more come at once than one may be long.
    std::string many;
    for (int i = 0; i < 5000; ++i) many += "+OK\r\n";
    EXPECT_EQ(verdict(many, step, 100), std::pair(std::size_t{5000}, false));
  }
}

// The parser would look through it from its beginning with each piece: hours, for what is allowed to a text.
TEST(ReplyReader, ALineOfMoreThan64KiBIsRefused) {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  for (const char* kind : {"+", "-", ":", "$", "*"}) {
    const std::string bytes = "+OK\r\n" + (kind + std::string(70'000, '1'));
    for (const std::string& all : {bytes, bytes + "\r\n"})
      for (const std::size_t step : {100, 5000, 1 << 20})
        EXPECT_EQ(verdict(all, step, kMost), std::pair(std::size_t{1}, true)) << kind << " by " << step;
  }
  // The longest and one more; also cut between the two letters of the line's end.
  for (const std::size_t length : {65'535, 65'536}) {
    const std::string line = "+" + std::string(length, '1') + "\r\n";
    for (const std::size_t step : {line.size(), line.size() - 1, line.size() - 2})
      EXPECT_EQ(verdict(line, step, kMost).second, length == 65'536) << step;
  }
  EXPECT_EQ(verdict("$70000\r\n" + std::string(70'000, '1') + "\r\n", 1000, kMost),
            std::pair(std::size_t{1}, false));
}

// Whatever bytes come: replies or a ProtocolError; the sanitizers watch. What is read from a prefix that wasn't
// touched is right.
TEST(ReplyReader, DamagedBytesAreRefusedOrAreReplies) {
  const std::uint64_t seed = secure_random64();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const std::string whole = sample();
  const auto good = expected();
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    std::size_t first = bytes.size();
    const auto changes = 1 + random.below(4);
    for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
      const auto at = random.below(bytes.size());
      first = std::min(first, at);
      switch (random.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.next());
          break;
        case 1:
          bytes.erase(at, 1 + random.below(8));
          break;
        case 2:
          bytes.insert(at, 1, "+-:$*\r\n0123456789"[random.below(17)]);
          break;
        default:
          bytes.resize(at);
      }
    }
    std::vector<Reply> replies;
    ReplyReader reader(1 << 16);
    try {
      const auto step = 1 + random.below(40);
      for (std::size_t at = 0; at < bytes.size(); at += step)
        reader.feed(std::string_view(bytes).substr(at, step),
                    [&](Reply&& reply) { replies.push_back(std::move(reply)); });
    } catch (const ProtocolError&) {
      ++refused;
    }
    const auto untouched = read(std::string_view(whole).substr(0, first));
    ASSERT_GE(replies.size(), untouched.size());
    for (std::size_t i = 0; i < untouched.size(); ++i) ASSERT_EQ(replies[i], good[i]);
  }
  EXPECT_GT(refused, 1000);
}

TEST(Reply, TellsWhatItIsInsteadOfWhatWasAsked) {
  EXPECT_EQ(text("a").text(), "a");
  const Reply nil;
  EXPECT_EQ(nil.optional_text(), std::nullopt);
  const Reply seven = integer(7);
  try {
    (void)seven.text();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unexpected);
    EXPECT_STREQ(error.what(), "Redis answered an integer where a text was expected");
  }
  EXPECT_THROW((void)text("a").integer(), Error);
  EXPECT_THROW((void)text("a").array(), Error);
  const Reply wrong(Kind::error, "WRONGTYPE no");
  try {
    (void)wrong.integer();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::wrong_type);
  }
}

TEST(Reply, SortsErrorsByTheirWord) {
  using enum ErrorKind;
  EXPECT_EQ(error_kind("WRONGTYPE Operation against"), wrong_type);
  EXPECT_EQ(error_kind("NOSCRIPT No matching"), no_script);
  EXPECT_EQ(error_kind("WRONGPASS invalid"), denied);
  EXPECT_EQ(error_kind("NOAUTH"), denied);
  EXPECT_EQ(error_kind("LOADING Redis is"), busy);
  EXPECT_EQ(error_kind("OOM command not allowed"), out_of_memory);
  EXPECT_EQ(error_kind("MOVED 1 127.0.0.1:1"), moved);
  EXPECT_EQ(error_kind("EXECABORT"), aborted);
  EXPECT_EQ(error_kind("ERR WRONGTYPE"), other);
  EXPECT_EQ(error_kind(""), other);
}

}  // namespace
}  // namespace weir::redis

#include "weir/http/head_scanner.h"

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using State = HeadScanner::State;

constexpr HeadLimits kLimits{.max_line = 20, .max_head = 60, .max_fields = 3};

// The same, whether it comes at once or byte by byte (but for "more", which the last byte may turn into).
State scan(std::string_view text) {
  HeadScanner at_once(kLimits);
  const State state = at_once.scan(text);
  HeadScanner bytewise(kLimits);
  State slow = State::more;
  for (std::size_t size = 1; size <= text.size() && slow == State::more; ++size)
    slow = bytewise.scan(text.substr(0, size));
  EXPECT_EQ(state, slow) << text;
  if (state == State::complete) EXPECT_EQ(at_once.end(), bytewise.end());
  return state;
}

TEST(HeadScanner, FindsTheEnd) {
  HeadScanner scanner(kLimits);
  EXPECT_EQ(scanner.scan("\r\nGET / HTTP/1.1\r\nA: b\r\n\r\nmore"), State::complete);
  EXPECT_EQ(scanner.begin(), 2U);
  EXPECT_EQ(scanner.end(), 26U);
  EXPECT_EQ(scan("GET / HTTP/1.1\r\n\r\n"), State::complete);
  EXPECT_EQ(scan("GET / HTTP/1.1\r\nA: b\r\n\r"), State::more);
  EXPECT_EQ(scan(""), State::more);
}

TEST(HeadScanner, RefusesWhatIsNoHead) {
  EXPECT_EQ(scan("GET / HTTP/1.1\n\n"), State::bare_line_feed);
  EXPECT_EQ(scan("GET / HTTP/1.1\r\nA: b\n\r\n"), State::bare_line_feed);
  EXPECT_EQ(scan("\n"), State::bare_line_feed);
  EXPECT_EQ(scan("\r\n\n"), State::bare_line_feed);
  EXPECT_EQ(scan("\r\n\r\n"), State::not_http);
  EXPECT_EQ(scan("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"), State::folded_line);
  EXPECT_EQ(scan("GET / HTTP/1.1\r\n\tA: b\r\n\r\n"), State::folded_line);
  EXPECT_EQ(scan("\x16\x03\x01"), State::not_http);
}

TEST(HeadScanner, HasLimits) {
  EXPECT_EQ(scan(std::string(20, 'A')), State::more);
  EXPECT_EQ(scan(std::string(20, 'A') + "\r\n\r\n"), State::complete);
  EXPECT_EQ(scan(std::string(22, 'A')), State::line_too_long);
  EXPECT_EQ(scan("A\r\n" + std::string(21, 'B') + "\r\n"), State::line_too_long);
  EXPECT_EQ(scan("A\r\n1\r\n2\r\n3\r\n\r\n"), State::complete);
  EXPECT_EQ(scan("A\r\n1\r\n2\r\n3\r\n4\r\n"), State::too_many_fields);
  const std::string line = std::string(18, 'A') + "\r\n";
  EXPECT_EQ(scan(line + line + line + "\r\n"), State::head_too_long);
}

}  // namespace
}  // namespace weir::http

// HeadScanner: finds the end of a request's head while its bytes come in, and refuses what no honest client
// sends.
//
// It sees to what Beast's parser leaves open (folded lines, the number and length of lines) and tells faults
// as soon as their line is there, so that a client who sends bare line feeds needn't wait for the deadline.
// Each byte is looked at once.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/http/problem.h"

namespace weir::http {

struct HeadLimits {
  std::size_t max_line = 8 << 10;   // bytes of a line without its CR LF
  std::size_t max_head = 64 << 10;  // bytes of the whole head
  std::size_t max_fields = 100;
};

class HeadScanner {
 public:
  enum class State {
    more,
    complete,
    not_http,
    bare_line_feed,
    folded_line,
    line_too_long,
    head_too_long,
    too_many_fields
  };

  explicit HeadScanner(const HeadLimits& limits) : limits_(limits) {}

  // `text` is all that came since the message before, from its first byte on: what was passed earlier and
  // more.
  State scan(std::string_view text);

  // Of a complete head: where it begins (after the empty line that some clients send before) and ends.
  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }

 private:
  State end_of_line(std::string_view text, std::size_t feed);

  const HeadLimits& limits_;
  std::size_t begin_ = 0, end_ = 0;
  std::size_t line_ = 0;  // where the current line begins
  std::size_t seen_ = 0;  // bytes that hold no unseen line feed
  std::size_t lines_ = 0;
};

// What to answer for a fault; the connection must be closed after it.
Problem problem_of(HeadScanner::State fault);

}  // namespace weir::http

#include "weir/http/head_scanner.h"

namespace weir::http {

HeadScanner::State HeadScanner::scan(std::string_view text) {
  for (;;) {
    const std::size_t feed = text.find('\n', seen_);
    if (feed == std::string_view::npos) break;
    seen_ = feed + 1;
    const State state = end_of_line(text, feed);
    if (state != State::more) return state;
  }
  seen_ = text.size();
  // A method begins with a letter; what doesn't (a TLS handshake, say) will never become a request.
  if (lines_ == 0 && text.size() > line_ && text[line_] != '\r' && (text[line_] < 'A' || text[line_] > 'z')) {
    return State::not_http;
  }
  if (text.size() - line_ > limits_.max_line + 1) return State::line_too_long;  // its CR may be there already
  if (text.size() > limits_.max_head) return State::head_too_long;
  return State::more;
}

HeadScanner::State HeadScanner::end_of_line(std::string_view text, std::size_t feed) {
  if (feed == line_ || text[feed - 1] != '\r') return State::bare_line_feed;
  const std::string_view line = text.substr(line_, feed - 1 - line_);
  line_ = feed + 1;
  if (line_ > limits_.max_head) return State::head_too_long;
  if (line.empty()) {
    if (lines_ > 0) {
      end_ = line_;
      return State::complete;
    }
    // RFC 9112, section 2.2: an empty line before the request line is skipped. One will do.
    if (begin_ > 0) return State::not_http;
    begin_ = line_;
    return State::more;
  }
  if (line.size() > limits_.max_line) return State::line_too_long;
  if (lines_ > 0 && (line[0] == ' ' || line[0] == '\t')) return State::folded_line;
  if (++lines_ > limits_.max_fields + 1) return State::too_many_fields;
  return State::more;
}

Problem problem_of(HeadScanner::State fault) {
  const auto bad = [](const char* detail) { return Problem(400, "bad_request", detail); };
  const auto large = [](const char* detail) { return Problem(431, "header_too_large", detail); };
  switch (fault) {
    case HeadScanner::State::bare_line_feed:
      return bad("A line of the head ends without CR LF.");
    case HeadScanner::State::folded_line:
      return bad("A header field is folded over two lines.");
    case HeadScanner::State::line_too_long:
      return large("A line of the head is too long.");
    case HeadScanner::State::head_too_long:
      return large("The head is too long.");
    case HeadScanner::State::too_many_fields:
      return large("There are too many header fields.");
    case HeadScanner::State::not_http:
    case HeadScanner::State::more:
    case HeadScanner::State::complete:
      break;
  }
  return bad("This is not HTTP.");
}

}  // namespace weir::http

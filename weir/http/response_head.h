// ResponseHead: writes an answer's status line and header fields. For this folder's own use.
#pragma once

#include <string>
#include <string_view>

#include "weir/base/clock.h"
#include "weir/http/request.h"
#include "weir/http/response.h"

namespace weir::http {

// "Mon, 30 Nov 2026 10:46:12 GMT", made once a second. Not thread-safe.
class DateText {
 public:
  std::string_view at(WallTime now);

 private:
  std::int64_t second_ = -1;
  std::string text_;
};

struct HeadContext {
  std::string_view date;
  std::string_view request_id;  // empty: none
  bool keep_alive = true;
  bool http_1_0 = false;
};

// The names and values hold nothing that could end a field or a head early.
bool has_safe_headers(const Response& response);

// Appends everything up to the body. The Content-Length is the payload's, also when the payload isn't sent
// (HEAD).
void append_head(std::string& out, const Response& response, const HeadContext& context);

}  // namespace weir::http

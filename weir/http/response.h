// Response: what a handler answers. Plain values; the server adds Date, Content-Length, Connection and
// X-Request-Id.
#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::http {

class JsonWriter;

struct Response {
  unsigned status = 200;
  // Not sent when the body is empty.
  std::string content_type;
  std::string body;
  // Values must be free of control characters: the server answers 500 instead of sending one that isn't.
  std::vector<std::pair<std::string, std::string>> headers;
  // Sent instead of `body` when it is set: bytes that many answers share without copying them (assets).
  std::shared_ptr<const std::string> shared_body;

  // `text` must be JSON already.
  static Response json(unsigned status, std::string text);
  static Response json(unsigned status, const boost::json::value& value);
  static Response json(unsigned status, JsonWriter&& writer);
  static Response html(std::string page, unsigned status = 200);
  static Response text(std::string plain, unsigned status = 200);
  static Response shared(std::shared_ptr<const std::string> bytes, std::string content_type);
  static Response empty(unsigned status = 204);
  // A 303: what a page's form answers.
  static Response see_other(std::string location);

  // Adds a header and returns the response, so that calls chain.
  Response& with(std::string name, std::string value) &;
  Response&& with(std::string name, std::string value) &&;

  std::string_view payload() const { return shared_body ? std::string_view(*shared_body) : body; }
};

}  // namespace weir::http

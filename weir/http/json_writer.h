// JsonWriter: writes JSON by appending, for the answers that are asked for most (about four times as fast as
// building a boost::json::value and serializing it).
//
//   JsonWriter w;
//   w.begin_object().key("id").id(42).key("title").string(title).end_object();
//   return Response::json(200, std::move(w));
//
// Commas come by themselves. Texts must be valid UTF-8 already (what comes in is checked at the door, what is
// stored came in); the writer only escapes. Keys are written as they are: plain ASCII words. That begins and
// ends match is the caller's care.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/clock.h"
#include "weir/base/id.h"

namespace weir::http {

class JsonWriter {
 public:
  explicit JsonWriter(std::size_t reserve = 512) { out_.reserve(reserve); }

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view text);
  JsonWriter& integer(std::int64_t number);
  // Shortest form that reads back the same; null for what isn't finite, which JSON can't tell.
  JsonWriter& number(double value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& id(Id id);                   // a decimal string
  JsonWriter& time(WallTime t);            // RFC 3339
  JsonWriter& raw(std::string_view json);  // a value that is JSON already

  const std::string& text() const { return out_; }
  std::string take() && { return std::move(out_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void before_value();

  std::string out_;
  bool comma_ = false;
};

// Appends the text as a JSON string, quotes included.
void append_json_string(std::string& out, std::string_view text);

}  // namespace weir::http

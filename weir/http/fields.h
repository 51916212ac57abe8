// Fields: reads the fields of a JSON body, collects everything that is wrong with them, and tells it at once.
//
//   Fields f(request);
//   const auto title = f.string("title", {.min = 1, .max = 10'000});
//   const auto about = f.optional_string("about", {.max = 1024});
//   f.check();   // 422 invalid_field with all errors
//
// Unknown fields are ignored; a field that is null counts as missing. Texts with a NUL in them are refused.
// After an error a reader returns an empty value: use none before check().
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/problem.h"
#include "weir/http/request.h"

namespace weir::http {

struct TextLimits {
  std::size_t min = 0;                                        // code points
  std::size_t max = std::numeric_limits<std::size_t>::max();  // code points
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
  bool required = true;
};

class Fields {
 public:
  // Throws what Request::json_object throws.
  explicit Fields(const Request& request) : object_(request.json_object()) {}
  explicit Fields(boost::json::object object) : object_(std::move(object)) {}

  std::string string(std::string_view name, const TextLimits& limits = {});
  // Nothing when it is missing or null.
  std::optional<std::string> optional_string(std::string_view name, const TextLimits& limits = {});
  // Whole numbers: 3, and 3.0 too, but not "3".
  std::int64_t integer(std::string_view name, std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t max = std::numeric_limits<std::int64_t>::max());
  std::optional<std::int64_t> optional_integer(std::string_view name,
                                               std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                                               std::int64_t max = std::numeric_limits<std::int64_t>::max());
  // Ids are decimal strings.
  Id id(std::string_view name);
  std::optional<Id> optional_id(std::string_view name);
  bool boolean(std::string_view name);
  std::optional<bool> optional_boolean(std::string_view name);

  // The field is there and not null.
  bool has(std::string_view name) const;
  // The field is there and null.
  bool is_null(std::string_view name) const;
  const boost::json::object& object() const { return object_; }

  // What the caller's own checks find.
  void refuse(std::string_view name, std::string message);
  bool ok() const { return errors_.empty(); }
  // Throws Problem 422 with all errors, if there are any.
  void check() const;

 private:
  const boost::json::value* find(std::string_view name) const;
  const boost::json::value* required(std::string_view name);
  std::optional<std::string> text_of(std::string_view name, const boost::json::value& value,
                                     const TextLimits& limits);
  std::optional<std::int64_t> integer_of(std::string_view name, const boost::json::value& value,
                                         std::int64_t min, std::int64_t max);
  std::optional<Id> id_of(std::string_view name, const boost::json::value& value);

  boost::json::object object_;
  std::vector<FieldError> errors_;
};

// An id of a query parameter: 422 naming it when it isn't one.
Id query_id(const Request& request, std::string_view name);
// A whole number of a query parameter between min and max, `otherwise` when it isn't there.
std::int64_t query_integer(const Request& request, std::string_view name, std::int64_t min, std::int64_t max,
                           std::int64_t otherwise);

}  // namespace weir::http

// Problem: an answer that tells what went wrong, as RFC 9457 application/problem+json with a stable `code`.
//
// Handlers throw one; the server renders it. Exceptions of weir/base become problems too: Unavailable (and
// TimedOut) 503 `unavailable` with Retry-After, everything else 500 `internal_error`, logged and without
// details.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/response.h"

namespace weir::http {

// What is wrong with one field of a request: of its body, its query or its headers.
struct FieldError {
  std::string field, message;
};

class Problem : public std::exception {
 public:
  // `code` is the machine's word for it ("not_found"), `detail` the person's. 4xx or 5xx.
  Problem(unsigned status, std::string code, std::string detail, std::vector<FieldError> errors = {},
          std::vector<std::pair<std::string, std::string>> headers = {});

  unsigned status() const { return status_; }
  const std::string& code() const { return code_; }
  const std::string& detail() const { return detail_; }
  const std::vector<FieldError>& errors() const { return errors_; }
  const char* what() const noexcept override { return what_.c_str(); }

  Response response() const;

 private:
  unsigned status_;
  std::string code_, detail_;
  std::vector<FieldError> errors_;
  std::vector<std::pair<std::string, std::string>> headers_;
  std::string what_;
};

// The ones that the API documentation names.
Problem malformed_json(std::string detail);                              // 400
Problem unauthenticated(std::string detail = "Sign in first.");          // 401, with WWW-Authenticate
Problem forbidden(std::string detail = "This is not yours to change.");  // 403
Problem not_found(std::string detail = "There is nothing here.");        // 404
Problem conflict(std::string code, std::string detail);                  // 409
Problem version_mismatch(std::string detail);                            // 412
Problem unsupported_media_type(std::string detail);                      // 415
Problem invalid(std::vector<FieldError> errors);                         // 422 invalid_field
Problem invalid(std::string field, std::string message);
Problem too_many_requests(std::string code, std::string detail, unsigned retry_after_seconds);         // 429
Problem unavailable(std::string detail = "Try again in a moment.", unsigned retry_after_seconds = 1);  // 503

// What a handler's exception is as a problem. `unexpected` tells whether it is a fault of the program, which
// should be logged.
struct Failure {
  Problem problem;
  bool unexpected;
};
Failure failure_of(const std::exception_ptr& error);

// "Not found" for 404; "Unknown" for what HTTP doesn't name.
std::string_view reason_of(unsigned status);

}  // namespace weir::http

#include "weir/http/problem.h"

#include "weir/base/fault.h"
#include "weir/http/json_writer.h"

namespace weir::http {
namespace {

// "not_found" -> "Not found"
std::string title_of(std::string_view code) {
  std::string title(code);
  for (char& c : title)
    if (c == '_') c = ' ';
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z')
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

}  // namespace

Problem::Problem(unsigned status, std::string code, std::string detail, std::vector<FieldError> errors,
                 std::vector<std::pair<std::string, std::string>> headers)
    : status_(status),
      code_(std::move(code)),
      detail_(std::move(detail)),
      errors_(std::move(errors)),
      headers_(std::move(headers)),
      what_(code_ + ": " + detail_) {}

Response Problem::response() const {
  JsonWriter w;
  w.begin_object();
  // Relative, so that it leads to this server's own documentation.
  w.key("type").string("/docs#" + code_);
  w.key("title").string(title_of(code_));
  w.key("status").integer(status_);
  w.key("detail").string(detail_);
  w.key("code").string(code_);
  if (!errors_.empty()) {
    w.key("errors").begin_array();
    for (const auto& error : errors_) {
      w.begin_object().key("field").string(error.field).key("message").string(error.message).end_object();
    }
    w.end_array();
  }
  w.end_object();
  Response response;
  response.status = status_;
  response.content_type = "application/problem+json";
  response.body = std::move(w).take();
  response.headers = headers_;
  return response;
}

Problem malformed_json(std::string detail) {
  return {400, "malformed_json", std::move(detail)};
}

Problem unauthenticated(std::string detail) {
  return {401, "unauthenticated", std::move(detail), {}, {{"WWW-Authenticate", "Bearer"}}};
}

Problem forbidden(std::string detail) {
  return {403, "forbidden", std::move(detail)};
}

Problem not_found(std::string detail) {
  return {404, "not_found", std::move(detail)};
}

Problem conflict(std::string code, std::string detail) {
  return {409, std::move(code), std::move(detail)};
}

Problem version_mismatch(std::string detail) {
  return {412, "version_mismatch", std::move(detail)};
}

Problem unsupported_media_type(std::string detail) {
  return {415, "unsupported_media_type", std::move(detail)};
}

Problem invalid(std::vector<FieldError> errors) {
  std::string detail = "Some fields can't be used";
  for (std::size_t i = 0; i < errors.size() && i < 3; ++i) {
    detail += (i == 0 ? ": " : "; ") + errors[i].field + " " + errors[i].message;
  }
  return {422, "invalid_field", detail + ".", std::move(errors)};
}

Problem invalid(std::string field, std::string message) {
  return invalid({FieldError{std::move(field), std::move(message)}});
}

Problem too_many_requests(std::string code, std::string detail, unsigned retry_after_seconds) {
  return {
      429, std::move(code), std::move(detail), {}, {{"Retry-After", std::to_string(retry_after_seconds)}}};
}

Problem unavailable(std::string detail, unsigned retry_after_seconds) {
  return {503, "unavailable", std::move(detail), {}, {{"Retry-After", std::to_string(retry_after_seconds)}}};
}

Failure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Problem& problem) {
    return {problem, false};
  } catch (const Unavailable&) {
    return {unavailable(), false};
  } catch (...) {
    return {Problem(500, "internal_error", "Something went wrong here; it has been noted."), true};
  }
}

std::string_view reason_of(unsigned status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace weir::http

#include "weir/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/error.hpp>

#include "weir/http/text.h"

namespace weir::http {
namespace {

// Of a body whose size is announced this much is allocated at once; the rest as it comes.
constexpr std::uint64_t kReserveBytes = 64 << 10;

std::string_view plain(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

bool is_host(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return c > 0x20 && c < 0x7f && c != '/' && c != '\\' && c != '@' && c != '?' && c != '#' && c != ',';
  });
}

// "GET /x HTTP/2.0" rather than some line that only isn't a request.
bool names_another_version(std::string_view line) {
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos || std::ranges::count(line, ' ') != 2) return false;
  const std::string_view version = line.substr(space + 1);
  return version.starts_with("HTTP/") &&
         version.find_first_not_of("0123456789.", 5) == std::string_view::npos;
}

}  // namespace

void RequestParser::on_request_impl(Verb, Text method, Text target, int version, Error&) {
  method_ = plain(method);
  target_ = plain(target);
  version_ = version;
}

void RequestParser::on_field_impl(FieldName field, Text name, Text value, Error&) {
  if (head_done_) return;  // trailers of a chunked body: nobody asked for them
  switch (field) {
    case FieldName::host:
      ++hosts_;
      host_ = plain(value);
      break;
    case FieldName::content_length:
      ++lengths_;
      length_is_number_ = plain(value).find_first_not_of("0123456789") == std::string_view::npos;
      break;
    case FieldName::transfer_encoding:
      ++encodings_;
      encoding_is_chunked_ = same_word(plain(value), "chunked");
      break;
    case FieldName::expect:
      expectation_ = plain(value);
      break;
    default:
      break;
  }
  request_.fields.push_back({plain(name), plain(value)});
}

void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>& size, Error&) {
  if (size) request_.body.reserve(std::min(*size, kReserveBytes));
}

std::size_t RequestParser::on_body_impl(Text piece, Error&) {
  request_.body.append(piece.data(), piece.size());
  return piece.size();
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, Text piece, Error& error) {
  return on_body_impl(piece, error);
}

std::optional<Problem> RequestParser::fault() const {
  const auto bad = [](const char* detail) { return Problem(400, "bad_request", detail); };
  if (lengths_ > 1 || !length_is_number_) return bad("There is more than one Content-Length.");
  if (encodings_ > 0 && lengths_ > 0) return bad("There are both Content-Length and Transfer-Encoding.");
  if (encodings_ > 1 || (encodings_ == 1 && !encoding_is_chunked_)) {
    return bad("The only Transfer-Encoding that is understood is chunked.");
  }
  if (encodings_ > 0 && http_1_0()) return bad("HTTP/1.0 has no Transfer-Encoding.");
  if (hosts_ > 1 || (hosts_ == 0 && !http_1_0())) return bad("There must be one Host.");
  if (!is_host(host_)) return bad("The Host can't be one.");
  if (!expectation_.empty() && !same_word(expectation_, "100-continue")) {
    return Problem(417, "expectation_failed", "The only expectation that is understood is 100-continue.");
  }
  return std::nullopt;
}

Problem RequestParser::problem_of(const boost::system::error_code& error, std::string_view head) {
  using Beast = boost::beast::http::error;
  if (error == Beast::body_limit) {
    return {413, "body_too_large", "The body is too large."};
  }
  if (error == Beast::bad_version && names_another_version(head.substr(0, head.find('\r')))) {
    return {505, "http_version_not_supported", "This server speaks HTTP/1.1."};
  }
  return {400, "bad_request", "This is not a valid request: " + error.message() + "."};
}

void RequestParser::rebase(std::string_view from, std::string_view to) {
  if (from.data() == to.data()) return;
  const auto moved = [&](std::string_view& view) {
    if (!view.empty()) view = to.substr(static_cast<std::size_t>(view.data() - from.data()), view.size());
  };
  moved(method_);
  moved(target_);
  moved(expectation_);
  moved(host_);
  for (Request::Field& field : request_.fields) {
    moved(field.name);
    moved(field.value);
  }
}

}  // namespace weir::http

// RequestParser: Beast's parser, storing into a Request as views of the input, and the checks that Beast
// leaves to us. For this folder's own use.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <optional>
#include <string_view>

#include "weir/http/problem.h"
#include "weir/http/request.h"

namespace weir::http {

// One for each message. Method, target and fields are views into the bytes that `put` was given; the body is
// copied into the request.
class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  RequestParser(Request& request, std::size_t max_body) : request_(request) { body_limit(max_body); }

  // After a complete head: what makes it ambiguous or impossible, if anything does.
  std::optional<Problem> fault() const;
  // What an error of put() means; `head` is what was put.
  static Problem problem_of(const boost::system::error_code& error, std::string_view head = {});

  std::string_view method() const { return method_; }
  std::string_view target() const { return target_; }
  bool http_1_0() const { return version_ == 10; }
  std::string_view expectation() const { return expectation_; }

  // The input may have been moved: the views follow.
  void rebase(std::string_view from, std::string_view to);

 private:
  using Verb = boost::beast::http::verb;
  using FieldName = boost::beast::http::field;
  using Text = boost::beast::string_view;
  using Error = boost::system::error_code;

  void on_request_impl(Verb verb, Text method, Text target, int version, Error& error) override;
  void on_response_impl(int, Text, int, Error&) override {}
  void on_field_impl(FieldName field, Text name, Text value, Error& error) override;
  void on_header_impl(Error&) override { head_done_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>& size, Error& error) override;
  std::size_t on_body_impl(Text piece, Error& error) override;
  void on_chunk_header_impl(std::uint64_t, Text, Error&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text piece, Error& error) override;
  void on_finish_impl(Error&) override {}

  Request& request_;
  std::string_view method_, target_, expectation_, host_;
  int version_ = 11;
  unsigned hosts_ = 0, lengths_ = 0, encodings_ = 0;
  bool length_is_number_ = true, encoding_is_chunked_ = false, head_done_ = false;
};

}  // namespace weir::http

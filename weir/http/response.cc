#include "weir/http/response.h"

#include <boost/json/serialize.hpp>

#include "weir/http/json_writer.h"

namespace weir::http {
namespace {

constexpr const char* kJson = "application/json";

Response made(unsigned status, std::string content_type, std::string body) {
  Response response;
  response.status = status;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  return response;
}

}  // namespace

Response Response::json(unsigned status, std::string text) {
  return made(status, kJson, std::move(text));
}

Response Response::json(unsigned status, const boost::json::value& value) {
  return made(status, kJson, boost::json::serialize(value));
}

Response Response::json(unsigned status, JsonWriter&& writer) {
  return made(status, kJson, std::move(writer).take());
}

Response Response::html(std::string page, unsigned status) {
  return made(status, "text/html; charset=utf-8", std::move(page));
}

Response Response::text(std::string plain, unsigned status) {
  return made(status, "text/plain; charset=utf-8", std::move(plain));
}

Response Response::shared(std::shared_ptr<const std::string> bytes, std::string content_type) {
  Response response = made(200, std::move(content_type), {});
  response.shared_body = std::move(bytes);
  return response;
}

Response Response::empty(unsigned status) {
  return made(status, {}, {});
}

Response Response::see_other(std::string location) {
  return empty(303).with("Location", std::move(location));
}

Response& Response::with(std::string name, std::string value) & {
  headers.emplace_back(std::move(name), std::move(value));
  return *this;
}

Response&& Response::with(std::string name, std::string value) && {
  headers.emplace_back(std::move(name), std::move(value));
  return std::move(*this);
}

}  // namespace weir::http

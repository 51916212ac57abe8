#include "site/article/article_codec.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace weir::site::article {
namespace {

namespace json = boost::json;

std::string encode(const ReaderCopy& copy) {
  return json::serialize(json::object{{"id", copy.id},
                                      {"author_id", copy.author_id},
                                      {"title", copy.title},
                                      {"abstract", copy.abstract},
                                      {"content", copy.content()},
                                      {"version", copy.version},
                                      {"published_at", to_micros(copy.published_at)},
                                      {"updated_at", to_micros(copy.updated_at)}});
}

// Throws for what is no copy.
std::optional<ReaderCopy> decode(std::string_view bytes) {
  const json::value parsed = json::parse(json::string_view(bytes.data(), bytes.size()));
  const json::object& fields = parsed.as_object();
  const auto number = [&](const char* name) { return fields.at(name).to_number<std::int64_t>(); };
  const auto text = [&](const char* name) { return json::value_to<std::string>(fields.at(name)); };
  return ReaderCopy(PublishedArticle{.id = number("id"),
                                     .author_id = number("author_id"),
                                     .title = text("title"),
                                     .abstract = text("abstract"),
                                     .content = text("content"),
                                     .version = number("version"),
                                     .published_at = from_micros(number("published_at")),
                                     .updated_at = from_micros(number("updated_at"))});
}

}  // namespace

cache::Codec<Id, ReaderCopy> reader_copy_codec() {
  return {.key = cache::key_text<Id>, .encode = encode, .decode = decode};
}

}  // namespace weir::site::article

#include "site/article/article.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "weir/base/rfc3339.h"
#include "weir/base/utf8.h"

namespace weir::site::article {
namespace {

std::optional<std::string> text_fault(std::string_view text, std::size_t& code_points) {
  const auto length = utf8_length(text);
  if (!length) return "must be valid UTF-8";
  if (text.find('\0') != std::string_view::npos) return "must not contain NUL";
  code_points = *length;
  return std::nullopt;
}

}  // namespace

std::string_view to_text(Status status) {
  switch (status) {
    case Status::draft:
      return "draft";
    case Status::published:
      return "published";
    case Status::withdrawn:
      return "withdrawn";
  }
  return "draft";
}

Summary summary_of(const OwnArticle& article) {
  return {article.id,     article.author_id,    article.title,      article.abstract,
          article.status, article.published_at, article.updated_at, article.version};
}

ReaderCopy::ReaderCopy(const PublishedArticle& article)
    : id(article.id),
      author_id(article.author_id),
      title(article.title),
      abstract(article.abstract),
      version(article.version),
      published_at(article.published_at),
      updated_at(article.updated_at),
      content_bytes_(article.content.size()) {
  json_ = "{\"id\":\"" + std::to_string(id) +
          "\",\"title\":" + boost::json::serialize(std::string_view(title)) + ",\"content\":";
  content_begin_ = json_.size();
  json_ += boost::json::serialize(std::string_view(article.content));
  content_end_ = json_.size();
  json_ += ",\"author\":{\"id\":\"" + std::to_string(author_id) + "\",\"nickname\":";
  split_ = json_.size();
  json_ += "},\"published_at\":\"" + to_rfc3339(published_at) + "\",\"updated_at\":\"" +
           to_rfc3339(updated_at) + "\",\"interaction\":";
  json_.shrink_to_fit();
}

std::string ReaderCopy::content() const {
  const auto text = std::string_view(json_).substr(content_begin_, content_end_ - content_begin_);
  return std::string(boost::json::parse(text).as_string());
}

std::size_t ReaderCopy::weight() const {
  return sizeof(ReaderCopy) + json_.capacity() + title.capacity() + abstract.capacity();
}

std::optional<std::string> title_fault(std::string_view title) {
  std::size_t length = 0;
  if (auto fault = text_fault(title, length)) return fault;
  if (length < 1 || length > kMaxTitleCodePoints) return "must have 1 to 10000 characters";
  return std::nullopt;
}

std::optional<std::string> content_fault(std::string_view content) {
  if (content.size() > kMaxContentBytes) return "must have at most 2031616 bytes";
  std::size_t length = 0;
  return text_fault(content, length);
}

}  // namespace weir::site::article

#include "site/article/article_json.h"

#include <charconv>

namespace weir::site::article {
namespace {

void append_number(std::string& out, std::int64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  out.append(digits, end);
}

void append_flag(std::string& out, std::string_view name, bool value) {
  out += name;
  out += value ? "true" : "false";
}

void write_author(http::JsonWriter& writer, Id id, const Authors& authors) {
  const auto author = authors.find(id);
  const bool known = author != authors.end() && author->second;
  writer.key("author").begin_object().key("id").id(id).key("nickname");
  writer.string(known ? std::string_view(author->second->nickname) : std::string_view()).end_object();
}

void write_times(http::JsonWriter& writer, const std::optional<WallTime>& published_at, WallTime updated_at) {
  writer.key("published_at");
  if (published_at) {
    writer.time(*published_at);
  } else {
    writer.null();
  }
  writer.key("updated_at").time(updated_at);
}

}  // namespace

std::string article_json(const ReaderCopy& copy, std::string_view nickname, const interaction::Counts& counts,
                         const std::optional<interaction::Mine>& mine) {
  // Three numbers, two flags and their names; a nickname whose escapes need more makes the text grow.
  constexpr std::size_t kRoom = 256;
  const auto head = copy.json_to_nickname(), tail = copy.json_to_interaction();
  std::string out;
  out.reserve(head.size() + nickname.size() + tail.size() + kRoom);
  out += head;
  http::append_json_string(out, nickname);
  out += tail;
  out += "{\"biz\":\"article\",\"biz_id\":\"";
  append_number(out, copy.id);
  out += "\",\"read_count\":";
  append_number(out, counts.reads);
  out += ",\"like_count\":";
  append_number(out, counts.likes);
  out += ",\"collect_count\":";
  append_number(out, counts.collects);
  if (mine) {
    append_flag(out, ",\"liked\":", mine->liked);
    append_flag(out, ",\"collected\":", mine->collected);
  }
  out += "}}";
  return out;
}

void write_summary(http::JsonWriter& writer, const Summary& summary, const Authors& authors) {
  writer.begin_object().key("id").id(summary.id).key("title").string(summary.title);
  writer.key("abstract").string(summary.abstract);
  write_author(writer, summary.author_id, authors);
  if (summary.status) writer.key("status").string(to_text(*summary.status));
  write_times(writer, summary.published_at, summary.updated_at);
  writer.end_object();
}

std::string own_json(const OwnArticle& article, const Authors& authors) {
  http::JsonWriter writer(article.content.size() + article.title.size() + 512);
  writer.begin_object().key("id").id(article.id).key("title").string(article.title);
  writer.key("content").string(article.content);
  write_author(writer, article.author_id, authors);
  writer.key("status").string(to_text(article.status));
  write_times(writer, article.published_at, article.updated_at);
  writer.end_object();
  return std::move(writer).take();
}

std::string listing_json(const Listing& listing, const Authors& authors, const std::string& next_cursor) {
  http::JsonWriter writer(listing.items.size() * 512 + 128);
  writer.begin_object().key("items").begin_array();
  for (const Summary& item : listing.items) write_summary(writer, item, authors);
  writer.end_array();
  if (!next_cursor.empty()) writer.key("next_cursor").string(next_cursor);
  if (listing.total) writer.key("total").integer(*listing.total);
  writer.end_object();
  return std::move(writer).take();
}

}  // namespace weir::site::article

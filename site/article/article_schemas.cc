#include <boost/json/parse.hpp>

#include "site/article/article_json.h"

namespace weir::site::article {
namespace {

// The numbers are those of article.h; article_handler_test.cc holds the two against each other.
constexpr const char* kSchemas = R"json({
  "ArticleText": {
    "type": "object",
    "required": ["title", "content"],
    "properties": {
      "title": {"type": "string", "minLength": 1, "maxLength": 10000},
      "content": {"type": "string", "maxLength": 2031616,
                  "description": "Markdown, up to 2,031,616 bytes of UTF-8 (2 MiB less 64 KiB)."}
    }
  },
  "ArticleId": {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"}}
  },
  "Author": {
    "type": "object",
    "required": ["id", "nickname"],
    "properties": {
      "id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
      "nickname": {"type": "string"}
    }
  },
  "Article": {
    "type": "object",
    "description": "An article as its readers see it.",
    "required": ["id", "title", "content", "author", "published_at", "updated_at", "interaction"],
    "properties": {
      "id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
      "title": {"type": "string"},
      "content": {"type": "string", "description": "Markdown."},
      "author": {"$ref": "#/components/schemas/Author"},
      "published_at": {"type": "string", "format": "date-time", "description": "Of the first publication."},
      "updated_at": {"type": "string", "format": "date-time", "description": "Of the latest publication."},
      "interaction": {
        "type": "object",
        "required": ["biz", "biz_id", "read_count", "like_count", "collect_count"],
        "properties": {
          "biz": {"type": "string", "const": "article"},
          "biz_id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
          "read_count": {"type": "integer", "minimum": 0},
          "like_count": {"type": "integer", "minimum": 0},
          "collect_count": {"type": "integer", "minimum": 0},
          "liked": {"type": "boolean", "description": "When a user asks."},
          "collected": {"type": "boolean", "description": "When a user asks."}
        }
      }
    }
  },
  "OwnArticle": {
    "type": "object",
    "description": "An article as its author sees it.",
    "required": ["id", "title", "content", "author", "status", "published_at", "updated_at"],
    "properties": {
      "id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
      "title": {"type": "string"},
      "content": {"type": "string"},
      "author": {"$ref": "#/components/schemas/Author"},
      "status": {"type": "string", "enum": ["draft", "published", "withdrawn"]},
      "published_at": {"type": ["string", "null"], "format": "date-time"},
      "updated_at": {"type": "string", "format": "date-time"}
    }
  },
  "ArticleSummary": {
    "type": "object",
    "required": ["id", "title", "abstract", "author", "published_at", "updated_at"],
    "properties": {
      "id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
      "title": {"type": "string"},
      "abstract": {"type": "string", "maxLength": 128, "description": "The beginning, as plain text."},
      "author": {"$ref": "#/components/schemas/Author"},
      "status": {"type": "string", "enum": ["draft", "published", "withdrawn"],
                 "description": "On the author's side only."},
      "published_at": {"type": ["string", "null"], "format": "date-time"},
      "updated_at": {"type": "string", "format": "date-time"}
    }
  },
  "ArticleList": {
    "type": "object",
    "required": ["items"],
    "properties": {
      "items": {"type": "array", "maxItems": 100, "items": {"$ref": "#/components/schemas/ArticleSummary"}},
      "next_cursor": {"type": "string", "description": "Where the list goes on, if it does."},
      "total": {"type": "integer", "minimum": 0, "description": "In the form with pages."}
    }
  }
})json";

}  // namespace

std::map<std::string, boost::json::value> schemas() {
  std::map<std::string, boost::json::value> out;
  const boost::json::value all = boost::json::parse(kSchemas);
  for (const auto& [name, schema] : all.as_object()) out.emplace(name, schema);
  return out;
}

}  // namespace weir::site::article

#include "site/ranking/ranking_handler.h"

#include <boost/json/parse.hpp>
#include <string>
#include <utility>

#include "weir/http/fields.h"
#include "weir/http/json_writer.h"
#include "weir/http/problem.h"

namespace weir::site::ranking {
namespace {

constexpr std::int64_t kDefaultLimit = 20;

constexpr std::string_view kSchema = R"json({
  "type": "object",
  "required": ["name", "model", "computed_at", "stale", "items"],
  "properties": {
    "name": {"type": "string"},
    "model": {"type": "string", "description": "How scores are computed."},
    "computed_at": {"type": ["string", "null"], "format": "date-time", "description": "Null before the first run."},
    "stale": {"type": "boolean", "description": "The list should have been computed again, and wasn't."},
    "items": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["rank", "score", "id", "title", "abstract", "author", "like_count", "published_at"],
        "properties": {
          "rank": {"type": "integer", "minimum": 1},
          "score": {"type": "number"},
          "id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
          "title": {"type": "string"},
          "abstract": {"type": "string"},
          "author": {
            "type": "object",
            "required": ["id", "nickname"],
            "properties": {"id": {"type": "string"}, "nickname": {"type": "string"}}
          },
          "like_count": {"type": "integer", "minimum": 0},
          "published_at": {"type": "string", "format": "date-time"}
        }
      }
    }
  }
})json";

void write_row(http::JsonWriter& json, const RankingService::Row& row) {
  json.begin_object().key("rank").integer(row.rank).key("score").number(row.score);
  json.key("id").id(row.article.id).key("title").string(row.article.title);
  json.key("abstract").string(row.article.abstract);
  json.key("author").begin_object().key("id").id(row.article.author_id);
  json.key("nickname")
      .string(row.author ? std::string_view(row.author->nickname) : std::string_view())
      .end_object();
  json.key("like_count").integer(row.counts.likes);
  json.key("published_at").time(row.article.published_at.value_or(row.article.updated_at)).end_object();
}

http::Response answer(const RankingService::Shown& shown) {
  http::JsonWriter json(512 * (shown.rows.size() + 1));
  json.begin_object().key("name").string(shown.name).key("model").string(shown.model).key("computed_at");
  if (shown.computed_at) {
    json.time(*shown.computed_at);
  } else {
    json.null();
  }
  json.key("stale").boolean(shown.stale).key("items").begin_array();
  for (const auto& row : shown.rows) write_row(json, row);
  json.end_array().end_object();
  return http::Response::json(200, std::move(json));
}

http::Reply get_board(RankingService& rankings, http::Request& request) {
  const auto limit =
      http::query_integer(request, "limit", 1, static_cast<std::int64_t>(kMaxTop), kDefaultLimit);
  const auto shown =
      co_await rankings.board(std::string(request.param("name")), static_cast<std::size_t>(limit));
  if (!shown) throw http::not_found("There is no such ranking.");
  co_return answer(*shown);
}

}  // namespace

void add_routes(http::Router& router, RankingService& rankings) {
  router.add_schema("Ranking", boost::json::parse(kSchema));
  http::Doc doc;
  doc.tag = "rankings";
  doc.summary = "What is hot now, best first";
  doc.query = {{.name = "limit",
                .description = "How many places, 20 if not given",
                .type = "integer",
                .schema = {{"minimum", 1}, {"maximum", kMaxTop}, {"default", kDefaultLimit}}}};
  doc.responses = {{200, "Ranking"}};
  doc.problems = {404, 422};
  router.add({"GET", "/v1/rankings/{name}", http::Access::anyone,
              [&rankings](http::Request& request) { return get_board(rankings, request); }, std::move(doc)});
}

}  // namespace weir::site::ranking

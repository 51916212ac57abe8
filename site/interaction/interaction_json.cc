#include "site/interaction/interaction_json.h"

#include <boost/json/parse.hpp>

#include "weir/http/json_writer.h"

namespace weir::site::interaction {
namespace {

using http::JsonWriter;

void write_view(JsonWriter& json, std::string_view biz, Id biz_id, const InteractionService::View& view) {
  json.begin_object().key("biz").string(biz).key("biz_id").id(biz_id);
  json.key("read_count").integer(view.counts.reads);
  json.key("like_count").integer(view.counts.likes);
  json.key("collect_count").integer(view.counts.collects);
  if (view.mine) json.key("liked").boolean(view.mine->liked).key("collected").boolean(view.mine->collected);
  json.end_object();
}

void write_folder(JsonWriter& json, const Folder& folder) {
  json.begin_object().key("id").id(folder.id).key("name").string(folder.name);
  json.key("is_default").boolean(folder.is_default).key("item_count").integer(folder.item_count);
  json.key("created_at").time(folder.created_at).end_object();
}

void write_entry(JsonWriter& json, const InteractionService::TitledEntry& item, std::string_view time_name) {
  json.begin_object().key("biz").string(item.entry.subject.biz).key("biz_id").id(item.entry.subject.id);
  if (item.title) json.key("title").string(*item.title);
  json.key(time_name).time(item.entry.at).end_object();
}

void end_list(JsonWriter& json, std::string_view next_cursor, std::optional<std::int64_t> total) {
  json.end_array();
  if (!next_cursor.empty()) json.key("next_cursor").string(next_cursor);
  if (total) json.key("total").integer(*total);
  json.end_object();
}

constexpr std::string_view kInteraction = R"json({
  "type": "object",
  "required": ["biz", "biz_id", "read_count", "like_count", "collect_count"],
  "properties": {
    "biz": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,31}$"},
    "biz_id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
    "read_count": {"type": "integer", "minimum": 0},
    "like_count": {"type": "integer", "minimum": 0},
    "collect_count": {"type": "integer", "minimum": 0},
    "liked": {"type": "boolean", "description": "Whether I like it; only when signed in."},
    "collected": {"type": "boolean", "description": "Whether I collected it; only when signed in."}
  }
})json";

constexpr std::string_view kInteractionList = R"json({
  "type": "object",
  "required": ["items"],
  "properties": {"items": {"type": "array", "items": {"$ref": "#/components/schemas/Interaction"}}}
})json";

constexpr std::string_view kRead = R"json({
  "type": "object",
  "properties": {
    "event_id": {
      "type": ["string", "null"], "minLength": 1, "maxLength": 128, "pattern": "^[ -~]{1,128}$",
      "description": "The same event_id for the same thing counts once."
    }
  }
})json";

constexpr std::string_view kCollect = R"json({
  "type": "object",
  "properties": {
    "collection_id": {"type": ["string", "null"], "pattern": "^[1-9][0-9]{0,18}$"}
  }
})json";

constexpr std::string_view kNewCollection = R"json({
  "type": "object",
  "required": ["name"],
  "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 64}}
})json";

constexpr std::string_view kCollection = R"json({
  "type": "object",
  "required": ["id", "name", "is_default", "item_count", "created_at"],
  "properties": {
    "id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
    "name": {"type": "string"},
    "is_default": {"type": "boolean"},
    "item_count": {"type": "integer", "minimum": 0},
    "created_at": {"type": "string", "format": "date-time"}
  }
})json";

// A list of `item`.
std::string list_schema(std::string_view item) {
  return R"json({"type": "object", "required": ["items"], "properties": {"items": {"type": "array", "items": )json" +
         std::string(item) +
         R"json(}, "next_cursor": {"type": "string"}, "total": {"type": "integer", "minimum": 0}}})json";
}

std::string entry_schema(const std::string& time_name) {
  return R"json({"type": "object", "required": ["biz", "biz_id", ")json" + time_name +
         R"json("], "properties": {
    "biz": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,31}$"},
    "biz_id": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
    "title": {"type": "string", "description": "Left out when it isn't there any more."},
    ")json" +
         time_name + R"json(": {"type": "string", "format": "date-time"}}})json";
}

}  // namespace

std::string view_json(std::string_view biz, Id biz_id, const InteractionService::View& view) {
  JsonWriter json(160);
  write_view(json, biz, biz_id, view);
  return std::move(json).take();
}

std::string views_json(std::string_view biz, const std::vector<Id>& ids,
                       const std::vector<InteractionService::View>& views) {
  JsonWriter json(160 * ids.size() + 16);
  json.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < ids.size(); ++i) write_view(json, biz, ids[i], views[i]);
  json.end_array().end_object();
  return std::move(json).take();
}

std::string folder_json(const Folder& folder) {
  JsonWriter json;
  write_folder(json, folder);
  return std::move(json).take();
}

std::string folders_json(const Listing<Folder>& listing, std::string_view next_cursor) {
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (const Folder& folder : listing.items) write_folder(json, folder);
  end_list(json, next_cursor, listing.total);
  return std::move(json).take();
}

std::string entries_json(const Listing<InteractionService::TitledEntry>& listing, std::string_view time_name,
                         std::string_view next_cursor) {
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (const auto& item : listing.items) write_entry(json, item, time_name);
  end_list(json, next_cursor, listing.total);
  return std::move(json).take();
}

void add_schemas(http::Router& router) {
  router.add_schema("Interaction", boost::json::parse(kInteraction));
  router.add_schema("InteractionList", boost::json::parse(kInteractionList));
  router.add_schema("Read", boost::json::parse(kRead));
  router.add_schema("Collect", boost::json::parse(kCollect));
  router.add_schema("NewCollection", boost::json::parse(kNewCollection));
  router.add_schema("Collection", boost::json::parse(kCollection));
  router.add_schema("CollectionList",
                    boost::json::parse(list_schema(R"({"$ref": "#/components/schemas/Collection"})")));
  router.add_schema("CollectedList", boost::json::parse(list_schema(entry_schema("collected_at"))));
  router.add_schema("HistoryList", boost::json::parse(list_schema(entry_schema("read_at"))));
}

}  // namespace weir::site::interaction

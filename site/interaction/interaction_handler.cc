#include "site/interaction/interaction_handler.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "site/interaction/interaction_json.h"
#include "weir/http/fields.h"
#include "weir/http/list_query.h"
#include "weir/http/problem.h"
#include "weir/queue/event.h"

namespace weir::site::interaction {
namespace {

using http::Access;
using http::Reply;
using http::Request;
using http::Response;

constexpr std::string_view kFolderCursor = "me/collections";
constexpr std::string_view kItemCursor = "me/collections/items";
constexpr std::string_view kHistoryCursor = "me/history";

Subject subject_of(const Request& request) {
  return {std::string(request.param("biz")), request.id("biz_id")};
}
std::optional<Id> user_of(const Request& request) {
  return request.principal ? std::optional(request.principal->user_id) : std::nullopt;
}

// What a change answers.
Response answer(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return Response::empty(204);
    case Outcome::is_default:
      throw http::conflict("default_collection", "The default collection can't be deleted.");
    case Outcome::not_found:
      break;
  }
  throw http::not_found();
}

// --- Counts and reads ---

Reply get_one(InteractionService& interactions, Request& request) {
  const Subject subject = subject_of(request);
  const auto view = co_await interactions.view(subject, user_of(request));
  if (!view) throw http::not_found();
  co_return Response::json(200, view_json(subject.biz, subject.id, *view));
}

// "1,2,3": at most kMaxBulk ids.
std::vector<Id> ids_of(const Request& request) {
  const auto text = request.query("ids");
  if (!text || text->empty()) throw http::invalid("ids", "is required: ids separated by commas");
  std::vector<Id> ids;
  for (std::string_view rest = *text;;) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto id = parse_id(rest.substr(0, comma));
    if (!id) throw http::invalid("ids", "must be ids separated by commas");
    if (ids.size() == kMaxBulk)
      throw http::invalid("ids", "at most " + std::to_string(kMaxBulk) + " ids at once");
    ids.push_back(*id);
    if (comma == rest.size()) return ids;
    rest.remove_prefix(comma + 1);
  }
}

Reply get_many(InteractionService& interactions, Request& request) {
  const auto ids = ids_of(request);
  const std::string biz(request.param("biz"));
  const auto views = co_await interactions.views(biz, ids, user_of(request));
  co_return Response::json(200, views_json(biz, ids, views));
}

bool is_printable_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

Reply post_read(InteractionService& interactions, Request& request) {
  http::Fields fields(request);
  const auto event_id = fields.optional_string("event_id", {.min = 1, .max = queue::kMaxEventIdBytes});
  if (event_id && !is_printable_ascii(*event_id)) fields.refuse("event_id", "must be printable ASCII");
  fields.check();
  const auto outcome = co_await interactions.publish_read(subject_of(request), user_of(request).value_or(0),
                                                          event_id.value_or(""));
  if (outcome != Outcome::done) throw http::not_found();
  co_return Response::empty(202);
}

// --- Likes and collections ---

Reply put_like(InteractionService& interactions, Request& request) {
  co_return answer(co_await interactions.like(request.user().user_id, subject_of(request)));
}

Reply delete_like(InteractionService& interactions, Request& request) {
  co_return answer(co_await interactions.unlike(request.user().user_id, subject_of(request)));
}

std::optional<Id> folder_of(const Request& request) {
  http::Fields fields(request);
  const auto folder = fields.optional_id("collection_id");
  fields.check();
  return folder;
}

Reply put_collection(InteractionService& interactions, Request& request) {
  const auto folder = folder_of(request);
  co_return answer(co_await interactions.collect(request.user().user_id, subject_of(request), folder));
}

Reply delete_collection(InteractionService& interactions, Request& request) {
  const auto folder = folder_of(request);
  co_return answer(co_await interactions.uncollect(request.user().user_id, subject_of(request), folder));
}

// --- Folders ---

template <class After>
Slice<After> slice_of(const http::ListQuery& query) {
  Slice<After> slice;
  slice.limit = query.limit;
  slice.offset = query.offset;
  slice.with_total = query.wants_total();
  return slice;
}

EntrySlice entry_slice_of(const http::ListQuery& query, std::string_view list) {
  auto slice = slice_of<Place>(query);
  if (query.cursor.empty()) return slice;
  const auto key = http::decode_cursor<2>(list, query.cursor);
  slice.after = Place{from_micros(key[0]), key[1]};
  return slice;
}

std::string next_entry(const Listing<InteractionService::TitledEntry>& listing, const http::ListQuery& query,
                       std::string_view list) {
  if (!query.wants_cursor() || !listing.more) return {};
  const Entry& last = listing.items.back().entry;
  return http::encode_cursor(list, {to_micros(last.at), last.row});
}

std::string name_of(const Request& request) {
  http::Fields fields(request);
  auto name = fields.string("name", {.min = 1, .max = kMaxFolderNameCodePoints});
  fields.check();
  return name;
}

Reply get_folders(InteractionService& interactions, Request& request) {
  const auto query = http::parse_list(request);
  auto slice = slice_of<Id>(query);
  if (!query.cursor.empty()) slice.after = http::decode_cursor<1>(kFolderCursor, query.cursor)[0];
  const auto listing = co_await interactions.folders(request.user().user_id, slice);
  std::string next;
  if (query.wants_cursor() && listing.more)
    next = http::encode_cursor(kFolderCursor, {listing.items.back().id});
  co_return Response::json(200, folders_json(listing, next));
}

Reply post_folder(InteractionService& interactions, Request& request) {
  const auto folder = co_await interactions.create_folder(request.user().user_id, name_of(request));
  if (!folder)
    throw http::conflict("too_many_collections", "At most " + std::to_string(kMaxFolders) + " collections.");
  co_return Response::json(201, folder_json(*folder))
      .with("Location", "/v1/me/collections/" + std::to_string(folder->id));
}

Reply patch_folder(InteractionService& interactions, Request& request) {
  auto name = name_of(request);
  const auto folder =
      co_await interactions.rename_folder(request.user().user_id, request.id("id"), std::move(name));
  if (!folder) throw http::not_found();
  co_return Response::json(200, folder_json(*folder));
}

Reply delete_folder(InteractionService& interactions, Request& request) {
  co_return answer(co_await interactions.remove_folder(request.user().user_id, request.id("id")));
}

Reply get_items(InteractionService& interactions, Request& request) {
  const auto query = http::parse_list(request);
  const auto listing = co_await interactions.items(request.user().user_id, request.id("id"),
                                                   entry_slice_of(query, kItemCursor));
  if (!listing) throw http::not_found();
  co_return Response::json(200,
                           entries_json(*listing, "collected_at", next_entry(*listing, query, kItemCursor)));
}

// --- History ---

Reply get_history(InteractionService& interactions, Request& request) {
  const auto query = http::parse_list(request);
  const auto listing =
      co_await interactions.history(request.user().user_id, entry_slice_of(query, kHistoryCursor));
  co_return Response::json(200, entries_json(listing, "read_at", next_entry(listing, query, kHistoryCursor)));
}

Reply delete_history(InteractionService& interactions, Request& request) {
  co_await interactions.clear_history(request.user().user_id);
  co_return Response::empty(204);
}

// --- The table ---

http::Doc doc(std::string tag, std::string summary, std::map<unsigned, std::string> responses,
              std::vector<unsigned> problems = {}) {
  http::Doc doc;
  doc.tag = std::move(tag);
  doc.summary = std::move(summary);
  doc.responses = std::move(responses);
  doc.problems = std::move(problems);
  return doc;
}
http::Doc with_body(http::Doc doc, std::string schema, bool optional) {
  doc.request_schema = std::move(schema);
  doc.request_optional = optional;
  return doc;
}
http::Doc with_list(http::Doc doc) {
  doc.query = http::list_parameters();
  return doc;
}

class Table {
 public:
  Table(http::Router& router, InteractionService& interactions)
      : router_(router), interactions_(interactions) {}

  using Function = Reply (*)(InteractionService&, Request&);
  void add(std::string method, std::string pattern, Access access, Function function, http::Doc doc) {
    auto handler = [function, &interactions = interactions_](Request& request) {
      return function(interactions, request);
    };
    router_.add({std::move(method), std::move(pattern), access, std::move(handler), std::move(doc)});
  }

 private:
  http::Router& router_;
  InteractionService& interactions_;
};

void add_counts(Table& table) {
  const std::string one = "/v1/interactions/{biz}/{biz_id}";
  http::Doc bulk =
      doc("interactions", "How often several things were read, liked and collected, in the order asked",
          {{200, "InteractionList"}}, {422});
  bulk.query = {{.name = "ids",
                 .description = "Up to 100 ids, separated by commas",
                 .required = true,
                 .schema = {{"pattern", "^[1-9][0-9]{0,18}(,[1-9][0-9]{0,18}){0,99}$"}}}};
  table.add("GET", "/v1/interactions/{biz}", Access::anyone, get_many, std::move(bulk));
  table.add("GET", one, Access::anyone, get_one,
            doc("interactions", "How often it was read, liked and collected", {{200, "Interaction"}}, {404}));
  table.add("POST", one + "/reads", Access::anyone, post_read,
            with_body(doc("interactions", "Count a read", {{202, ""}}, {404, 422, 503}), "Read", true));
  table.add("PUT", one + "/like", Access::user, put_like, doc("interactions", "Like it", {{204, ""}}, {404}));
  table.add("DELETE", one + "/like", Access::user, delete_like,
            doc("interactions", "Take the like back", {{204, ""}}, {404}));
  table.add(
      "PUT", one + "/collection", Access::user, put_collection,
      with_body(doc("interactions", "Collect it, or move it to another collection", {{204, ""}}, {404, 422}),
                "Collect", true));
  table.add("DELETE", one + "/collection", Access::user, delete_collection,
            with_body(doc("interactions", "Take it out of its collection", {{204, ""}}, {404, 422}),
                      "Collect", true));
}

void add_folders(Table& table) {
  const std::string all = "/v1/me/collections", one = all + "/{id}";
  table.add("GET", all, Access::user, get_folders,
            with_list(doc("collections", "My collections, the default one first", {{200, "CollectionList"}},
                          {422})));
  table.add("POST", all, Access::user, post_folder,
            with_body(doc("collections", "Make a collection", {{201, "Collection"}}, {409, 422}),
                      "NewCollection", false));
  table.add("PATCH", one, Access::user, patch_folder,
            with_body(doc("collections", "Rename a collection", {{200, "Collection"}}, {404, 422}),
                      "NewCollection", false));
  table.add("DELETE", one, Access::user, delete_folder,
            doc("collections", "Delete a collection; what is in it moves to the default one", {{204, ""}},
                {404, 409}));
  table.add("GET", one + "/items", Access::user, get_items,
            with_list(doc("collections", "What is in a collection, newest first", {{200, "CollectedList"}},
                          {404, 422})));
}

void add_history(Table& table) {
  table.add("GET", "/v1/me/history", Access::user, get_history,
            with_list(doc("history", "What I read, newest first", {{200, "HistoryList"}}, {422})));
  table.add("DELETE", "/v1/me/history", Access::user, delete_history,
            doc("history", "Forget what I read", {{204, ""}}));
}

}  // namespace

void add_routes(http::Router& router, InteractionService& interactions) {
  add_schemas(router);
  Table table(router, interactions);
  add_counts(table);
  add_folders(table);
  add_history(table);
}

}  // namespace weir::site::interaction

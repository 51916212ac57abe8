#include "site/article/article_handler.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "site/article/article_json.h"
#include "weir/http/fields.h"
#include "weir/http/list_query.h"
#include "weir/http/problem.h"

namespace weir::site::article {
namespace {

namespace asio = boost::asio;
using http::Reply;
using http::Request;
using http::Response;

// Preloads on their way; a list above it goes without one.
constexpr int kMaxPreloads = 64;
constexpr std::string_view kNewestCursor = "articles";
constexpr std::string_view kOwnCursor = "me/articles";

std::string etag_of_version(std::int64_t version) {
  return '"' + std::to_string(version) + '"';
}

// The versions that If-Match names; nothing when it isn't there or is "*". A weak tag matches no version.
std::optional<std::vector<std::int64_t>> wanted_versions(const Request& request) {
  const auto header = request.header("If-Match");
  if (!header || *header == "*") return std::nullopt;
  std::vector<std::int64_t> versions;
  for (std::string_view rest = *header; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    std::string_view tag = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    tag.remove_prefix(std::min(tag.find_first_not_of(" \t"), tag.size()));
    tag = tag.substr(0, tag.find_last_not_of(" \t") + 1);
    if (tag.size() < 3 || tag.front() != '"' || tag.back() != '"') continue;
    if (const auto version = parse_id(tag.substr(1, tag.size() - 2))) versions.push_back(*version);
  }
  return versions;
}

void check(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return;
    case Outcome::not_found:
      throw http::not_found("There is no such article.");
    case Outcome::not_author:
      throw http::forbidden("This article is somebody else's.");
    case Outcome::version_mismatch:
      throw http::version_mismatch("The article was changed meanwhile. Load it again before you save.");
  }
}

struct Text {
  std::string title, content;
};

Text read_text(const Request& request) {
  http::Fields fields(request);
  Text text;
  text.title = fields.string("title", {.min = 1, .max = kMaxTitleCodePoints});
  text.content = fields.string("content", {.max_bytes = kMaxContentBytes});
  fields.check();
  return text;
}

template <class After>
Slice<After> slice_of(const http::ListQuery& query) {
  Slice<After> slice;
  slice.limit = static_cast<std::size_t>(query.limit);
  slice.offset = static_cast<std::uint64_t>(query.offset);
  slice.with_total = query.wants_total();
  return slice;
}

void check_depth(const Listing& listing, const http::ListQuery& query) {
  if (!listing.too_deep) return;
  const bool pages = query.form == http::ListQuery::Form::page;
  throw http::invalid(pages ? "page" : "offset",
                      "skips more than " + std::to_string(kMaxDepth) + " rows: walk the list by cursor");
}

// What the handlers share. Lives as long as one of them, or a preload on its way.
class Routes : public std::enable_shared_from_this<Routes> {
 public:
  Routes(ArticleService& articles, user::UserService& users, interaction::InteractionService& interactions)
      : articles_(articles), users_(users), interactions_(interactions) {}

  Reply read(Request& request);
  Reply newest(Request& request);
  Reply mine(Request& request);
  Reply own(Request& request);
  Reply create(Request& request);
  Reply edit(Request& request);
  Reply publish(Request& request);
  Reply withdraw(Request& request);
  Reply remove(Request& request);

 private:
  asio::awaitable<interaction::Counts> counts_of(Id article);
  asio::awaitable<user::UserPtr> author_of(Id author);
  asio::awaitable<Authors> authors_of(const std::vector<Summary>& items);
  Reply changed(Changed change);
  // Loads what will probably be read next, beside the answer.
  void preload(const asio::any_io_executor& executor, Id article, bool own);

  ArticleService& articles_;
  user::UserService& users_;
  interaction::InteractionService& interactions_;
  std::atomic<int> preloads_{0};
};

asio::awaitable<interaction::Counts> Routes::counts_of(Id article) {
  co_return co_await interactions_.counts(std::string(kBiz), article);
}

asio::awaitable<user::UserPtr> Routes::author_of(Id author) {
  co_return co_await users_.get(author);
}

asio::awaitable<Authors> Routes::authors_of(const std::vector<Summary>& items) {
  std::vector<Id> ids;
  ids.reserve(items.size());
  for (const Summary& item : items) ids.push_back(item.author_id);
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  const auto found = co_await users_.get_all(ids);
  Authors authors;
  for (std::size_t i = 0; i < ids.size(); ++i) authors.emplace(ids[i], found[i]);
  co_return authors;
}

// The hot path: when all is in memory it neither waits nor starts another coroutine.
Reply Routes::read(Request& request) {
  using asio::experimental::awaitable_operators::operator&&;
  const Id id = request.id("id");
  auto known = articles_.find(id);
  const ReaderCopyPtr copy = known ? std::move(*known) : co_await articles_.read(id);
  if (!copy) throw http::not_found("There is no such article.");
  const Id reader = request.principal ? request.principal->user_id : 0;
  if (!request.head()) interactions_.record_read(kBiz, id, reader);

  auto author = users_.find(copy->author_id);
  if (!author) author = co_await author_of(copy->author_id);
  auto counts = interactions_.find(kBiz, id);
  std::optional<interaction::Mine> mine;
  if (reader != 0 && !counts) {
    auto [current, done] = co_await (counts_of(id) && interactions_.mine(reader, std::string(kBiz), id));
    counts = current;
    mine = done;
  } else if (reader != 0) {
    mine = co_await interactions_.mine(reader, std::string(kBiz), id);
  } else if (!counts) {
    counts = co_await counts_of(id);
  }
  const std::string_view nickname = *author ? std::string_view((*author)->nickname) : std::string_view();
  Response response = Response::json(200, article_json(*copy, nickname, *counts, mine));
  response.headers.reserve(2);
  response.with("Cache-Control", "private, no-cache");
  co_return http::with_etag(request, std::move(response));
}

void Routes::preload(const asio::any_io_executor& executor, Id article, bool own) {
  if (preloads_.fetch_add(1, std::memory_order_relaxed) >= kMaxPreloads) {
    preloads_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  // The count is given back when the coroutine's frame goes, finished or not.
  std::shared_ptr<void> place(nullptr, [self = shared_from_this()](void*) {
    self->preloads_.fetch_sub(1, std::memory_order_relaxed);
  });
  auto work = own ? articles_.preload_own(article) : articles_.preload(article);
  asio::co_spawn(executor, std::move(work), [place = std::move(place)](const std::exception_ptr&) {});
}

Reply Routes::newest(Request& request) {
  const auto query = http::parse_list(request);
  auto slice = slice_of<Place>(query);
  if (!query.cursor.empty()) {
    const auto key = http::decode_cursor<2>(kNewestCursor, query.cursor);
    slice.after = Place{from_micros(key[0]), key[1]};
  }
  const Listing listing = co_await articles_.newest(slice);
  check_depth(listing, query);
  const Authors authors = co_await authors_of(listing.items);
  std::string next;
  if (query.wants_cursor() && listing.more) {
    const Summary& last = listing.items.back();
    next = http::encode_cursor(kNewestCursor, {to_micros(last.published_at.value()), last.id});
  }
  if (!listing.items.empty() && !articles_.find(listing.items.front().id))
    preload(co_await asio::this_coro::executor, listing.items.front().id, false);
  co_return Response::json(200, listing_json(listing, authors, next));
}

Reply Routes::mine(Request& request) {
  const Id user = request.user().user_id;
  const auto query = http::parse_list(request);
  auto slice = slice_of<Id>(query);
  if (!query.cursor.empty()) slice.after = http::decode_cursor<1>(kOwnCursor, query.cursor)[0];
  const Listing listing = co_await articles_.mine(user, slice);
  check_depth(listing, query);
  const Authors authors = co_await authors_of(listing.items);
  std::string next;
  if (query.wants_cursor() && listing.more) next = http::encode_cursor(kOwnCursor, {listing.items.back().id});
  if (!listing.items.empty()) preload(co_await asio::this_coro::executor, listing.items.front().id, true);
  co_return Response::json(200, listing_json(listing, authors, next));
}

Reply Routes::own(Request& request) {
  const auto found = co_await articles_.own(request.user().user_id, request.id("id"));
  check(found.outcome);
  const std::string etag = etag_of_version(found.article->version);
  Response response = Response::empty(304);
  if (!http::not_modified(request, etag)) {
    Authors authors;
    authors.emplace(found.article->author_id, co_await author_of(found.article->author_id));
    response = Response::json(200, own_json(*found.article, authors));
  }
  response.with("ETag", etag).with("Cache-Control", "private, no-cache");
  co_return response;
}

Reply Routes::create(Request& request) {
  const Id user = request.user().user_id;
  Text text = read_text(request);
  const auto article = co_await articles_.create(user, std::move(text.title), std::move(text.content));
  http::JsonWriter writer(64);
  writer.begin_object().key("id").id(article.id).end_object();
  Response response = Response::json(201, std::move(writer));
  response.with("Location", "/v1/me/articles/" + std::to_string(article.id));
  response.with("ETag", etag_of_version(article.version));
  co_return response;
}

Reply Routes::changed(Changed change) {
  check(change.outcome);
  Authors authors;
  authors.emplace(change.article.author_id, co_await author_of(change.article.author_id));
  http::JsonWriter writer(1024);
  write_summary(writer, change.article, authors);
  Response response = Response::json(200, std::move(writer));
  response.with("ETag", etag_of_version(change.article.version));
  co_return response;
}

Reply Routes::edit(Request& request) {
  const Id user = request.user().user_id, article = request.id("id");
  Text text = read_text(request);
  auto change = co_await articles_.edit(user, article, std::move(text.title), std::move(text.content),
                                        wanted_versions(request));
  co_return co_await changed(std::move(change));
}

Reply Routes::publish(Request& request) {
  auto change = co_await articles_.publish(request.user().user_id, request.id("id"));
  co_return co_await changed(std::move(change));
}

Reply Routes::withdraw(Request& request) {
  auto change = co_await articles_.withdraw(request.user().user_id, request.id("id"));
  co_return co_await changed(std::move(change));
}

Reply Routes::remove(Request& request) {
  check(co_await articles_.remove(request.user().user_id, request.id("id")));
  co_return Response::empty(204);
}

using Method = Reply (Routes::*)(Request&);
http::Handler call(const std::shared_ptr<Routes>& routes, Method method) {
  return [routes, method](Request& request) { return (routes.get()->*method)(request); };
}

http::Doc doc(std::string summary, std::string tag) {
  http::Doc doc;
  doc.summary = std::move(summary);
  doc.tag = std::move(tag);
  return doc;
}

http::Doc change_doc(std::string summary) {
  http::Doc change = doc(std::move(summary), "writing");
  change.responses = {{200, "ArticleSummary"}};
  change.problems = {403, 404};
  return change;
}

void add_reading(http::Router& router, const std::shared_ptr<Routes>& routes) {
  http::Doc list = doc("Published articles, newest first", "articles");
  list.query = http::list_parameters();
  list.responses = {{200, "ArticleList"}};
  list.problems = {422};
  router.add({"GET", "/v1/articles", http::Access::anyone, call(routes, &Routes::newest), list});

  http::Doc read = doc("Read an article", "articles");
  read.responses = {{200, "Article"}, {304, ""}};
  read.problems = {404};
  router.add({"GET", "/v1/articles/{id}", http::Access::anyone, call(routes, &Routes::read), read});
}

void add_own(http::Router& router, const std::shared_ptr<Routes>& routes) {
  http::Doc list = doc("My articles, newest first: drafts too", "writing");
  list.query = http::list_parameters();
  list.responses = {{200, "ArticleList"}};
  list.problems = {422};
  router.add({"GET", "/v1/me/articles", http::Access::user, call(routes, &Routes::mine), list});

  http::Doc own = doc("My copy of an article; its ETag is the version, for If-Match", "writing");
  own.responses = {{200, "OwnArticle"}, {304, ""}};
  own.problems = {403, 404};
  router.add({"GET", "/v1/me/articles/{id}", http::Access::user, call(routes, &Routes::own), own});
}

void add_writing(http::Router& router, const std::shared_ptr<Routes>& routes) {
  http::Doc create = doc("Write a draft", "writing");
  create.request_schema = "ArticleText";
  create.responses = {{201, "ArticleId"}};
  create.problems = {422};
  router.add({"POST", "/v1/articles", http::Access::user, call(routes, &Routes::create), create});

  http::Doc edit = change_doc("Change my copy; readers see it when I publish it again");
  edit.request_schema = "ArticleText";
  http::Parameter if_match;
  if_match.name = "If-Match";
  if_match.description = "The ETag of the version that this change is based on.";
  if_match.in = "header";
  edit.query = {std::move(if_match)};
  edit.problems = {403, 404, 412, 422};
  router.add({"PUT", "/v1/articles/{id}", http::Access::user, call(routes, &Routes::edit), edit});

  router.add({"POST", "/v1/articles/{id}/publish", http::Access::user, call(routes, &Routes::publish),
              change_doc("Copy my article to its readers")});
  router.add({"POST", "/v1/articles/{id}/withdraw", http::Access::user, call(routes, &Routes::withdraw),
              change_doc("Take the readers' copy away")});

  http::Doc remove = doc("Delete my article, with the readers' copy", "writing");
  remove.responses = {{204, ""}};
  remove.problems = {403, 404};
  router.add({"DELETE", "/v1/articles/{id}", http::Access::user, call(routes, &Routes::remove), remove});
}

}  // namespace

void add_routes(http::Router& router, ArticleService& articles, user::UserService& users,
                interaction::InteractionService& interactions) {
  for (auto& [name, schema] : schemas()) router.add_schema(name, schema);
  const auto routes = std::make_shared<Routes>(articles, users, interactions);
  add_reading(router, routes);
  add_own(router, routes);
  add_writing(router, routes);
}

}  // namespace weir::site::article

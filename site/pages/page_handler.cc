#include "site/pages/page_handler.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "site/pages/article_page.h"
#include "site/pages/assets.h"
#include "site/pages/frame.h"
#include "site/pages/list_page.h"
#include "site/pages/shell_page.h"
#include "site/pages/visit.h"
#include "weir/base/blocking_pool.h"
#include "weir/base/fault.h"
#include "weir/base/offload.h"
#include "weir/cache/cache_metrics.h"
#include "weir/cache/local_cache.h"
#include "weir/http/fields.h"
#include "weir/http/json_writer.h"
#include "weir/http/problem.h"
#include "weir/telemetry/metrics.h"

namespace weir::site::pages {
namespace {

namespace asio = boost::asio;
using http::Reply;
using http::Request;
using http::Response;

constexpr int kPageRows = 30;
constexpr int kMaxHotPage = static_cast<int>(ranking::kMaxTop) / kPageRows + 1;
// Texts that wait for the one thread that lays them out; above it the answer is "one moment".
constexpr std::size_t kMaxWaiting = 256;
constexpr std::chrono::hours kKeepLaidOut{1};
// A text that was over its budget may have been so because the machine was busy.
constexpr std::chrono::minutes kKeepAsWritten{1};
constexpr std::string_view kYear = "31536000";  // seconds

class Pages final : public PageWork, public std::enable_shared_from_this<Pages> {
 public:
  Pages(PageServices services, std::size_t cache_bytes)
      : services_(services), laid_out_({.capacity = cache_bytes, .clock = &services.clock}) {}

  void stop() override { renderer_.stop(); }
  void add_to(http::Router& router);

 private:
  using Show = Reply (Pages::*)(Request&, const Visit&);
  using LaidOutPtr = std::shared_ptr<const LaidOut>;

  Reply serve(Request& request, Show show);
  Reply hot(Request& request, const Visit& visit);
  Reply newest(Request& request, const Visit& visit);
  Reply read(Request& request, const Visit& visit);
  Reply nothing(Request& request, const Visit& visit);
  Reply sign_in(Request& request, const Visit& visit);
  Reply sign_up(Request& request, const Visit& visit);
  Reply write(Request& request, const Visit& visit);
  Reply my_articles(Request& request, const Visit& visit);
  Reply my_collections(Request& request, const Visit& visit);
  Reply my_history(Request& request, const Visit& visit);
  Reply preview(Request& request);

  asio::awaitable<Visit> visit_with_name(const Request& request);
  asio::awaitable<LaidOutPtr> laid_out(article::ReaderCopyPtr copy);
  asio::awaitable<void> fill_people(std::vector<ListRow>& rows, const std::vector<article::Summary>& items);
  asio::awaitable<void> fill_counts(std::vector<ListRow>& rows);
  asio::awaitable<void> fill_interaction(ArticleView& view, const Visit& visit);
  Response mine(const Request& request, const Visit& visit, std::string_view list) const;
  void page(http::Router& router, std::string pattern, Show show);

  const PageServices services_;
  BlockingPool renderer_{"markdown", 1, kMaxWaiting};
  cache::LocalCache<std::pair<Id, std::int64_t>, LaidOut> laid_out_;  // by article and version
  cache::CacheMetrics metrics_{"page_text"};
  cache::StatsPublisher publisher_{metrics_};
  // The last to come and the first to go: it refers to the others.
  telemetry::ScrapeHook hook_ = telemetry::on_scrape(
      [this] { publisher_.publish(laid_out_.stats(), laid_out_.size(), laid_out_.weight()); });
};

std::string next_of(const Request& request) {
  return std::string(local_address(request.query("next").value_or("/")));
}

Response sent_to_sign_in(const Visit& visit) {
  return Response::see_other(visit.sign_in_address()).with("Cache-Control", "no-store");
}

asio::awaitable<Visit> Pages::visit_with_name(const Request& request) {
  Visit visit = visit_of(request, services_.clock.now());
  if (!visit.reader) co_return visit;
  auto known = services_.users.find(*visit.reader);
  if (!known) known = co_await services_.users.get(*visit.reader);
  if (*known) {
    visit.nickname = (*known)->nickname;
  } else {
    visit.reader.reset();
  }
  co_return visit;
}

// What goes wrong is a page too. Faults of the program go on to the server, which logs them.
Reply Pages::serve(Request& request, Show show) {
  unsigned failed = 503;
  try {
    const Visit visit = co_await visit_with_name(request);
    co_return co_await (this->*show)(request, visit);
  } catch (const Unavailable& fault) {
    telemetry::swallowed("pages", fault);
  } catch (const http::Problem& problem) {
    if (problem.status() != 404) throw;
    failed = 404;
  }
  // Nothing is waited for here: what failed may be where the names are kept.
  Visit visit = visit_of(request, services_.clock.now());
  if (visit.reader) {
    if (const auto known = services_.users.find(*visit.reader); known && *known) {
      visit.nickname = (*known)->nickname;
    } else if (known) {
      visit.reader.reset();
    }
  }
  co_return error_response(request, visit, failed);
}

Reply Pages::hot(Request& request, const Visit& visit) {
  HotList list;
  const auto wanted = request.query("page").value_or("1");
  std::from_chars(wanted.data(), wanted.data() + wanted.size(), list.page);
  list.page = std::clamp(list.page, 1, kMaxHotPage);
  const auto skipped = static_cast<std::size_t>(list.page - 1) * kPageRows;
  const auto limit = std::min(skipped + kPageRows + 1, ranking::kMaxTop);
  const auto shown = co_await services_.rankings.board(std::string(ranking::kHot), limit);
  if (!shown) throw http::not_found();
  list.computed = shown->computed_at;
  list.stale = shown->stale;
  list.more = shown->rows.size() > skipped + kPageRows;
  for (std::size_t i = skipped; i < std::min(shown->rows.size(), skipped + kPageRows); ++i) {
    const auto& row = shown->rows[i];
    list.rows.push_back({row.rank, row.article.id, row.article.title, row.article.abstract,
                         row.author ? row.author->nickname : "", row.article.published_at, row.counts});
  }
  co_return page_response(request, visit, hot_page(visit, list));
}

// "1700000000000000.42": the last row that was shown, by time in microseconds and id.
std::optional<article::Place> parse_place(std::string_view text) {
  const auto dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  const auto micros = parse_id(text.substr(0, dot));
  const auto id = parse_id(text.substr(dot + 1));
  if (!micros || !id) return std::nullopt;
  return article::Place{from_micros(*micros), *id};
}

asio::awaitable<void> Pages::fill_people(std::vector<ListRow>& rows,
                                         const std::vector<article::Summary>& items) {
  std::vector<Id> ids;
  for (const auto& item : items) ids.push_back(item.author_id);
  const auto people = co_await services_.users.get_all(ids);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (people[i]) rows[i].author = people[i]->nickname;
}

// A list without its counts is still a list.
asio::awaitable<void> Pages::fill_counts(std::vector<ListRow>& rows) {
  std::vector<Id> ids;
  for (const auto& row : rows) ids.push_back(row.id);
  try {
    const auto counts = co_await services_.interactions.counts_of(std::string(article::kBiz), std::move(ids));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].counts = counts[i];
  } catch (const Unavailable& fault) {
    telemetry::swallowed("pages", fault);
  }
}

Reply Pages::newest(Request& request, const Visit& visit) {
  article::NewestSlice slice;
  slice.limit = kPageRows;
  NewestList list;
  if (const auto before = request.query("before")) {
    slice.after = parse_place(*before);
    if (!slice.after) throw http::not_found();
    list.first = false;
  }
  const auto listing = co_await services_.articles.newest(slice);
  for (const auto& item : listing.items)
    list.rows.push_back({0, item.id, item.title, item.abstract, "", item.published_at, std::nullopt});
  co_await fill_people(list.rows, listing.items);
  co_await fill_counts(list.rows);
  if (listing.more && listing.items.back().published_at) {
    const auto& last = listing.items.back();
    list.next =
        "/newest?before=" + std::to_string(to_micros(*last.published_at)) + "." + std::to_string(last.id);
  }
  co_return page_response(request, visit, newest_page(visit, list));
}

asio::awaitable<Pages::LaidOutPtr> Pages::laid_out(article::ReaderCopyPtr copy) {
  const std::pair key(copy->id, copy->version);
  if (auto known = laid_out_.find(key)) co_return known;
  metrics_.local_miss.add();
  co_return co_await offload(renderer_, [this, key, copy = std::move(copy)]() -> LaidOutPtr {
    // Whoever waited behind the first one for this article finds it done.
    if (auto known = laid_out_.peek(key).value) return known;
    auto made = std::make_shared<const LaidOut>(lay_out(copy->content(), services_.clock));
    const auto ttl = made->text.laid_out ? std::chrono::nanoseconds(kKeepLaidOut) : kKeepAsWritten;
    laid_out_.put(key, made, made->weight(), ttl);
    metrics_.load_ok.add();
    return made;
  });
}

asio::awaitable<void> Pages::fill_interaction(ArticleView& view, const Visit& visit) {
  try {
    view.counts = services_.interactions.find(article::kBiz, view.id);
    if (!view.counts)
      view.counts = co_await services_.interactions.counts(std::string(article::kBiz), view.id);
    if (visit.reader)
      view.mine = co_await services_.interactions.mine(*visit.reader, std::string(article::kBiz), view.id);
  } catch (const Unavailable& fault) {
    telemetry::swallowed("pages", fault);
  }
}

Reply Pages::read(Request& request, const Visit& visit) {
  const auto id = parse_id(request.param("article"));
  if (!id) throw http::not_found();
  auto known = services_.articles.find(*id);
  const auto copy = known ? std::move(*known) : co_await services_.articles.read(*id);
  if (!copy) throw http::not_found();
  if (!request.head()) services_.interactions.record_read(article::kBiz, *id, visit.reader.value_or(0));

  ArticleView view;
  view.id = *id;
  view.author_id = copy->author_id;
  view.title = copy->title;
  view.abstract = copy->abstract;
  view.published = copy->published_at;
  view.updated = copy->updated_at;
  auto author = services_.users.find(copy->author_id);
  if (!author) author = co_await services_.users.get(copy->author_id);
  if (*author) view.author = (*author)->nickname;
  co_await fill_interaction(view, visit);
  view.text = co_await laid_out(copy);
  co_return page_response(request, visit, article_page(visit, view));
}

Reply Pages::nothing(Request& request, const Visit& visit) {
  co_return error_response(request, visit, 404);
}

Reply Pages::sign_in(Request& request, const Visit& visit) {
  if (visit.reader) co_return Response::see_other(next_of(request));
  co_return page_response(request, visit, sign_in_page(visit, next_of(request)));
}

Reply Pages::sign_up(Request& request, const Visit& visit) {
  if (visit.reader) co_return Response::see_other(next_of(request));
  co_return page_response(request, visit, sign_up_page(visit, next_of(request)));
}

Reply Pages::write(Request& request, const Visit& visit) {
  std::optional<Id> article;
  if (!request.params.empty()) {
    article = parse_id(request.param("article"));
    if (!article) throw http::not_found();
  }
  if (!visit.reader) co_return sent_to_sign_in(visit);
  co_return page_response(request, visit, write_page(visit, article));
}

Response Pages::mine(const Request& request, const Visit& visit, std::string_view list) const {
  return visit.reader ? page_response(request, visit, mine_page(visit, list)) : sent_to_sign_in(visit);
}

Reply Pages::my_articles(Request& request, const Visit& visit) {
  co_return mine(request, visit, "articles");
}
Reply Pages::my_collections(Request& request, const Visit& visit) {
  co_return mine(request, visit, "collections");
}
Reply Pages::my_history(Request& request, const Visit& visit) {
  co_return mine(request, visit, "history");
}

Reply Pages::preview(Request& request) {
  http::Fields fields(request);
  auto content = fields.string("content", {.max_bytes = article::kMaxContentBytes});
  fields.check();
  const auto made = co_await offload(
      renderer_, [this, content = std::move(content)] { return lay_out(content, services_.clock); });
  http::JsonWriter json;
  json.begin_object().key("html").string(made.text.html).key("lang").string(made.language).end_object();
  co_return Response::json(200, std::move(json)).with("Cache-Control", "no-store");
}

// Remembers a choice and goes back. A GET, because it changes nothing but how this browser sees the pages.
Response remembered(const Request& request, std::string_view name, std::string_view value) {
  std::string cookie(name);
  cookie.append("=").append(value).append("; Path=/; Max-Age=").append(kYear).append("; SameSite=Lax");
  if (request.secure) cookie.append("; Secure");
  return Response::see_other(std::string(local_address(request.query("back").value_or("/"))))
      .with("Set-Cookie", std::move(cookie))
      .with("Cache-Control", "no-store");
}

Reply choose_language_route(Request& request) {
  const auto choice = request.param("choice");
  if (choice != "en" && choice != "zh") throw http::not_found();
  co_return remembered(request, "weir_lang", choice);
}

Reply choose_theme_route(Request& request) {
  const auto choice = request.param("choice");
  if (to_text(parse_theme(choice)) != choice) throw http::not_found();
  co_return remembered(request, "weir_theme", choice);
}

Reply favicon(Request&) {
  co_return Response::see_other(std::string(static_address("favicon.svg")))
      .with("Cache-Control", "public, max-age=86400");
}

void add_hidden(http::Router& router, std::string method, std::string pattern, http::Access access,
                http::Handler handler) {
  http::Route route{std::move(method), std::move(pattern), access, std::move(handler), {}};
  route.doc.hidden = true;
  router.add(std::move(route));
}

void Pages::page(http::Router& router, std::string pattern, Show show) {
  add_hidden(router, "GET", std::move(pattern), http::Access::anyone,
             [self = shared_from_this(), show](Request& request) { return self->serve(request, show); });
}

void Pages::add_to(http::Router& router) {
  page(router, "/", &Pages::hot);
  page(router, "/newest", &Pages::newest);
  page(router, "/articles/{article:text}", &Pages::read);
  page(router, "/signin", &Pages::sign_in);
  page(router, "/signup", &Pages::sign_up);
  page(router, "/write", &Pages::write);
  page(router, "/write/{article:text}", &Pages::write);
  page(router, "/me/articles", &Pages::my_articles);
  page(router, "/me/collections", &Pages::my_collections);
  page(router, "/me/history", &Pages::my_history);
  add_hidden(router, "POST", "/pages/preview", http::Access::user,
             [self = shared_from_this()](Request& request) { return self->preview(request); });
  add_hidden(router, "GET", "/pages/language/{choice}", http::Access::anyone, choose_language_route);
  add_hidden(router, "GET", "/pages/theme/{choice}", http::Access::anyone, choose_theme_route);
  add_hidden(router, "GET", "/favicon.ico", http::Access::anyone, favicon);
  add_asset_routes(router);
  router.set_not_found_page(
      [self = shared_from_this()](Request& request) { return self->serve(request, &Pages::nothing); });
}

}  // namespace

std::shared_ptr<PageWork> add_routes(http::Router& router, PageServices services, std::size_t cache_bytes) {
  auto pages = std::make_shared<Pages>(services, cache_bytes);
  pages->add_to(router);
  return pages;
}

}  // namespace weir::site::pages

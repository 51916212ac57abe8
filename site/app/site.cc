#include "site/app/site.h"

#include <algorithm>
#include <filesystem>

#include "site/app/site_settings.h"
#include "site/app/version.h"
#include "site/article/article_handler.h"
#include "site/interaction/interaction_handler.h"
#include "site/pages/page_handler.h"
#include "site/ranking/ranking_handler.h"
#include "site/ranking/ranking_job.h"
#include "site/ranking/ranking_repository.h"
#include "site/user/session_repository.h"
#include "site/user/user_handler.h"
#include "site/user/user_repository.h"
#include "weir/base/random.h"
#include "weir/cache/redis_drop_feed.h"
#include "weir/cache/remote_levels.h"
#include "weir/http/operational.h"
#include "weir/idempotency/inbox.h"
#include "weir/redis/client.h"
#include "weir/telemetry/log.h"

namespace weir::site {
namespace {

using boost::asio::awaitable;

constexpr std::chrono::minutes kRecountBudget{30};
constexpr std::chrono::minutes kPruneBudget{5};
constexpr std::chrono::minutes kPruneEvery{10};

// How cache.local is shared out, in percent. Whole articles weigh most; the rest of it is many small things.
constexpr std::uint64_t kArticlePercent = 55;
constexpr std::uint64_t kPagePercent = 15;
constexpr std::uint64_t kUserPercent = 10;
constexpr std::uint64_t kCountsPercent = 10;
constexpr std::uint64_t kListPercent = 5;

std::size_t share(const config::Settings& settings, std::uint64_t percent) {
  return static_cast<std::size_t>(settings.size("cache.local") / 100 * percent);
}

std::string made_directory(const config::Settings& settings) {
  std::filesystem::path data = settings.text("data");
  std::filesystem::create_directories(data);
  return data.string();
}

sql::Options ready_store(const config::Settings& settings) {
  made_directory(settings);
  return store_options(settings);
}

std::chrono::seconds seconds(const config::Settings& settings, std::string_view name) {
  return std::chrono::duration_cast<std::chrono::seconds>(settings.duration(name));
}

user::UserService::Options user_options(const config::Settings& settings) {
  user::UserService::Options options;
  options.secret = settings.text("auth.secret");
  options.access_ttl = seconds(settings, "auth.access_ttl");
  options.refresh_ttl = seconds(settings, "auth.refresh_ttl");
  return options;
}

// What the caches share with those of other processes: one connection for what is asked and told, one for what is
// heard. They live where loads run.
struct Shared {
  // `names`: what all names there begin with, this site's alone.
  Shared(const config::Settings& settings, const std::string& names,
         const boost::asio::any_io_executor& executor);
  void stop() {
    feed->stop();
    client.stop();
  }
  bool connected() const { return client.connected() && feed->connected(); }

  redis::Client client;
  const std::shared_ptr<cache::RedisDropFeed> feed;
  const cache::RemoteLevels levels;
};

redis::Options client_options(const config::Settings& settings) {
  redis::Options options;
  auto servers = redis::Servers::parse(settings.text("cache.remote"));
  options.address = std::move(servers.address);
  options.seeds = std::move(servers.seeds);
  options.name = "cache";
  options.fail_fast = true;
  return options;
}

// Channels are the same for all databases of a server.
redis::SubscriberOptions feed_options(const config::Settings& settings, const std::string& names) {
  redis::SubscriberOptions options;
  // Where it listens the client's nodes say; the channel is this database's.
  options.address = redis::Servers::parse(settings.text("cache.remote")).address;
  options.channel = names + ":drops:" + std::to_string(options.address.database);
  options.name = "cache_feed";
  options.max_message_bytes = 16 * cache::RedisDropFeed::kMaxMessageBytes;
  return options;
}

cache::OnRemoteError on_remote_error(const config::Settings& settings) {
  const std::string word = settings.text("cache.on_remote_error");
  if (word == "availability") return cache::OnRemoteError::availability;
  return word == "protect" ? cache::OnRemoteError::protect : cache::OnRemoteError::bulkhead;
}

Shared::Shared(const config::Settings& settings, const std::string& names,
               const boost::asio::any_io_executor& executor)
    : client(executor, client_options(settings)),
      feed(std::make_shared<cache::RedisDropFeed>(client, executor, feed_options(settings, names))),
      levels(
          client,
          {.lease = settings.boolean("cache.lease"), .on_error = on_remote_error(settings), .prefix = names},
          feed) {}

// Ids count from 1 in each store: without a name of their own two sites on one Redis would read each other's articles
// and people.
std::unique_ptr<Shared> shared_of(const config::Settings& settings, user::SessionStore& secrets,
                                  const boost::asio::any_io_executor& executor) {
  if (settings.text("cache.remote").empty()) return nullptr;
  const std::string site = secrets.secret_now("site", std::to_string(secure_random64()));
  return std::make_unique<Shared>(settings, "weir:" + site, executor);
}

article::ArticleRepository::Options article_options(const config::Settings& settings,
                                                    const cache::RemoteLevels* remote) {
  article::ArticleRepository::Options options;
  options.article_bytes = share(settings, kArticlePercent);
  options.author_list_bytes = share(settings, kListPercent) / 2;
  options.author_article_bytes = share(settings, kListPercent) / 2;
  options.remote = remote;
  return options;
}

ranking::RankingService::Options ranking_options(const config::Settings& settings) {
  ranking::RankingService::Options options;
  options.top = static_cast<std::size_t>(settings.integer("ranking.top"));
  options.window = settings.duration("ranking.window");
  options.every = settings.duration("ranking.every");
  return options;
}

// Places of the jobs in Parts::jobs.
constexpr std::size_t kHot = 0;
constexpr std::size_t kPrune = 2;

const sql::Query kAlive{"store", "alive", "SELECT 1"};

}  // namespace

struct Site::Parts {
  Parts(const config::Settings& given, const Roles& roles_given, ReadEvents* road);

  queue::Producer* producer() const {
    return events != nullptr && events->producer ? &*events->producer : nullptr;
  }
  const cache::RemoteLevels* remote() const { return shared ? &shared->levels : nullptr; }
  interaction::InteractionService::Doors doors();
  article::ArticleService::ReadsOf reads_of();
  void add_jobs();
  void start();
  void stop();
  void add_site_routes(http::Router& router);
  http::OperationalOptions operational(std::function<bool()> stopping);

  const config::Settings settings;
  const Roles roles;
  ReadEvents* const events;  // null in commands
  Background background;
  sql::Database store;
  user::UserStore user_store{store};
  user::SessionStore session_store{store};
  article::ArticleStore article_store{store};
  interaction::InteractionStore interaction_store{store};
  interaction::CollectionStore collection_store{store};
  interaction::HistoryStore history_store{store};
  ranking::RankingStore ranking_store{store};
  const std::unique_ptr<Shared> shared;  // null: the caches are this process's own
  user::UserRepository user_repository;
  user::SessionRepository session_repository;
  article::ArticleRepository article_repository;
  interaction::InteractionRepository interaction_repository;
  user::UserService users;
  article::ArticleService articles;
  interaction::InteractionService interactions;
  ranking::RankingRepository ranking_repository;
  ranking::RankingService rankings;
  std::vector<std::unique_ptr<scheduler::Job>> jobs;
  std::unique_ptr<interaction::InteractionConsumer> counting;
  std::unique_ptr<interaction::HistoryConsumer> remembering;
  std::vector<std::unique_ptr<scheduler::Ticker>> tickers;
  std::unique_ptr<ranking::BoardWatch> board_watch;
  std::shared_ptr<pages::PageWork> page_work;
};

Site::Parts::Parts(const config::Settings& given, const Roles& roles_given, ReadEvents* road)
    : settings(given),
      roles(roles_given),
      events(road),
      store(ready_store(settings)),
      shared(shared_of(settings, session_store, background.executor())),
      user_repository(user_store, {.capacity = share(settings, kUserPercent), .remote = remote()},
                      background.executor()),
      session_repository(session_store, seconds(settings, "auth.refresh_ttl")),
      article_repository(article_store, article_options(settings, remote()), background.executor()),
      interaction_repository(interaction_store, collection_store, history_store, background.executor(),
                             {.capacity = share(settings, kCountsPercent)}),
      users(user_repository, session_repository, user_options(settings)),
      articles(article_repository, reads_of()),
      interactions(interaction_repository, producer(), doors()),
      ranking_repository(ranking_store, ranking::sources_of(articles, interactions), background.executor()),
      rankings(ranking_repository, users, interactions, ranking_options(settings)) {
  store.migrate("idempotency", idempotency::migrations());
  if (events != nullptr && roles.consumer) {
    const auto remember = seconds(settings, "idempotency.inbox");
    counting = std::make_unique<interaction::InteractionConsumer>(interactions, *events->queue, remember);
    remembering = std::make_unique<interaction::HistoryConsumer>(interactions, *events->queue, remember);
  }
  add_jobs();
}

// Only of articles it can be told whether they are there, and what they are called.
interaction::InteractionService::Doors Site::Parts::doors() {
  interaction::InteractionService::Doors doors;
  doors.exists = [this](std::string_view biz, Id id) -> awaitable<bool> {
    co_return biz != article::kBiz || co_await articles.exists(id);
  };
  doors.titles = [this](std::string_view biz,
                        std::vector<Id> ids) -> awaitable<std::vector<std::optional<std::string>>> {
    std::vector<std::optional<std::string>> titles(ids.size());
    if (biz != article::kBiz) co_return titles;
    for (article::Summary& summary : co_await articles.summaries(ids)) {
      const auto at = std::ranges::find(ids, summary.id) - ids.begin();
      titles[static_cast<std::size_t>(at)] = std::move(summary.title);
    }
    co_return titles;
  };
  return doors;
}

article::ArticleService::ReadsOf Site::Parts::reads_of() {
  return [this](std::vector<Id> ids) -> awaitable<std::int64_t> {
    std::int64_t sum = 0;
    for (const auto& counts : co_await interactions.counts_of(std::string(article::kBiz), std::move(ids)))
      sum += counts.reads;
    co_return sum;
  };
}

void Site::Parts::add_jobs() {
  jobs.emplace_back(new scheduler::Job(ranking::make_hot_job(rankings)));
  jobs.push_back(std::make_unique<scheduler::Job>("recount", kRecountBudget, [this](scheduler::JobRun& run) {
    const std::size_t mended = interactions.recount_now([&run] { run.check(); });
    log::info("recount put {} counts right", mended);
    return scheduler::JobOutcome::ok;
  }));
  jobs.push_back(std::make_unique<scheduler::Job>("prune", kPruneBudget, [this](scheduler::JobRun& run) {
    for (const std::string_view group : {interaction::kCountGroup, interaction::kHistoryGroup}) {
      const idempotency::Inbox inbox(
          {.consumer = std::string(group), .retention = seconds(settings, "idempotency.inbox")});
      while (inbox.prune_step(store)) run.check();
    }
    return scheduler::JobOutcome::ok;
  }));
}

void Site::Parts::start() {
  if (roles.consumer) {
    counting->start();
    remembering->start();
  }
  if (roles.web) {
    article_repository.start();
    board_watch = std::make_unique<ranking::BoardWatch>(rankings);
  }
  if (!roles.job) return;
  const auto tick = [this](std::size_t job, std::chrono::milliseconds every) {
    scheduler::Job* const ticked = jobs[job].get();
    tickers.push_back(std::make_unique<scheduler::Ticker>(
        ticked->name(), every, [ticked](const std::stop_token& stop) { ticked->run(stop); }));
  };
  tick(kHot, settings.duration("ranking.every"));
  tick(kPrune, kPruneEvery);
}

// The sender goes before the consumers, so that they still get what it sends last.
void Site::Parts::stop() {
  if (page_work) page_work->stop();
  if (board_watch) board_watch->stop();
  for (const auto& ticker : tickers) ticker->stop();
  if (producer() != nullptr) producer()->stop();
  if (counting) counting->stop();
  if (remembering) remembering->stop();
  users.stop();
  article_repository.stop();
  user_repository.stop();
  interaction_repository.stop();
  ranking_repository.stop();
  store.stop();
  if (shared) shared->stop();  // after the last write, whose drop it carries
  if (events != nullptr && events->queue) events->queue->stop();
  background.stop();
}

http::OperationalOptions Site::Parts::operational(std::function<bool()> stopping) {
  http::OperationalOptions options;
  options.version = kVersion;
  options.description = "A content platform that stays fast and exact when everybody comes at once.";
  options.checks.push_back({"store",
                            [this]() -> awaitable<http::Health> {
                              co_await store.read([](sql::Session& session) {
                                session.one(kAlive, [](const sql::Row&) { return 0; });
                              });
                              co_return http::Health::ok;
                            },
                            true});
  if (producer() != nullptr)
    options.checks.push_back(http::quick_check("journal", [this] {
      // Half full: the queue has been away for a while.
      const bool spooling = events->journal->waiting_bytes() > settings.size("queue.journal") / 2;
      return spooling || events->journal->degraded() ? http::Health::degraded : http::Health::ok;
    }));
  if (events->queue)
    options.checks.push_back(http::quick_check(
        "queue", [this] { return events->queue->available() ? http::Health::ok : http::Health::degraded; }));
  if (roles.web)
    options.checks.push_back(http::quick_check("filter", [this] {
      return article_repository.filter_filled() ? http::Health::ok : http::Health::degraded;
    }));
  if (shared)
    options.checks.push_back(http::quick_check(
        "cache", [this] { return shared->connected() ? http::Health::ok : http::Health::degraded; }));
  options.stopping = std::move(stopping);
  return options;
}

Site::Site(const config::Settings& settings) : parts_(std::make_unique<Parts>(settings, Roles{}, nullptr)) {}
Site::Site(const config::Settings& settings, const Roles& roles, ReadEvents& events)
    : parts_(std::make_unique<Parts>(settings, roles, &events)) {}
Site::~Site() {
  stop();
}

user::UserService& Site::users() {
  return parts_->users;
}
article::ArticleService& Site::articles() {
  return parts_->articles;
}
interaction::InteractionService& Site::interactions() {
  return parts_->interactions;
}
const std::vector<std::unique_ptr<scheduler::Job>>& Site::jobs() const {
  return parts_->jobs;
}

scheduler::Job* Site::job(std::string_view name) {
  const auto found =
      std::ranges::find(parts_->jobs, name, [](const auto& job) -> std::string_view { return job->name(); });
  return found == parts_->jobs.end() ? nullptr : found->get();
}

void Site::Parts::add_site_routes(http::Router& router) {
  user::add_routes(router, users);
  article::add_routes(router, articles, users, interactions);
  interaction::add_routes(router, interactions);
  ranking::add_routes(router, rankings);
  page_work =
      pages::add_routes(router, {users, articles, interactions, rankings}, share(settings, kPagePercent));
}

http::Router Site::routes(std::function<bool()> stopping) {
  http::Router router;
  if (parts_->roles.web) parts_->add_site_routes(router);
  http::add_operational_routes(router, parts_->operational(std::move(stopping)));
  return router;
}

void Site::start() {
  parts_->start();
}
void Site::stop() {
  parts_->stop();
}

}  // namespace weir::site

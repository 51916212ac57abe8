#include "site/app/site.h"

#include <filesystem>

#include "site/app/site_settings.h"
#include "site/article/article_handler.h"
#include "site/interaction/interaction_handler.h"
#include "site/pages/page_handler.h"
#include "site/ranking/ranking_handler.h"
#include "site/ranking/ranking_job.h"
#include "site/user/user_handler.h"
#include "weir/http/operational.h"
#include "weir/idempotency/inbox.h"

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

sql::Options store_options(const config::Settings& settings) {
  made_directory(settings);
  sql::Options options;
  options.path = store_path(settings).string();
  return options;
}

queue::Acks acks(const config::Settings& settings) {
  const std::string text = settings.text("queue.acks");
  if (text == "0") return queue::Acks::none;
  return text == "1" ? queue::Acks::leader : queue::Acks::all;
}

std::uint32_t partitions(const config::Settings& settings) {
  return static_cast<std::uint32_t>(settings.integer("queue.partitions"));
}

std::chrono::seconds seconds(const config::Settings& settings, std::string_view name) {
  return std::chrono::duration_cast<std::chrono::seconds>(settings.duration(name));
}

queue::EmbeddedQueue::Options queue_options(const config::Settings& settings) {
  queue::EmbeddedQueue::Options options;
  options.path = queue_path(settings).string();
  options.partitions = partitions(settings);
  options.full_sync = acks(settings) == queue::Acks::all;
  options.retention = seconds(settings, "queue.retention");
  return options;
}

user::UserService::Options user_options(const config::Settings& settings) {
  user::UserService::Options options;
  options.secret = settings.text("auth.secret");
  options.access_ttl = seconds(settings, "auth.access_ttl");
  options.refresh_ttl = seconds(settings, "auth.refresh_ttl");
  return options;
}

article::ArticleRepository::Options article_options(const config::Settings& settings) {
  article::ArticleRepository::Options options;
  options.article_bytes = share(settings, kArticlePercent);
  options.author_list_bytes = share(settings, kListPercent) / 2;
  options.author_article_bytes = share(settings, kListPercent) / 2;
  return options;
}

// Runs `step` until it says that there is no more.
void prune(scheduler::JobRun& run, const std::function<bool()>& step) {
  while (step()) run.check();
}

}  // namespace

ReadEvents::ReadEvents(const config::Settings& settings)
    : journal({.directory = made_directory(settings),
               .size = settings.size("queue.journal"),
               .lanes = partitions(settings)}),
      queue(queue_options(settings)),
      producer(journal, queue, {.acks = acks(settings)}) {
  queue.create_topic(std::string(interaction::kReadTopic));
}

struct Site::Parts {
  Parts(const config::Settings& given, ReadEvents* road);

  interaction::InteractionService::Doors doors();
  article::ArticleService::ReadsOf reads_of();
  void add_jobs();
  void add_consumers();

  const config::Settings settings;
  ReadEvents* const events;
  Background background;
  sql::Database store;
  user::UserStore user_store{store};
  user::SessionStore session_store{store};
  article::ArticleStore article_store{store};
  interaction::InteractionStore interaction_store{store};
  interaction::CollectionStore collection_store{store};
  interaction::HistoryStore history_store{store};
  ranking::RankingStore ranking_store{store};
  user::UserRepository user_repository;
  user::SessionRepository session_repository;
  article::ArticleRepository article_repository;
  interaction::InteractionRepository interaction_repository;
  ranking::RankingRepository ranking_repository;
  user::UserService users;
  article::ArticleService articles;
  interaction::InteractionService interactions;
  ranking::RankingService rankings;
  std::unique_ptr<interaction::InteractionConsumer> counting;
  std::unique_ptr<interaction::HistoryConsumer> remembering;
  std::vector<std::unique_ptr<scheduler::Job>> jobs;
  std::vector<std::unique_ptr<scheduler::Ticker>> tickers;
};

}  // namespace weir::site

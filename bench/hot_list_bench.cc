// The hot list over 1,000,000 articles within the window: Weir's job (walk, count by batches, keep the best,
// save) against one SQL statement that scores, sorts and limits the same rows. And what the job takes in
// memory.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <vector>

#include "bench/rows.h"
#include "site/app/site.h"
#include "site/app/site_settings.h"
#include "weir/base/random.h"
#include "weir/testing/temp_dir.h"

namespace {

using namespace weir;
using namespace weir::site;

constexpr int kArticles = 1'000'000;
constexpr int kBatch = 1000;
constexpr int kRounds = 3;
constexpr double kMaxMemoryMib = 32;

const sql::Query kInSql{
    "bench", "hot",
    "SELECT p.id, (coalesce(i.like_count, 0) - 1) / pow(max(? - p.published_at, 0) / 3600000000.0 + 2, 1.5) "
    "AS score FROM article_published p LEFT JOIN interactions i ON i.biz = 'article' AND i.biz_id = p.id "
    "WHERE p.published_at >= ? ORDER BY score DESC, p.id DESC LIMIT 100"};

void fill(Site& site) {
  Random random(1);
  const WallTime now = Clock::system().now();
  user::NewUser writer;
  writer.nickname = "bench";
  const Id author = site.users().create_many(std::span(&writer, 1)).front();
  for (int done = 0; done < kArticles; done += kBatch) {
    std::vector<article::ImportedArticle> articles;
    for (int i = 0; i < kBatch; ++i) {
      const auto age = std::chrono::seconds(random.below(6 * 86'400));
      articles.push_back({author, "An article", "Some words.", now - age, ""});
    }
    const auto made = site.articles().create_published_many(articles);
    std::vector<interaction::ImportedLikes> likes;
    for (const auto& one : made) likes.push_back({one.id, static_cast<std::int64_t>(random.below(1000))});
    site.interactions().import_likes_now(article::kBiz, likes);
  }
}

// In MiB; `field` is VmRSS or VmHWM.
double memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ':')) return std::stod(line.substr(field.size() + 1)) / 1024;
  }
  return 0;
}

template <class F>
double seconds(F f) {
  const auto began = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main() {
  const TempDir folder;
  const auto settings = config::Settings::load(site_keys(), {}, {}, {{"data", folder.path().string()}});
  Site site(settings);
  fill(site);
  sql::Options options = store_options(settings);
  options.readers = 1;
  sql::Database store(std::move(options));
  std::vector<double> ours, theirs;
  double grown = 0;
  for (int round = 0; round < kRounds; ++round) {
    theirs.push_back(seconds([&] {
      const std::int64_t now = to_micros(Clock::system().now());
      store.read_now([&](sql::Session& session) {
        session.all(
            kInSql, [](const sql::Row& row) { return row.get<Id>(0); }, now, now - 7LL * 86'400'000'000);
      });
    }));
    std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak
    const double before = memory("VmRSS");
    scheduler::JobResult result;
    ours.push_back(seconds([&] { result = site.job("ranking:hot")->run(); }));
    if (result.outcome != scheduler::JobOutcome::ok) return 1;
    grown = std::max(grown, memory("VmHWM") - before);
  }
  const double ratio = median(theirs) / median(ours);
  bench::print({{"hot list over 1,000,000 articles", "s", median(ours), "ORDER BY in SQL", median(theirs),
                 ratio, 1.5, ratio >= 1.5},
                {"memory of the hot list's job", "MiB", grown, "the limit", kMaxMemoryMib,
                 kMaxMemoryMib / std::max(grown, 0.1), 1.0, grown <= kMaxMemoryMib}});
}

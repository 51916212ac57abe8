#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>
#include <span>
#include <utility>

#include "site/app/commands.h"
#include "site/app/seed_text.h"
#include "site/app/site.h"
#include "weir/base/clock.h"

namespace weir::site {
namespace {

constexpr std::size_t kBatch = 1000;
// Made-up articles were published within so long before now, so that the hot list's window holds them.
constexpr std::chrono::hours kPublishedWithin{5 * 24};
// A made-up like falls on the article at n * u^kCrowding: few articles get most of them.
constexpr double kCrowding = 3;

std::string made_up_password() {
  constexpr std::string_view kLetters = "abcdefghjkmnpqrstuvwxyz23456789";  // none that look alike
  std::string password;
  for (int i = 0; i < 16; ++i) password += kLetters[secure_random64() % kLetters.size()];
  return password;
}

std::vector<Id> seed_users(Site& site, std::uint64_t count, const std::string& password, Random& random) {
  const std::string hash = site.users().hash_password_now(password);
  const WallTime now = Clock::system().now();
  std::vector<Id> ids;
  std::vector<user::NewUser> batch;
  for (std::uint64_t i = 1; i <= count; ++i) {
    user::NewUser person;
    person.email = "user" + std::to_string(i) + "@example.com";
    person.nickname = seed_nickname(random);
    person.password_hash = hash;
    person.created_at = now - kPublishedWithin;
    batch.push_back(std::move(person));
    if (batch.size() < kBatch && i < count) continue;
    std::ranges::copy(site.users().create_many(batch), std::back_inserter(ids));
    batch.clear();
  }
  return ids;
}

struct Articles {
  std::vector<Id> ids;
  std::vector<Id> added;  // those that weren't there already
};

// Article number i of a seed has an origin, so that seeding again with the same seed adds nothing.
Articles seed_articles(Site& site, const SeedOptions& options, const std::vector<Id>& authors,
                       Random& random) {
  const auto within = std::chrono::duration_cast<std::chrono::microseconds>(kPublishedWithin);
  const WallTime from = Clock::system().now() - within;
  Articles articles;
  std::vector<article::ImportedArticle> batch;
  for (std::uint64_t i = 0; i < options.articles; ++i) {
    SeedText text = seed_text(random);
    article::ImportedArticle made;
    made.author_id = authors[random.below(authors.size())];
    made.title = std::move(text.title);
    made.content = std::move(text.content);
    made.published_at =
        from + within * static_cast<std::int64_t>(i + 1) / static_cast<std::int64_t>(options.articles);
    made.external_id = "seed:" + std::to_string(options.random_seed) + ':' + std::to_string(i);
    batch.push_back(std::move(made));
    if (batch.size() < kBatch && i + 1 < options.articles) continue;
    for (const article::Imported& imported : site.articles().create_published_many(batch)) {
      articles.ids.push_back(imported.id);
      if (imported.inserted) articles.added.push_back(imported.id);
    }
    batch.clear();
  }
  return articles;
}

// Exactly `count` different likes, or as many as there can be.
std::uint64_t seed_likes(Site& site, std::uint64_t count, const std::vector<Id>& users,
                         const std::vector<Id>& articles, Random& random) {
  if (articles.empty()) return 0;
  count = std::min(count, static_cast<std::uint64_t>(users.size()) * articles.size());
  std::set<std::pair<std::uint64_t, std::uint64_t>> taken;
  std::vector<interaction::Like> batch;
  const WallTime now = Clock::system().now();
  while (taken.size() < count) {
    std::uint64_t who = random.below(users.size());
    auto what =
        static_cast<std::uint64_t>(static_cast<double>(articles.size()) * std::pow(random.unit(), kCrowding));
    // Where the crowd has taken a pair already, the next free one is taken: this ends, however full it gets.
    while (!taken.emplace(who, what).second) {
      if (++who == users.size()) who = 0, what = (what + 1) % articles.size();
    }
    batch.push_back({users[who], articles[what], now});
    if (batch.size() < kBatch && taken.size() < count) continue;
    site.interactions().like_many_now(article::kBiz, batch);
    batch.clear();
  }
  return count;
}

// A few reads for each like, since most readers like nothing. Only for new articles: reads add up.
void seed_reads(Site& site, const std::vector<Id>& added, Random& random) {
  for (std::size_t from = 0; from < added.size(); from += kBatch) {
    const auto ids = std::span(added).subspan(from, std::min(kBatch, added.size() - from));
    const auto likes = site.interactions().like_counts_now(article::kBiz, ids);
    std::vector<std::pair<Id, std::int64_t>> reads;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto some = static_cast<std::int64_t>(random.below(20));
      reads.emplace_back(ids[i], likes[i] * 9 + some);
    }
    site.interactions().add_reads_now(article::kBiz, reads);
  }
}

}  // namespace

int seed(const config::Settings& settings, const SeedOptions& options) {
  const std::string password = options.password.value_or(made_up_password());
  if (const auto fault = user::fault_of_password(password)) throw config::BadSetting("--password: " + *fault);
  Site site(settings);
  const bool were_there = site.users().email_taken_now("user1@example.com");
  Random random(options.random_seed);
  const std::vector<Id> users = seed_users(site, options.users, password, random);
  const Articles articles = seed_articles(site, options, users, random);
  const std::uint64_t likes = seed_likes(site, options.likes, users, articles.ids, random);
  seed_reads(site, articles.added, random);
  std::cout << "seeded " << users.size() << " users, " << articles.ids.size() << " articles, " << likes
            << " likes";
  if (articles.added.size() < articles.ids.size())
    std::cout << "; " << articles.ids.size() - articles.added.size() << " of the articles were there already";
  std::cout << '\n';
  if (were_there) {
    std::cout << "who was there already keeps the password of then\n";
  } else if (!options.password) {
    std::cout << "sign in as user1@example.com (to user" << users.size() << ") with the password " << password
              << '\n';
  }
  return 0;
}

}  // namespace weir::site

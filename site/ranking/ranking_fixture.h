// What the tests of this module stand on: the module over a real SQLite file, with articles and likes that a
// test writes down by hand.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "site/ranking/ranking_repository.h"
#include "site/ranking/ranking_store.h"
#include "weir/base/clock.h"

namespace weir::site::ranking {

// Articles and likes in memory. It also counts what it was asked for.
struct World {
  struct Article {
    WallTime published_at;
    std::int64_t likes;
  };
  std::map<Id, Article> articles;
  std::set<Id> withdrawn;
  bool broken = false;  // counting likes fails
  bool away = false;    // asking for summaries does
  int batches = 0, count_queries = 0, fetches = 0, summary_queries = 0;

  Sources sources() {
    Sources sources;
    sources.next_batch = [this](std::optional<Candidate> after, std::size_t count, WallTime not_before) {
      ++batches;
      return next(after, count, not_before);
    };
    sources.like_counts = [this](std::span<const Id> ids) {
      ++count_queries;
      if (broken) throw Unavailable("the store is away");
      std::vector<std::int64_t> likes;
      for (const Id id : ids) likes.push_back(articles.at(id).likes);
      return likes;
    };
    sources.liked_at_least = [this](std::int64_t needed, std::size_t limit) {
      ++fetches;
      std::vector<std::pair<Id, std::int64_t>> found;
      for (const auto& [id, article] : articles)
        if (article.likes >= needed) found.emplace_back(id, article.likes);
      return found.size() > limit ? std::nullopt : std::optional(found);
    };
    sources.summaries = [this](std::vector<Id> ids) -> boost::asio::awaitable<std::vector<article::Summary>> {
      ++summary_queries;
      if (away) throw Unavailable("the store is away");
      std::vector<article::Summary> found;
      for (const Id id : ids) {
        if (withdrawn.contains(id)) continue;
        article::Summary summary;
        summary.id = id;
        summary.author_id = 1;
        summary.title = "title " + std::to_string(id);
        summary.published_at = articles.at(id).published_at;
        found.push_back(std::move(summary));
      }
      co_return found;
    };
    return sources;
  }

 private:
  std::vector<Candidate> next(std::optional<Candidate> after, std::size_t count, WallTime not_before) {
    if (sorted_.size() != articles.size()) {
      sorted_.clear();
      for (const auto& [id, article] : articles) sorted_.push_back({id, article.published_at});
      std::ranges::sort(sorted_, newer);
    }
    auto at = after ? std::ranges::upper_bound(sorted_, *after, newer) : sorted_.begin();
    std::vector<Candidate> batch;
    for (; at != sorted_.end() && batch.size() < count && at->published_at >= not_before; ++at)
      batch.push_back(*at);
    return batch;
  }
  static bool newer(const Candidate& a, const Candidate& b) {
    return a.published_at != b.published_at ? a.published_at > b.published_at : a.id > b.id;
  }
  std::vector<Candidate> sorted_;  // newest first; made again when an article comes
};

}  // namespace weir::site::ranking
